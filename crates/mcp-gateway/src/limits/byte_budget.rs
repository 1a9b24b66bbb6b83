//! A budget for the bytes of messages and responses in memory, divided between clients.
//!
//! Bytes count until the last slice of their buffer is dropped. Small messages do not count, because the limits on
//! requests and connections bound them.
//!
//! An account may use as much as remains free for the others: one alone has half of the limit, two a third each. So an
//! account that releases nothing leaves room. Each account also has a reserve, which it may use when the rest is full.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use mcp_host_model::{RpcError, code};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::access::principal::Principal;

/// The size in bytes from which a message counts.
pub(crate) const MIN_COUNTED_BYTES: usize = 16 * 1024;

/// The reserve of an account is the limit divided by this number.
const RESERVE_DIVISOR: usize = 16;
/// Responses are kept until all bytes reach the limit times this number, because their requests have been accepted.
const RESPONSE_FACTOR: usize = 2;
/// Reserves may be used until all bytes reach the limit times this number.
const RESERVE_FACTOR: usize = 3;

/// The owner of bytes in memory, which has a share of the budget.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Account {
    /// A client with a token, or a stdio client.
    Client(Principal),
    /// A connection without a token.
    Connection(u64),
}

/// The budget, with the bytes that each account uses.
#[derive(Debug)]
pub(crate) struct ByteBudget {
    limit: usize,
    /// The bytes of all accounts.
    used: AtomicUsize,
    /// The bytes of each account that uses some.
    accounts: Mutex<HashMap<Account, usize>>,
    /// Notified when bytes were released.
    freed: Notify,
}

/// Reserved bytes. Released on drop.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<ByteBudget>,
    account: Account,
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

/// The bytes that an account uses before and after a reservation.
#[derive(Debug, Clone, Copy)]
struct AccountUsage {
    before: usize,
    after: usize,
    /// The bytes of all accounts after the reservation.
    total: usize,
}

impl ByteBudget {
    /// A budget of `limit` bytes.
    pub(crate) fn new(limit: usize) -> Arc<ByteBudget> {
        Arc::new(ByteBudget {
            limit,
            used: AtomicUsize::new(0),
            accounts: Mutex::default(),
            freed: Notify::new(),
        })
    }

    /// The bytes in use.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether an account uses more than its share, so that its next request has to wait.
    pub(crate) fn is_exceeded_by(&self, account: &Account) -> bool {
        // Fast path: a share is at least as large as what is free.
        if self.used() <= self.limit / 2 {
            return false;
        }
        let accounts = self.accounts.lock();
        let own = accounts.get(account).copied().unwrap_or_default();
        own > self.reserve_size().max(self.limit.saturating_sub(self.used()))
    }

    /// The error for a request of an account that uses more than its share.
    pub(crate) fn exceeded_error(&self) -> RpcError {
        let message = format!(
            "the large messages and unread responses of this client in memory have reached its share of the limit \
             of {} bytes for all clients: read the responses or cancel requests, then try again",
            self.limit
        );
        RpcError::new(code::SERVER_ERROR, message)
    }

    /// Reserves bytes for a message. A message of any size fits if the account uses nothing.
    pub(crate) fn reserve(
        self: &Arc<ByteBudget>,
        account: &Account,
        bytes: usize,
    ) -> Result<Reservation, BudgetExceeded> {
        self.reserve_if(account, bytes, |usage| usage.after <= self.limit.saturating_sub(usage.total))
    }

    /// Reserves bytes as soon as they are free. Cancel-safe.
    pub(crate) async fn acquire(self: &Arc<ByteBudget>, account: &Account, bytes: usize) -> Reservation {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            // Registered before the check, so that no release is missed.
            freed.as_mut().enable();
            if let Ok(reservation) = self.reserve(account, bytes) {
                return reservation;
            }
            freed.await;
        }
    }

    /// Counts a response. It may exceed the share of its account, because its request has been accepted; then the
    /// account's next request is refused. It does not fit if the account already fills the budget.
    pub(crate) fn track(
        self: &Arc<ByteBudget>,
        account: &Account,
        bytes: Bytes,
    ) -> Result<Bytes, BudgetExceeded> {
        if bytes.len() < MIN_COUNTED_BYTES {
            return Ok(bytes);
        }
        let max_total = self.limit.saturating_mul(RESPONSE_FACTOR);
        let fits = |usage: AccountUsage| usage.after <= self.limit && usage.total <= max_total;
        Ok(self.reserve_if(account, bytes.len(), fits)?.attach(bytes))
    }

    /// Reserves bytes if `fits` returns true, or if they are within the account's reserve.
    fn reserve_if(
        self: &Arc<ByteBudget>,
        account: &Account,
        bytes: usize,
        fits: impl FnOnce(AccountUsage) -> bool,
    ) -> Result<Reservation, BudgetExceeded> {
        let mut accounts = self.accounts.lock();
        let before = accounts.get(account).copied().unwrap_or_default();
        let used = self.used();
        let usage =
            AccountUsage { before, after: before.saturating_add(bytes), total: used.saturating_add(bytes) };
        let has_reserve = usage.total <= self.limit.saturating_mul(RESERVE_FACTOR)
            && (usage.before == 0 || usage.after <= self.reserve_size());
        if used > 0 && !has_reserve && !fits(usage) {
            return Err(BudgetExceeded);
        }
        // An empty reservation must leave no entry.
        if bytes > 0 {
            accounts.insert(account.clone(), usage.after);
            self.used.store(usage.total, Ordering::Relaxed);
        }
        Ok(Reservation { budget: Arc::clone(self), account: account.clone(), bytes })
    }

    /// The size of each account's reserve.
    fn reserve_size(&self) -> usize {
        self.limit / RESERVE_DIVISOR
    }
}

