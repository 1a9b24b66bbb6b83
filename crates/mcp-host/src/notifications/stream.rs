//! What servers say on their own, on its way to whoever wants to hear it.
//!
//! Each who listens has a queue, bounded in messages and in bytes. Who is slow loses the oldest and is told how many; nobody
//! holds up a server, or another listener.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use mcp_model::{RawJson, ServerId};
use mcp_transport::{CallerId, ServerEvent};
use tokio::sync::Notify;

use crate::supervisor::dialog::DialogId;

/// How many messages wait for one listener.
const MOST: usize = 1024;

/// And how many bytes of them.
const MOST_BYTES: usize = 8 << 20;

/// Something that a server says on its own. Texts are the server's, and may hold anything.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerNotification {
    /// The server.
    pub server: ServerId,
    /// The dialog whose instance says it; `None` for one that is shared.
    pub dialog: Option<DialogId>,
    /// Whose call it is about, where that is known. Then [`Caller::hears`](mcp_transport::Caller::hears) of that call was
    /// told already.
    pub owner: Option<CallerId>,
    /// What it says: [`Event::Log`], [`Event::ResourceUpdated`] or [`Event::Notification`].
    pub event: ServerEvent,
}

/// What a [`NotificationStream`] brings.
#[derive(Debug, Clone, PartialEq)]
pub enum NotificationStreamItem {
    /// A server said something.
    Notification(Arc<ServerNotification>),
    /// So much was said before the next that comes, and is lost, for nobody took it.
    Lagged(u64),
}

/// Hears what servers say on their own, from when it was asked for.
pub struct NotificationStream(Arc<Queue>);

/// Where it comes from.
#[derive(Default)]
pub(crate) struct Hub(Mutex<Listeners>);

#[derive(Default)]
struct Listeners {
    queues: Vec<Weak<Queue>>,
    is_over: bool,
}

#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    changed: Notify,
}

#[derive(Default)]
struct Waiting {
    said: VecDeque<(usize, Arc<ServerNotification>)>,
    bytes: usize,
    missed: u64,
    is_over: bool,
}

impl Hub {
    /// Somebody listens from now on.
    pub(crate) fn hear(&self) -> NotificationStream {
        let queue = Arc::new(Queue::default());
        let mut listeners = lock(&self.0);
        lock(&queue.waiting).is_over = listeners.is_over;
        listeners.queues.retain(|it| it.strong_count() > 0);
        listeners.queues.push(Arc::downgrade(&queue));
        NotificationStream(queue)
    }

    /// A server says something.
    pub(crate) fn say(&self, said: impl FnOnce() -> ServerNotification) {
        let queues: Vec<Arc<Queue>> = lock(&self.0).queues.iter().filter_map(Weak::upgrade).collect();
        if queues.is_empty() {
            return;
        }
        let said = Arc::new(said());
        let bytes = weight(&said.event);
        for queue in queues {
            lock(&queue.waiting).push(bytes, &said);
            queue.changed.notify_one();
        }
    }

    /// Nobody says anything any more.
    pub(crate) fn end(&self) {
        let mut listeners = lock(&self.0);
        listeners.is_over = true;
        for queue in listeners.queues.iter().filter_map(Weak::upgrade) {
            lock(&queue.waiting).is_over = true;
            queue.changed.notify_one();
        }
    }
}

impl NotificationStream {
    /// The next of what was said; `None` when the host is gone and all of it was heard. Cancel-safe.
    pub async fn next(&mut self) -> Option<NotificationStreamItem> {
        loop {
            // There is one who waits, and a notice that comes before he does is kept for him.
            let changed = self.0.changed.notified();
            let next = lock(&self.0.waiting).next();
            match next {
                Ok(next) => return next,
                Err(Nothing) => changed.await,
            }
        }
    }
}

impl fmt::Debug for NotificationStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hearing").field("waiting", &lock(&self.0.waiting).said.len()).finish()
    }
}

/// There is nothing to be heard just now.
struct Nothing;

impl Waiting {
    fn push(&mut self, bytes: usize, said: &Arc<ServerNotification>) {
        while self.said.len() >= MOST || (!self.said.is_empty() && self.bytes + bytes > MOST_BYTES) {
            let Some((bytes, _)) = self.said.pop_front() else { break };
            self.bytes -= bytes;
            self.missed += 1;
        }
        self.bytes += bytes;
        self.said.push_back((bytes, Arc::clone(said)));
    }

    fn next(&mut self) -> Result<Option<NotificationStreamItem>, Nothing> {
        if self.missed > 0 {
            return Ok(Some(NotificationStreamItem::Lagged(std::mem::take(&mut self.missed))));
        }
        match self.said.pop_front() {
            Some((bytes, said)) => {
                self.bytes -= bytes;
                Ok(Some(NotificationStreamItem::Notification(said)))
            }
            None if self.is_over => Ok(None),
            None => Err(Nothing),
        }
    }
}

/// How much memory it keeps, about.
fn weight(event: &ServerEvent) -> usize {
    let json = |it: Option<&RawJson>| it.map_or(0, |it| it.as_bytes().len());
    match event {
        ServerEvent::Log(message) => json(Some(&message.raw)) + json(message.data.as_ref()),
        ServerEvent::ResourceUpdated { uri } => uri.len(),
        ServerEvent::Notification { method, params } => method.len() + json(params.as_ref()),
        ServerEvent::ProtocolError(what) => what.len(),
        // What else there is or will be is small, or not told here.
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

    fn said(number: usize, size: usize) -> ServerNotification {
        let event = ServerEvent::ResourceUpdated { uri: format!("{number}:{}", "x".repeat(size)) };
        ServerNotification { server: ServerId::parse("a").unwrap(), dialog: None, owner: None, event }
    }

    fn words(heard: Option<NotificationStreamItem>) -> String {
        match heard {
            None => "over".to_owned(),
            Some(NotificationStreamItem::Lagged(many)) => format!("missed {many}"),
            Some(NotificationStreamItem::Notification(said)) => match &said.event {
                ServerEvent::ResourceUpdated { uri } => uri.split(':').next().unwrap().to_owned(),
                other => panic!("{other:?}"),
            },
        }
    }

    #[tokio::test]
    async fn who_is_slow_loses_the_oldest_and_is_told_how_many() {
        let hub = Hub::default();
        let (mut slow, mut other) = (hub.hear(), hub.hear());
        (0..MOST + 10).for_each(|it| hub.say(|| said(it, 1)));
        assert_eq!(words(slow.next().await), "missed 10");
        assert_eq!(words(slow.next().await), "10");
        (0..20).for_each(|it| hub.say(|| said(it, 1 << 20)));
        assert!(lock(&slow.0.waiting).bytes <= MOST_BYTES);
        assert!(words(slow.next().await).starts_with("missed "));
        assert!(words(other.next().await).starts_with("missed "));
        hub.say(|| said(7, MOST_BYTES * 2));
        assert!(words(slow.next().await).starts_with("missed "));
        assert_eq!(words(slow.next().await), "7", "one that is too large alone is heard alone");
    }

    #[tokio::test]
    async fn it_ends_with_its_host_after_all_was_heard() {
        let hub = Arc::new(Hub::default());
        let mut hearing = hub.hear();
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
        later.say(|| said(1, 0));
        tokio::task::yield_now().await;
        later.say(|| said(2, 0));
        later.end();
        assert_eq!(task.await.unwrap(), "1 2 over");
        assert_eq!(words(hub.hear().next().await), "over");
    }
}
