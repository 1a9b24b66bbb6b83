//! The way to a client for everything that is no answer: bounded in messages and bytes, and never waited for.
//!
//! Whoever finds the queue full knows that the client does not read; what becomes of him is for the queue's owner to
//! say. A client that is slow stops nobody else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::Bounds;

/// Where messages for one client, or one request of his, go.
#[derive(Debug, Clone)]
pub(crate) struct Outlet {
    queue: mpsc::Sender<Bytes>,
    waiting: Arc<AtomicUsize>,
    most_bytes: usize,
}

/// Where they come out.
#[derive(Debug)]
pub(crate) struct Inlet {
    queue: mpsc::Receiver<Bytes>,
    waiting: Arc<AtomicUsize>,
}

/// The client does not read, or is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotTaken;

/// A way to a client.
pub(crate) fn outlet(bounds: &Bounds) -> (Outlet, Inlet) {
    let (sender, receiver) = mpsc::channel(bounds.queue_messages.max(1));
    let waiting = Arc::new(AtomicUsize::new(0));
    let outlet = Outlet { queue: sender, waiting: Arc::clone(&waiting), most_bytes: bounds.queue_bytes };
    (outlet, Inlet { queue: receiver, waiting })
}

impl Outlet {
    /// Sends a message, or says that it cannot be.
    pub(crate) fn send(&self, message: Bytes) -> Result<(), NotTaken> {
        let bytes = message.len();
        if self.waiting.fetch_add(bytes, Ordering::Relaxed) > self.most_bytes {
            self.waiting.fetch_sub(bytes, Ordering::Relaxed);
            return Err(NotTaken);
        }
        self.queue.try_send(message).map_err(|_| {
            self.waiting.fetch_sub(bytes, Ordering::Relaxed);
            NotTaken
        })
    }

    /// Sends an answer, which is waited with where the client is slow. Cancel-safe: it is sent or it is not.
    pub(crate) async fn answer(&self, message: Bytes) -> Result<(), NotTaken> {
        let bytes = message.len();
        let place = self.queue.reserve().await.map_err(|_| NotTaken)?;
        self.waiting.fetch_add(bytes, Ordering::Relaxed);
        place.send(message);
        Ok(())
    }

    /// Is nobody there any more?
    pub(crate) fn is_closed(&self) -> bool {
        self.queue.is_closed()
    }

    /// Does it lead to the same client?
    pub(crate) fn is_same(&self, other: &Outlet) -> bool {
        self.queue.same_channel(&other.queue)
    }
}

impl Inlet {
    /// The next message; `None` when nobody can send another one. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        let message = self.queue.recv().await?;
        self.waiting.fetch_sub(message.len(), Ordering::Relaxed);
        Some(message)
    }

    /// The next message, if there is one already.
    pub(crate) fn take(&mut self) -> Option<Bytes> {
        let message = self.queue.try_recv().ok()?;
        self.waiting.fetch_sub(message.len(), Ordering::Relaxed);
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_client_that_does_not_read_is_found_out() {
        let bounds = Bounds { queue_messages: 2, queue_bytes: 10, ..Bounds::default() };
        let message = |bytes: usize| Bytes::from(vec![b'x'; bytes]);
        let (out, mut inlet) = outlet(&bounds);
        assert_eq!(out.send(message(1)), Ok(()));
        assert_eq!(out.send(message(1)), Ok(()));
        assert_eq!(out.send(message(1)), Err(NotTaken));
        assert!(inlet.next().await.is_some() && inlet.take().is_some() && inlet.take().is_none());
        // One message of any size, so that what is allowed elsewhere can pass; then none.
        assert_eq!(out.send(message(11)), Ok(()));
        assert_eq!(out.send(message(1)), Err(NotTaken));
        assert_eq!(inlet.take().map(|it| it.len()), Some(11));
        assert_eq!(out.send(message(1)), Ok(()));
        drop(inlet);
        assert!(out.is_closed());
        assert_eq!(out.answer(message(1)).await, Err(NotTaken));
    }
}