impl Reservation {
    /// Extends the reservation to `bytes` in total.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), BudgetExceeded> {
        if let Some(more @ 1..) = bytes.checked_sub(self.bytes) {
            let max_total = self.budget.limit.saturating_mul(RESERVE_FACTOR);
            // The account's only message may have any size.
            let is_only = |usage: AccountUsage| usage.before == self.bytes && usage.total <= max_total;
            let is_in_share =
                |usage: AccountUsage| usage.after <= self.budget.limit.saturating_sub(usage.total);
            let fits = |usage| is_only(usage) || is_in_share(usage);
            let mut more = self.budget.reserve_if(&self.account, more, fits)?;
            self.bytes += std::mem::take(&mut more.bytes);
        }
        Ok(())
    }

    /// Ties the reservation to a buffer: it is released when the last slice of the buffer is dropped.
    pub(crate) fn attach(self, bytes: Bytes) -> Bytes {
        if bytes.len() < MIN_COUNTED_BYTES {
            return bytes;
        }
        Bytes::from_owner(TrackedBuffer { bytes, _reservation: self })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut accounts = self.budget.accounts.lock();
        self.budget.used.store(self.budget.used().saturating_sub(self.bytes), Ordering::Relaxed);
        if let Entry::Occupied(mut entry) = accounts.entry(self.account.clone()) {
            *entry.get_mut() = entry.get().saturating_sub(self.bytes);
            if *entry.get() == 0 {
                entry.remove();
            }
        }
        drop(accounts);
        self.budget.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: usize = MIN_COUNTED_BYTES;

    fn buffer(bytes: usize) -> Bytes {
        Bytes::from(vec![b'x'; bytes])
    }

    fn account(name: &str) -> Account {
        Account::Client(Principal::named(name))
    }

    #[test]
    fn reserved_bytes_count_until_the_last_slice_is_dropped() {
        let budget = ByteBudget::new(3 * UNIT);
        let ann = account("ann");
        let first = budget.reserve(&ann, 2 * UNIT).unwrap().attach(buffer(2 * UNIT));
        assert_eq!(budget.reserve(&ann, 2 * UNIT).unwrap_err(), BudgetExceeded);
        let part = first.slice(5..6);
        drop(first);
        assert_eq!(budget.used(), 2 * UNIT);
        drop(part);
        assert_eq!(budget.used(), 0);
        // A message larger than the budget fits if nothing else is in memory.
        let mut large = budget.reserve(&ann, 4 * UNIT).unwrap();
        assert_eq!(large.grow(10 * UNIT), Err(BudgetExceeded));
        assert_eq!(large.grow(5 * UNIT), Ok(()));
        drop(large);
        let mut growing = budget.reserve(&ann, 1).unwrap();
        assert_eq!((growing.grow(3 * UNIT), budget.used()), (Ok(()), 3 * UNIT));
        drop(growing);
        assert_eq!(budget.track(&ann, buffer(1)).map(|it| (it.len(), budget.used())), Ok((1, 0)));
        assert!(budget.accounts.lock().is_empty());
    }

    #[test]
    fn account_that_releases_nothing_leaves_room_for_others() {
        let budget = ByteBudget::new(64 * UNIT);
        let fill = |account: &Account| {
            let mut res = Vec::new();
            while let Ok(reservation) = budget.reserve(account, UNIT) {
                res.push(reservation);
            }
            res
        };
        let stalled = fill(&account("ann"));
        assert_eq!(stalled.len(), 32);
        assert!(!budget.is_exceeded_by(&account("ann")));
        assert_eq!(fill(&account("bob")).len(), 16);
        // Responses may exceed the share, up to the limit.
        let mut responses = Vec::new();
        while let Ok(response) = budget.track(&account("ann"), buffer(UNIT)) {
            responses.push(response);
        }
        assert_eq!(responses.len(), 32);
        assert!(budget.is_exceeded_by(&account("ann")) && !budget.is_exceeded_by(&account("bob")));
        // The reserve remains, also when the budget is full; and one message of any size.
        assert_eq!(fill(&account("bob")).len(), 4);
        assert!(budget.reserve(&account("bob"), 20 * UNIT).is_ok());
        drop((stalled, responses));
        assert_eq!((budget.used(), budget.accounts.lock().len()), (0, 0));
    }

    #[test]
    fn all_accounts_together_are_bounded() {
        let budget = ByteBudget::new(16 * UNIT);
        let mut held = Vec::new();
        for number in 0..100 {
            held.extend(budget.reserve(&Account::Connection(number), 4 * UNIT));
            held.extend(budget.reserve(&Account::Connection(number), 4 * UNIT));
        }
        assert_eq!(budget.used(), 48 * UNIT);
    }

    #[tokio::test(start_paused = true)]
    async fn acquire_succeeds_when_bytes_are_released() {
        let budget = ByteBudget::new(10);
        let reservation = budget.reserve(&account("ann"), 10).unwrap();
        let waiting = {
            let budget = Arc::clone(&budget);
            tokio::spawn(async move { budget.acquire(&account("ann"), 5).await.bytes })
        };
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        assert!(!waiting.is_finished());
        drop(reservation);
        assert_eq!(waiting.await.unwrap(), 5);
    }
}
