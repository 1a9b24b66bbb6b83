//! A bounded queue of messages to a client, besides responses.
//!
//! A full queue means that the client does not read. The owner of the queue decides what happens then; other clients
//! are not affected.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::limits::bounds::Bounds;

/// Sends messages to one client, or those of one request.
#[derive(Debug)]
pub(crate) struct MessageSender(Arc<Queue>);

/// Receives the messages.
#[derive(Debug)]
pub(crate) struct MessageReceiver(Arc<Queue>);

/// The shared queue. Every request creates one and few use it, so an empty queue is cheap.
#[derive(Debug)]
struct Queue {
    state: Mutex<QueueState>,
    /// Wakes the receiver.
    receiver_waker: AtomicWaker,
    /// Notified when a message was removed or the receiver was dropped.
    room: Notify,
    /// The number of senders.
    senders: AtomicUsize,
    max_messages: usize,
    max_bytes: usize,
}

/// The content of a queue.
#[derive(Debug, Default)]
struct QueueState {
    messages: VecDeque<Bytes>,
    /// The total size of the messages.
    bytes: usize,
    /// Whether the receiver or all senders were dropped.
    is_closed: bool,
}

/// The error for a message that cannot be queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SendError;

/// Creates a queue with the limits of `bounds`.
pub(crate) fn message_channel(bounds: &Bounds) -> (MessageSender, MessageReceiver) {
    let queue = Arc::new(Queue {
        state: Mutex::default(),
        receiver_waker: AtomicWaker::new(),
        room: Notify::new(),
        senders: AtomicUsize::new(1),
        max_messages: bounds.queue_messages.max(1),
        max_bytes: bounds.queue_bytes,
    });
    (MessageSender(Arc::clone(&queue)), MessageReceiver(queue))
}

impl Queue {
    /// Adds a message. The caller has checked the limits under the same lock.
    fn push(&self, mut state: MutexGuard<'_, QueueState>, message: Bytes) {
        state.bytes += message.len();
        state.messages.push_back(message);
        drop(state);
        self.receiver_waker.wake();
    }

    fn pop(&self) -> Option<Bytes> {
        let mut state = self.state.lock();
        let message = state.messages.pop_front()?;
        state.bytes -= message.len();
        drop(state);
        self.room.notify_one();
        Some(message)
    }
}

impl Clone for MessageSender {
    fn clone(&self) -> MessageSender {
        self.0.senders.fetch_add(1, Ordering::Relaxed);
        MessageSender(Arc::clone(&self.0))
    }
}

impl Drop for MessageSender {
    fn drop(&mut self) {
        if self.0.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.receiver_waker.wake();
        }
    }
}

impl Drop for MessageReceiver {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        *state = QueueState { is_closed: true, ..QueueState::default() };
        drop(state);
        // Each waiting sender notifies the next.
        self.0.room.notify_one();
    }
}

impl MessageSender {
    /// Queues a message. Fails if the queue is full or closed. A message of any size fits into an empty queue.
    pub(crate) fn try_send(&self, message: Bytes) -> Result<(), SendError> {
        let state = self.0.state.lock();
        let is_full = state.messages.len() >= self.0.max_messages || state.bytes > self.0.max_bytes;
        if state.is_closed || is_full {
            return Err(SendError);
        }
        self.0.push(state, message);
        Ok(())
    }

    /// Queues a response, and waits while the queue has its maximum number of messages. Cancel-safe.
    pub(crate) async fn send_response(&self, message: Bytes) -> Result<(), SendError> {
        loop {
            let room = {
                let state = self.0.state.lock();
                if state.is_closed {
                    self.0.room.notify_one();
                    return Err(SendError);
                }
                if state.messages.len() < self.0.max_messages {
                    let more = state.messages.len() + 1 < self.0.max_messages;
                    self.0.push(state, message);
                    if more {
                        // Two removals may have notified only one of two waiting senders.
                        self.0.room.notify_one();
                    }
                    return Ok(());
                }
                self.0.room.notified()
            };
            room.await;
        }
    }

    /// Whether the receiver was dropped.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.state.lock().is_closed
    }

    /// Whether both send to the same queue.
    pub(crate) fn is_same_channel(&self, other: &MessageSender) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl MessageReceiver {
    /// The next message; `None` when all senders were dropped. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        poll_fn(|cx| {
            if let Some(message) = self.try_next() {
                return Poll::Ready(Some(message));
            }
            self.0.receiver_waker.register(cx.waker());
            // A message or the last drop may precede the registration.
            let is_over = self.0.senders.load(Ordering::Acquire) == 0;
            match (self.try_next(), is_over) {
                (Some(message), _) => Poll::Ready(Some(message)),
                (None, true) => Poll::Ready(None),
                (None, false) => Poll::Pending,
            }
        })
        .await
    }

    /// The next message, if there is one.
    pub(crate) fn try_next(&mut self) -> Option<Bytes> {
        self.0.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn full_queue_is_reported() {
        let bounds = Bounds { queue_messages: 2, queue_bytes: 10, ..Bounds::default() };
        let message = |bytes: usize| Bytes::from(vec![b'x'; bytes]);
        let (sender, mut receiver) = message_channel(&bounds);
        assert_eq!(sender.try_send(message(1)), Ok(()));
        assert_eq!(sender.try_send(message(1)), Ok(()));
        assert_eq!(sender.try_send(message(1)), Err(SendError));
        assert!(
            receiver.next().await.is_some() && receiver.try_next().is_some() && receiver.try_next().is_none()
        );
        // A message of any size fits into an empty queue.
        assert_eq!(sender.try_send(message(11)), Ok(()));
        assert_eq!(sender.try_send(message(1)), Err(SendError));
        assert_eq!(receiver.try_next().map(|message| message.len()), Some(11));
        assert_eq!(sender.try_send(message(1)), Ok(()));
        drop(receiver);
        assert!(sender.is_closed());
        assert_eq!(sender.send_response(message(1)).await, Err(SendError));
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_senders_proceed_and_see_the_end() {
        let (sender, mut receiver) = message_channel(&Bounds { queue_messages: 1, ..Bounds::default() });
        let sending: Vec<_> = (0..8u8)
            .map(|number| {
                let sender = sender.clone();
                tokio::spawn(async move { sender.send_response(Bytes::from(vec![number])).await })
            })
            .collect();
        let receiving = tokio::spawn(async move {
            let mut received = Vec::new();
            while let Some(message) = receiver.next().await {
                // Lets the waiting senders run.
                tokio::task::yield_now().await;
                received.push(message[0]);
            }
            received
        });
        for task in sending {
            assert_eq!(task.await.unwrap(), Ok(()));
        }
        drop(sender);
        let mut received = receiving.await.unwrap();
        received.sort_unstable();
        assert_eq!(received, (0..8).collect::<Vec<_>>());

        let (sender, receiver) = message_channel(&Bounds { queue_messages: 1, ..Bounds::default() });
        sender.try_send(Bytes::from_static(b"1")).unwrap();
        let sending: Vec<_> = (0..3)
            .map(|_| {
                let sender = sender.clone();
                tokio::spawn(async move { sender.send_response(Bytes::from_static(b"2")).await })
            })
            .collect();
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        drop(receiver);
        for task in sending {
            assert_eq!(task.await.unwrap(), Err(SendError));
        }
    }
}
