//! A budget for the bytes of messages and responses in memory, all clients together.
//!
//! Bytes count until the last slice of their buffer is dropped. Small messages do not count, because the limits on
//! requests and connections bound them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::Notify;

/// The size in bytes from which a message counts.
pub(crate) const MIN_COUNTED_BYTES: usize = 16 * 1024;

/// The budget.
#[derive(Debug)]
pub(crate) struct ByteBudget {
    used: AtomicUsize,
    limit: usize,
    /// Notified when bytes were released.
    freed: Notify,
}

/// Reserved bytes. Released on drop.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<ByteBudget>,
    bytes: usize,
}

/// A buffer with its reservation.
struct TrackedBuffer {
    bytes: Bytes,
    _reservation: Reservation,
}

impl AsRef<[u8]> for TrackedBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The error for a reservation that does not fit into the budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BudgetExceeded;

impl ByteBudget {
    /// A budget of `limit` bytes.
    pub(crate) fn new(limit: usize) -> Arc<ByteBudget> {
        Arc::new(ByteBudget { used: AtomicUsize::new(0), limit, freed: Notify::new() })
    }

    /// The bytes in use.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Reserves bytes for a message. A message of any size fits into an empty budget.
    pub(crate) fn reserve(self: &Arc<ByteBudget>, bytes: usize) -> Result<Reservation, BudgetExceeded> {
        let added = |used: usize| {
            let total = used.saturating_add(bytes);
            (used == 0 || total <= self.limit).then_some(total)
        };
        let reserved = self.used.fetch_update(Ordering::AcqRel, Ordering::Relaxed, added);
        reserved.map_err(|_| BudgetExceeded)?;
        Ok(Reservation { budget: Arc::clone(self), bytes })
    }

    /// Reserves bytes as soon as they are free. Cancel-safe.
    pub(crate) async fn acquire(self: &Arc<ByteBudget>, bytes: usize) -> Reservation {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // Registered before the check, so that no release is missed.
            freed.as_mut().enable();
            if let Ok(reservation) = self.reserve(bytes) {
                return reservation;
            }
            freed.await;
        }
    }

    /// Counts a response. It is counted even above the limit, because it cannot be refused any more; then the next
    /// message has to wait.
    pub(crate) fn track(self: &Arc<ByteBudget>, bytes: Bytes) -> Bytes {
        if bytes.len() < MIN_COUNTED_BYTES {
            return bytes;
        }
        self.used.fetch_add(bytes.len(), Ordering::AcqRel);
        Reservation { budget: Arc::clone(self), bytes: bytes.len() }.attach(bytes)
    }
}

impl Reservation {
    /// Extends the reservation to `bytes` in total.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), BudgetExceeded> {
        if let Some(more @ 1..) = bytes.checked_sub(self.bytes) {
            let mut more = self.budget.reserve(more)?;
            self.bytes += std::mem::take(&mut more.bytes);
        }
        Ok(())
    }

    /// The buffer, which holds the reservation until its last slice is dropped.
    pub(crate) fn attach(self, bytes: Bytes) -> Bytes {
        if bytes.len() < MIN_COUNTED_BYTES {
            return bytes;
        }
        Bytes::from_owner(TrackedBuffer { bytes, _reservation: self })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::AcqRel);
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
    fn reserved_bytes_count_until_the_last_slice_is_dropped() {
        let budget = ByteBudget::new(3 * MIN_COUNTED_BYTES);
        let first = budget.reserve(2 * MIN_COUNTED_BYTES).unwrap().attach(buffer(2 * MIN_COUNTED_BYTES));
        assert_eq!(budget.reserve(2 * MIN_COUNTED_BYTES).unwrap_err(), BudgetExceeded);
        let part = first.slice(5..6);
        drop(first);
        assert_eq!(budget.used(), 2 * MIN_COUNTED_BYTES);
        drop(part);
        assert_eq!(budget.used(), 0);
        // A message larger than the budget fits if nothing else is in memory.
        let mut large = budget.reserve(4 * MIN_COUNTED_BYTES).unwrap();
        assert_eq!(large.grow(5 * MIN_COUNTED_BYTES), Err(BudgetExceeded));
        assert_eq!(large.grow(4 * MIN_COUNTED_BYTES), Ok(()));
        drop(large);
        let mut growing = budget.reserve(1).unwrap();
        assert_eq!((growing.grow(MIN_COUNTED_BYTES), budget.used()), (Ok(()), MIN_COUNTED_BYTES));
        // A response is always counted; the next message is refused.
        let response = budget.track(buffer(3 * MIN_COUNTED_BYTES));
        assert_eq!(
            (budget.used(), growing.grow(MIN_COUNTED_BYTES + 1)),
            (4 * MIN_COUNTED_BYTES, Err(BudgetExceeded))
        );
        drop((growing, response));
        assert_eq!((budget.track(buffer(1)).len(), budget.used()), (1, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn acquire_succeeds_when_bytes_are_released() {
        let budget = ByteBudget::new(10);
        let reservation = budget.reserve(10).unwrap();
        let waiting = {
            let budget = Arc::clone(&budget);
            tokio::spawn(async move { budget.acquire(5).await.bytes })
        };
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert!(!waiting.is_finished());
        drop(reservation);
        assert_eq!(waiting.await.unwrap(), 5);
    }
}
