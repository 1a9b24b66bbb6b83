//! The way to a client for everything that is no answer: bounded in messages and bytes, and never waited for.
//!
//! Whoever finds the queue full knows that the client does not read; what becomes of him is for the queue's owner to
//! say. A client that is slow stops nobody else.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use tokio::sync::Notify;

use crate::limits::bounds::Bounds;

/// Where messages for one client, or one request of his, go.
#[derive(Debug)]
pub(crate) struct Outlet(Arc<Queue>);

/// Where they come out.
#[derive(Debug)]
pub(crate) struct Inlet(Arc<Queue>);

/// What both ends share. Every request has one and few send anything, so that an empty one costs next to nothing.
#[derive(Debug)]
struct Queue {
    waiting: Mutex<Waiting>,
    /// Wakes who takes out.
    filled: AtomicWaker,
    /// Told when something was taken out, or nobody will.
    room: Notify,
    /// How many ways in there are.
    outlets: AtomicUsize,
    most_messages: usize,
    most_bytes: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    messages: VecDeque<Bytes>,
    bytes: usize,
    is_closed: bool,
}

/// The client does not read, or is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotTaken;

/// A way to a client.
pub(crate) fn outlet(bounds: &Bounds) -> (Outlet, Inlet) {
    let queue = Arc::new(Queue {
        waiting: Mutex::default(),
        filled: AtomicWaker::new(),
        room: Notify::new(),
        outlets: AtomicUsize::new(1),
        most_messages: bounds.queue_messages.max(1),
        most_bytes: bounds.queue_bytes,
    });
    (Outlet(Arc::clone(&queue)), Inlet(queue))
}

impl Queue {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, mut waiting: MutexGuard<'_, Waiting>, message: Bytes) {
        waiting.bytes += message.len();
        waiting.messages.push_back(message);
        drop(waiting);
        self.filled.wake();
    }

    fn take(&self) -> Option<Bytes> {
        let mut waiting = self.waiting();
        let message = waiting.messages.pop_front()?;
        waiting.bytes -= message.len();
        drop(waiting);
        self.room.notify_one();
        Some(message)
    }
}

impl Clone for Outlet {
    fn clone(&self) -> Outlet {
        self.0.outlets.fetch_add(1, Ordering::Relaxed);
        Outlet(Arc::clone(&self.0))
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        if self.0.outlets.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.filled.wake();
        }
    }
}

impl Drop for Inlet {
    fn drop(&mut self) {
        let mut waiting = self.0.waiting();
        *waiting = Waiting { is_closed: true, ..Waiting::default() };
        drop(waiting);
        // Each of those who wait tells the next.
        self.0.room.notify_one();
    }
}

impl Outlet {
    /// Sends a message, or says that it cannot be.
    pub(crate) fn send(&self, message: Bytes) -> Result<(), NotTaken> {
        let waiting = self.0.waiting();
        let is_full = waiting.messages.len() >= self.0.most_messages || waiting.bytes > self.0.most_bytes;
        if waiting.is_closed || is_full {
            return Err(NotTaken);
        }
        self.0.put(waiting, message);
        Ok(())
    }

    /// Sends an answer, which is waited with where the client is slow. Cancel-safe: it is sent or it is not.
    pub(crate) async fn answer(&self, message: Bytes) -> Result<(), NotTaken> {
        loop {
            let room = {
                let waiting = self.0.waiting();
                if waiting.is_closed {
                    self.0.room.notify_one();
                    return Err(NotTaken);
                }
                if waiting.messages.len() < self.0.most_messages {
                    let more = waiting.messages.len() + 1 < self.0.most_messages;
                    self.0.put(waiting, message);
                    if more {
                        // Two places that were left at once may have woken one of two who wait.
                        self.0.room.notify_one();
                    }
                    return Ok(());
                }
                self.0.room.notified()
            };
            room.await;
        }
    }

    /// Is nobody there any more?
    pub(crate) fn is_closed(&self) -> bool {
        self.0.waiting().is_closed
    }

    /// Does it lead to the same client?
    pub(crate) fn is_same(&self, other: &Outlet) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Inlet {
    /// The next message; `None` when nobody can send another one. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        poll_fn(|cx| {
            if let Some(message) = self.take() {
                return Poll::Ready(Some(message));
            }
            self.0.filled.register(cx.waker());
            // Whoever sent, or went, before this was said has woken nobody.
            let is_over = self.0.outlets.load(Ordering::Acquire) == 0;
            match (self.take(), is_over) {
                (Some(message), _) => Poll::Ready(Some(message)),
                (None, true) => Poll::Ready(None),
                (None, false) => Poll::Pending,
            }
        })
        .await
    }

    /// The next message, if there is one already.
    pub(crate) fn take(&mut self) -> Option<Bytes> {
        self.0.take()
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

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_room_gets_it_and_the_end_is_seen() {
        let (out, mut inlet) = outlet(&Bounds { queue_messages: 1, ..Bounds::default() });
        let answering: Vec<_> = (0..8u8)
            .map(|it| {
                let out = out.clone();
                tokio::spawn(async move { out.answer(Bytes::from(vec![it])).await })
            })
            .collect();
        let taken = tokio::spawn(async move {
            let mut res = Vec::new();
            while let Some(message) = inlet.next().await {
                // Those who wait come between.
                tokio::task::yield_now().await;
                res.push(message[0]);
            }
            res
        });
        for it in answering {
            assert_eq!(it.await.unwrap(), Ok(()));
        }
        drop(out);
        let mut taken = taken.await.unwrap();
        taken.sort_unstable();
        assert_eq!(taken, (0..8).collect::<Vec<_>>());

        let (out, inlet) = outlet(&Bounds { queue_messages: 1, ..Bounds::default() });
        out.send(Bytes::from_static(b"1")).unwrap();
        let waiting: Vec<_> = (0..3)
            .map(|_| {
                let out = out.clone();
                tokio::spawn(async move { out.answer(Bytes::from_static(b"2")).await })
            })
            .collect();
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        drop(inlet);
        for it in waiting {
            assert_eq!(it.await.unwrap(), Err(NotTaken));
        }
    }
}
