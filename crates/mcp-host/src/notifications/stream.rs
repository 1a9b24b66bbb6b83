//! Streams of notifications: server notifications, host events and file events.
//!
//! Each stream has its own queue, bounded in notifications and bytes. A slow reader loses the oldest notifications and
//! receives their number. It delays no server and no other reader. Each kind of notification has its own router, so a
//! server that floods its clients does not displace the events of the host.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};
use std::task::Poll;

use mcp_host_model::{RawJson, ServerId};
use mcp_host_transport::{CallerId, ServerEvent};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::state::dialog_id::DialogId;
use crate::state::event::HostEvent;

/// The maximum number of notifications in one queue.
const MAX_QUEUED_NOTIFICATIONS: usize = 1024;

/// The maximum size of one queue, in bytes.
const MAX_QUEUED_BYTES: usize = 8 << 20;

/// A notification from a server. Its text is untrusted.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ServerNotification {
    /// The server.
    pub server: ServerId,
    /// The dialog of the instance; `None` for a shared instance.
    pub dialog: Option<DialogId>,
    /// The call that caused it, if known. [`Caller::on_event`](mcp_host_transport::Caller::on_event) of that call has
    /// received it already.
    pub owner: Option<CallerId>,
    /// The content: [`ServerEvent::Log`], [`ServerEvent::ResourceUpdated`] or [`ServerEvent::Notification`].
    pub event: ServerEvent,
}

/// An item of a [`NotificationStream`].
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "an item or a gap; mcp-gateway and mcp-cli handle both, so that no gap is overlooked"
)]
pub enum NotificationStreamItem<T = ServerNotification> {
    /// A notification.
    Notification(Arc<T>),
    /// The number of notifications that were dropped before the next item because the reader was slow.
    Lagged(u64),
}

/// A stream of all notifications of one kind, from its creation on.
pub struct NotificationStream<T = ServerNotification>(Arc<NotificationQueue<T>>);

/// A notification that can be queued.
pub(crate) trait QueuedNotification {
    /// Returns the approximate size in memory of its content from servers. Other content is small.
    fn bytes(&self) -> usize {
        0
    }
}

/// A router that sends the notifications of one kind to all its streams. Dropping it ends them.
pub(crate) struct NotificationRouter<T>(Mutex<Listeners<T>>);

/// The streams of a router.
struct Listeners<T> {
    queues: Vec<Weak<NotificationQueue<T>>>,
    is_closed: bool,
}

/// The queue of one stream.
struct NotificationQueue<T> {
    state: Mutex<QueueState<T>>,
    /// Notified after each change of the state.
    changed: Notify,
}

/// The content of a queue.
struct QueueState<T> {
    /// The queued notifications with their sizes, oldest first.
    notifications: VecDeque<(usize, Arc<T>)>,
    /// The sum of the sizes.
    bytes: usize,
    /// The number of notifications that were dropped since the last item.
    dropped: u64,
    is_closed: bool,
}

impl<T: QueuedNotification> NotificationRouter<T> {
    /// Sends a notification to all streams.
    pub(crate) fn publish(&self, notification: impl FnOnce() -> T) {
        let queues: Vec<_> = self.0.lock().queues.iter().filter_map(Weak::upgrade).collect();
        if queues.is_empty() {
            return;
        }
        let notification = Arc::new(notification());
        for queue in queues {
            queue.state.lock().push(notification.bytes(), &notification);
            queue.changed.notify_one();
        }
    }
}

impl<T> NotificationRouter<T> {
    /// Creates a router without streams.
    pub(crate) fn new() -> NotificationRouter<T> {
        NotificationRouter(Mutex::new(Listeners { queues: Vec::new(), is_closed: false }))
    }

    /// Creates a stream of the notifications from now on.
    pub(crate) fn subscribe(&self) -> NotificationStream<T> {
        let mut listeners = self.0.lock();
        let is_closed = listeners.is_closed;
        let state = QueueState { notifications: VecDeque::new(), bytes: 0, dropped: 0, is_closed };
        let queue = Arc::new(NotificationQueue { state: Mutex::new(state), changed: Notify::new() });
        listeners.queues.retain(|it| it.strong_count() > 0);
        listeners.queues.push(Arc::downgrade(&queue));
        NotificationStream(queue)
    }

    /// Ends all streams after their queued items.
    pub(crate) fn close(&self) {
        let mut listeners = self.0.lock();
        listeners.is_closed = true;
        for queue in listeners.queues.iter().filter_map(Weak::upgrade) {
            queue.state.lock().is_closed = true;
            queue.changed.notify_one();
        }
    }
}

impl<T> Drop for NotificationRouter<T> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<T> NotificationStream<T> {
    /// Returns the next item; `None` after the host has ended and the queue is empty. Cancel-safe.
    pub async fn next(&mut self) -> Option<NotificationStreamItem<T>> {
        loop {
            // This is the only reader, so `notify_one` before the wait is not lost.
            let changed = self.0.changed.notified();
            let next = self.0.state.lock().next();
            match next {
                Poll::Ready(next) => return next,
                Poll::Pending => changed.await,
            }
        }
    }

