//! Streams of server notifications.
//!
//! Each stream has a queue, bounded in notifications and bytes. A slow reader loses the oldest and receives their
//! number. It delays no server and no other reader.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use mcp_model::{RawJson, ServerId};
use mcp_transport::{CallerId, ServerEvent};
use tokio::sync::Notify;

use crate::state::dialog_id::DialogId;

/// The maximum number of notifications in one queue.
const MAX_QUEUED_NOTIFICATIONS: usize = 1024;

/// The maximum size of one queue, in bytes.
const MAX_QUEUED_BYTES: usize = 8 << 20;

/// A notification from a server. Its text is untrusted.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerNotification {
    /// The server.
    pub server: ServerId,
    /// The dialog of the instance; `None` for a shared instance.
    pub dialog: Option<DialogId>,
    /// The call that caused it, if known. [`Caller::on_event`](mcp_transport::Caller::on_event) of that call has
    /// received it already.
    pub owner: Option<CallerId>,
    /// The content: [`ServerEvent::Log`], [`ServerEvent::ResourceUpdated`] or [`ServerEvent::Notification`].
    pub event: ServerEvent,
}

/// An item of a [`NotificationStream`].
#[derive(Debug, Clone, PartialEq)]
pub enum NotificationStreamItem {
    /// A notification.
    Notification(Arc<ServerNotification>),
    /// The number of notifications that were dropped before the next item because the reader was slow.
    Lagged(u64),
}

/// Receives the notifications of all servers from its creation on.
pub struct NotificationStream(Arc<NotificationQueue>);

/// Sends notifications to all streams.
#[derive(Default)]
pub(crate) struct NotificationRouter(Mutex<Listeners>);

#[derive(Default)]
struct Listeners {
    queues: Vec<Weak<NotificationQueue>>,
    is_closed: bool,
}

#[derive(Default)]
struct NotificationQueue {
    state: Mutex<QueueState>,
    changed: Notify,
}

#[derive(Default)]
struct QueueState {
    notifications: VecDeque<(usize, Arc<ServerNotification>)>,
    bytes: usize,
    dropped: u64,
    is_closed: bool,
}

impl NotificationRouter {
    /// Creates a stream of the notifications from now on.
    pub(crate) fn subscribe(&self) -> NotificationStream {
        let queue = Arc::new(NotificationQueue::default());
        let mut listeners = lock(&self.0);
        lock(&queue.state).is_closed = listeners.is_closed;
        listeners.queues.retain(|it| it.strong_count() > 0);
        listeners.queues.push(Arc::downgrade(&queue));
        NotificationStream(queue)
    }

    /// Sends a notification to all streams.
    pub(crate) fn publish(&self, notifications: impl FnOnce() -> ServerNotification) {
        let queues: Vec<Arc<NotificationQueue>> =
            lock(&self.0).queues.iter().filter_map(Weak::upgrade).collect();
        if queues.is_empty() {
            return;
        }
        let notifications = Arc::new(notifications());
        let bytes = event_bytes(&notifications.event);
        for queue in queues {
            lock(&queue.state).push(bytes, &notifications);
            queue.changed.notify_one();
        }
    }

    /// Ends all streams after their queued items.
    pub(crate) fn close(&self) {
        let mut listeners = lock(&self.0);
        listeners.is_closed = true;
        for queue in listeners.queues.iter().filter_map(Weak::upgrade) {
            lock(&queue.state).is_closed = true;
            queue.changed.notify_one();
        }
    }
}

impl NotificationStream {
    /// The next item; `None` after the host has ended and the queue is empty. Cancel-safe.
    pub async fn next(&mut self) -> Option<NotificationStreamItem> {
        loop {
            // The only reader. A notification before it waits is stored as a permit.
            let changed = self.0.changed.notified();
            let next = lock(&self.0.state).next();
            match next {
                Ok(next) => return next,
                Err(Nothing) => changed.await,
            }
        }
    }
}

impl fmt::Debug for NotificationStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hearing").field("state", &lock(&self.0.state).notifications.len()).finish()
    }
}

struct Nothing;

