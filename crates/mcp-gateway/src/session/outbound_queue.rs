//! A bounded queue of messages to a client, besides responses.
//!
//! A full queue means that the client does not read. The owner of the queue decides what happens then; other clients
//! are not affected.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::limits::bounds::Bounds;

/// Sends messages to one client, or for one request.
#[derive(Debug, Clone)]
pub(crate) struct MessageSender {
    messages: mpsc::Sender<Bytes>,
    queued_bytes: Arc<AtomicUsize>,
    max_bytes: usize,
}

/// Receives the messages.
#[derive(Debug)]
pub(crate) struct MessageReceiver {
    messages: mpsc::Receiver<Bytes>,
    queued_bytes: Arc<AtomicUsize>,
}

/// The error for a message that cannot be queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SendError;

/// Creates a queue with the limits of `bounds`.
pub(crate) fn message_channel(bounds: &Bounds) -> (MessageSender, MessageReceiver) {
    let (sender, receiver) = mpsc::channel(bounds.queue_messages.max(1));
    let queued_bytes = Arc::<AtomicUsize>::default();
    let max_bytes = bounds.queue_bytes;
    (
        MessageSender { messages: sender, queued_bytes: Arc::clone(&queued_bytes), max_bytes },
        MessageReceiver { messages: receiver, queued_bytes },
    )
}

impl MessageSender {
    /// Queues a message. A message of any size fits into an empty queue.
    pub(crate) fn send(&self, message: Bytes) -> Result<(), SendError> {
        if self.queued_bytes.load(Ordering::Relaxed) > self.max_bytes {
            return Err(SendError);
        }
        let permit = self.messages.try_reserve().map_err(|_| SendError)?;
        self.queued_bytes.fetch_add(message.len(), Ordering::Relaxed);
        permit.send(message);
        Ok(())
    }

    /// Queues a response, and waits while the queue is full. Cancel-safe.
    pub(crate) async fn send_response(&self, message: Bytes) -> Result<(), SendError> {
        let permit = self.messages.reserve().await.map_err(|_| SendError)?;
        self.queued_bytes.fetch_add(message.len(), Ordering::Relaxed);
        permit.send(message);
        Ok(())
    }

    /// Whether the receiver was dropped.
    pub(crate) fn is_closed(&self) -> bool {
        self.messages.is_closed()
    }

    /// Whether both send to the same queue.
    pub(crate) fn is_same_channel(&self, other: &MessageSender) -> bool {
        self.messages.same_channel(&other.messages)
    }
}

impl MessageReceiver {
    /// The next message; `None` when all senders were dropped. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        let message = self.messages.recv().await?;
        self.queued_bytes.fetch_sub(message.len(), Ordering::Relaxed);
        Some(message)
    }

    /// The next message, if there is one.
    pub(crate) fn try_next(&mut self) -> Option<Bytes> {
        let message = self.messages.try_recv().ok()?;
        self.queued_bytes.fetch_sub(message.len(), Ordering::Relaxed);
        Some(message)
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
        assert_eq!(sender.send(message(1)), Ok(()));
        assert_eq!(sender.send(message(1)), Ok(()));
        assert_eq!(sender.send(message(1)), Err(SendError));
        assert!(
            receiver.next().await.is_some() && receiver.try_next().is_some() && receiver.try_next().is_none()
        );
        // A message of any size fits into an empty queue.
        assert_eq!(sender.send(message(11)), Ok(()));
        assert_eq!(sender.send(message(1)), Err(SendError));
        assert_eq!(receiver.try_next().map(|message| message.len()), Some(11));
        assert_eq!(sender.send(message(1)), Ok(()));
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
        sender.send(Bytes::from_static(b"1")).unwrap();
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
