//! How many bytes of clients' messages, and of answers to them, are held at once, all clients together.
//!
//! What is counted counts for as long as any part of it is in memory: the count is let go with the last slice of the
//! buffer. Small messages are not counted, for the number of requests and connections bounds them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::Notify;

/// What is smaller is not counted, in bytes.
pub(crate) const SMALL: usize = 16 * 1024;

/// The count.
#[derive(Debug)]
pub(crate) struct Budget {
    held: AtomicUsize,
    most: usize,
    /// Told when something was let go.
    freed: Notify,
}

/// Bytes that are counted, until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    budget: Arc<Budget>,
    bytes: usize,
}

/// A buffer that is counted.
struct Counted {
    bytes: Bytes,
    _held: Held,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// There is no room: something must be let go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoRoom;

impl Budget {
    /// Of so many bytes.
    pub(crate) fn new(most: usize) -> Arc<Budget> {
        Arc::new(Budget { held: AtomicUsize::new(0), most, freed: Notify::new() })
    }

    /// How many are held.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    /// Makes room for `bytes` of a message that is to come. One message of any size has room where nothing else is.
    pub(crate) fn reserve(self: &Arc<Budget>, bytes: usize) -> Result<Held, NoRoom> {
        let fits = |held: usize| {
            (held == 0 || held.saturating_add(bytes) <= self.most).then(|| held.saturating_add(bytes))
        };
        match self.held.fetch_update(Ordering::AcqRel, Ordering::Relaxed, fits) {
            Ok(_) => Ok(Held { budget: Arc::clone(self), bytes }),
            Err(_) => Err(NoRoom),
        }
    }

    /// The same, as soon as there is room. Cancel-safe.
    pub(crate) async fn wait(self: &Arc<Budget>, bytes: usize) -> Held {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // Whoever lets go from here on is heard.
            freed.as_mut().enable();
            if let Ok(held) = self.reserve(bytes) {
                return held;
            }
            freed.await;
        }
    }

    /// Counts what is there already, and what nobody could refuse any more: an answer. The next message waits for it.
    pub(crate) fn counted(self: &Arc<Budget>, bytes: Bytes) -> Bytes {
        if bytes.len() < SMALL {
            return bytes;
        }
        self.held.fetch_add(bytes.len(), Ordering::AcqRel);
        Held { budget: Arc::clone(self), bytes: bytes.len() }.keeps(bytes)
    }
}

impl Held {
    /// Makes room for so many in all.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), NoRoom> {
        if let Some(more @ 1..) = bytes.checked_sub(self.bytes) {
            let mut more = self.budget.reserve(more)?;
            self.bytes += std::mem::take(&mut more.bytes);
        }
        Ok(())
    }

    /// The buffer that room was made for: it is counted for as long as a slice of it is left.
    pub(crate) fn keeps(self, bytes: Bytes) -> Bytes {
        if bytes.len() < SMALL {
            return bytes;
        }
        Bytes::from_owner(Counted { bytes, _held: self })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::AcqRel);
        self.budget.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(bytes: usize) -> Bytes {
        Bytes::from(vec![b'x'; bytes])
    }

    #[test]
    fn what_is_held_counts_until_its_last_slice_is_gone() {
        let budget = Budget::new(3 * SMALL);
        let one = budget.reserve(2 * SMALL).unwrap().keeps(buffer(2 * SMALL));
        assert_eq!(budget.reserve(2 * SMALL).unwrap_err(), NoRoom);
        let part = one.slice(5..6);
        drop(one);
        assert_eq!(budget.held(), 2 * SMALL);
        drop(part);
        assert_eq!(budget.held(), 0);
        // What is larger than all there is has room where nothing else is.
        let mut large = budget.reserve(4 * SMALL).unwrap();
        assert_eq!(large.grow(5 * SMALL), Err(NoRoom));
        assert_eq!(large.grow(4 * SMALL), Ok(()));
        drop(large);
        let mut growing = budget.reserve(1).unwrap();
        assert_eq!((growing.grow(SMALL), budget.held()), (Ok(()), SMALL));
        // Answers are taken in any case, and what comes next is not.
        let answer = budget.counted(buffer(3 * SMALL));
        assert_eq!((budget.held(), growing.grow(SMALL + 1)), (4 * SMALL, Err(NoRoom)));
        drop((growing, answer));
        assert_eq!((budget.counted(buffer(1)).len(), budget.held()), (1, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_has_room_when_something_is_let_go() {
        let budget = Budget::new(10);
        let held = budget.reserve(10).unwrap();
        let waiting = {
            let budget = Arc::clone(&budget);
            tokio::spawn(async move { budget.wait(5).await.bytes })
        };
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert!(!waiting.is_finished());
        drop(held);
        assert_eq!(waiting.await.unwrap(), 5);
    }
}