impl QueueState {
    fn push(&mut self, bytes: usize, notifications: &Arc<ServerNotification>) {
        while self.notifications.len() >= MAX_QUEUED_NOTIFICATIONS
            || (!self.notifications.is_empty() && self.bytes + bytes > MAX_QUEUED_BYTES)
        {
            let Some((bytes, _)) = self.notifications.pop_front() else { break };
            self.bytes -= bytes;
            self.dropped += 1;
        }
        self.bytes += bytes;
        self.notifications.push_back((bytes, Arc::clone(notifications)));
    }

    fn next(&mut self) -> Result<Option<NotificationStreamItem>, Nothing> {
        if self.dropped > 0 {
            return Ok(Some(NotificationStreamItem::Lagged(std::mem::take(&mut self.dropped))));
        }
        match self.notifications.pop_front() {
            Some((bytes, notifications)) => {
                self.bytes -= bytes;
                Ok(Some(NotificationStreamItem::Notification(notifications)))
            }
            None if self.is_closed => Ok(None),
            None => Err(Nothing),
        }
    }
}

/// The approximate memory of an event.
fn event_bytes(event: &ServerEvent) -> usize {
    let json = |it: Option<&RawJson>| it.map_or(0, |it| it.as_bytes().len());
    match event {
        ServerEvent::Log(message) => json(Some(&message.raw)) + json(message.data.as_ref()),
        ServerEvent::ResourceUpdated { uri } => uri.len(),
        ServerEvent::Notification { method, params } => method.len() + json(params.as_ref()),
        ServerEvent::ProtocolError(what) => what.len(),
        // Other events are small or not published here.
        _ => 0,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change under these locks is complete before anything can panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notifications(number: usize, size: usize) -> ServerNotification {
        let event = ServerEvent::ResourceUpdated { uri: format!("{number}:{}", "x".repeat(size)) };
        ServerNotification { server: ServerId::parse("a").unwrap(), dialog: None, owner: None, event }
    }

    fn words(heard: Option<NotificationStreamItem>) -> String {
        match heard {
            None => "over".to_owned(),
            Some(NotificationStreamItem::Lagged(many)) => format!("dropped {many}"),
            Some(NotificationStreamItem::Notification(notifications)) => match &notifications.event {
                ServerEvent::ResourceUpdated { uri } => uri.split(':').next().unwrap().to_owned(),
                other => panic!("{other:?}"),
            },
        }
    }

    #[tokio::test]
    async fn slow_reader_loses_oldest_and_receives_count() {
        let hub = NotificationRouter::default();
        let (mut slow, mut other) = (hub.subscribe(), hub.subscribe());
        (0..MAX_QUEUED_NOTIFICATIONS + 10).for_each(|it| hub.publish(|| notifications(it, 1)));
        assert_eq!(words(slow.next().await), "dropped 10");
        assert_eq!(words(slow.next().await), "10");
        (0..20).for_each(|it| hub.publish(|| notifications(it, 1 << 20)));
        assert!(lock(&slow.0.state).bytes <= MAX_QUEUED_BYTES);
        assert!(words(slow.next().await).starts_with("dropped "));
        assert!(words(other.next().await).starts_with("dropped "));
        hub.publish(|| notifications(7, MAX_QUEUED_BYTES * 2));
        assert!(words(slow.next().await).starts_with("dropped "));
        assert_eq!(words(slow.next().await), "7", "one that is too large alone is heard alone");
    }

    #[tokio::test]
    async fn stream_ends_with_host_after_queued_items() {
        let hub = Arc::new(NotificationRouter::default());
        let mut hearing = hub.subscribe();
        let later = Arc::clone(&hub);
        let task = tokio::spawn(async move {
            let mut res = Vec::new();
            loop {
                let next = words(hearing.next().await);
                res.push(next.clone());
                if next == "over" {
                    return res.join(" ");
                }
            }
        });
        tokio::task::yield_now().await;
        later.publish(|| notifications(1, 0));
        tokio::task::yield_now().await;
        later.publish(|| notifications(2, 0));
        later.close();
        assert_eq!(task.await.unwrap(), "1 2 over");
        assert_eq!(words(hub.subscribe().next().await), "over");
    }
}