    /// Returns the next item, if one is queued.
    pub fn try_next(&mut self) -> Option<NotificationStreamItem<T>> {
        match self.0.state.lock().next() {
            Poll::Ready(next) => next,
            Poll::Pending => None,
        }
    }
}

impl<T> fmt::Debug for NotificationStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queued = self.0.state.lock().notifications.len();
        f.debug_struct("NotificationStream").field("queued", &queued).finish_non_exhaustive()
    }
}

impl<T> QueueState<T> {
    /// Queues a notification, and drops the oldest ones if the queue is full.
    fn push(&mut self, bytes: usize, notification: &Arc<T>) {
        while self.notifications.len() >= MAX_QUEUED_NOTIFICATIONS
            || (!self.notifications.is_empty() && self.bytes + bytes > MAX_QUEUED_BYTES)
        {
            let Some((bytes, _)) = self.notifications.pop_front() else { break };
            self.bytes -= bytes;
            self.dropped += 1;
        }
        self.bytes += bytes;
        self.notifications.push_back((bytes, Arc::clone(notification)));
    }

    /// Returns the next item, `None` at the end of the stream, or pending if the queue is empty.
    fn next(&mut self) -> Poll<Option<NotificationStreamItem<T>>> {
        if self.dropped > 0 {
            return Poll::Ready(Some(NotificationStreamItem::Lagged(std::mem::take(&mut self.dropped))));
        }
        match self.notifications.pop_front() {
            Some((bytes, notification)) => {
                self.bytes -= bytes;
                Poll::Ready(Some(NotificationStreamItem::Notification(notification)))
            }
            None if self.is_closed => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

impl QueuedNotification for ServerNotification {
    fn bytes(&self) -> usize {
        let json = |it: Option<&RawJson>| it.map_or(0, |it| it.as_bytes().len());
        match &self.event {
            ServerEvent::Log(message) => json(Some(&message.raw)) + json(message.data.as_ref()),
            ServerEvent::ResourceUpdated { uri } => uri.len(),
            ServerEvent::Notification { method, params } => method.as_str().len() + json(params.as_ref()),
            ServerEvent::ProtocolError(what) => what.len(),
            // Other events are small or not published here.
            _ => 0,
        }
    }
}

impl QueuedNotification for HostEvent {}

#[cfg(test)]
mod tests {
    use super::*;

    fn notification(number: usize, size: usize) -> ServerNotification {
        let event = ServerEvent::ResourceUpdated { uri: format!("{number}:{}", "x".repeat(size)) };
        ServerNotification { server: ServerId::parse("a").unwrap(), dialog: None, owner: None, event }
    }

    fn text(item: Option<NotificationStreamItem>) -> String {
        match item {
            None => "over".to_owned(),
            Some(NotificationStreamItem::Lagged(many)) => format!("dropped {many}"),
            Some(NotificationStreamItem::Notification(it)) => match &it.event {
                ServerEvent::ResourceUpdated { uri } => uri.split(':').next().unwrap().to_owned(),
                other => panic!("{other:?}"),
            },
        }
    }

    #[tokio::test]
    async fn slow_reader_loses_oldest_and_receives_count() {
        let router = NotificationRouter::new();
        let (mut slow, mut other) = (router.subscribe(), router.subscribe());
        (0..MAX_QUEUED_NOTIFICATIONS + 10).for_each(|it| router.publish(|| notification(it, 1)));
        assert_eq!(text(slow.next().await), "dropped 10");
        assert_eq!(text(slow.next().await), "10");
        (0..20).for_each(|it| router.publish(|| notification(it, 1 << 20)));
        assert!(slow.0.state.lock().bytes <= MAX_QUEUED_BYTES);
        assert!(text(slow.next().await).starts_with("dropped "));
        assert!(text(other.next().await).starts_with("dropped "));
        router.publish(|| notification(7, MAX_QUEUED_BYTES * 2));
        assert!(text(slow.next().await).starts_with("dropped "));
        assert_eq!(text(slow.next().await), "7", "a notification above the limit is queued alone");
    }

    #[tokio::test]
    async fn stream_ends_with_host_after_queued_items() {
        let router = Arc::new(NotificationRouter::new());
        let mut stream = router.subscribe();
        let later = Arc::clone(&router);
        let task = tokio::spawn(async move {
            let mut res = Vec::new();
            loop {
                let next = text(stream.next().await);
                res.push(next.clone());
                if next == "over" {
                    return res.join(" ");
                }
            }
        });
        tokio::task::yield_now().await;
        later.publish(|| notification(1, 0));
        tokio::task::yield_now().await;
        later.publish(|| notification(2, 0));
        later.close();
        assert_eq!(task.await.unwrap(), "1 2 over");
        assert_eq!(text(router.subscribe().next().await), "over");
    }
}
