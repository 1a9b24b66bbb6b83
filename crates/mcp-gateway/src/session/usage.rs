//! The usage of sessions and dialogs, which decides which one is evicted first.

use std::time::Duration;

use mcp_host_model::{Method, MethodName};
use tokio::time::Instant;

use crate::access::principal::Principal;

/// The error for too many sessions or dialogs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CapacityError;

/// How long a session with a call is active after its last use.
pub(crate) const EVICTION_PROTECTION: Duration = Duration::from_secs(60);

/// How long a session without a call is active for other clients: its client may just begin.
const START_PROTECTION: Duration = Duration::from_secs(10);

/// The usage of a session or dialog that is unused now. The smallest is evicted first: without a call, then the least
/// recently used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Usage {
    /// Whether the client has called anything. A client that has only listed loses nothing.
    pub(crate) has_called: bool,
    pub(crate) last_used: Instant,
}

impl Usage {
    /// Whether the session or dialog may be evicted for another one, of the same client or of any.
    fn is_evictable(self, is_own: bool, now: Instant) -> bool {
        let unused = now.saturating_duration_since(self.last_used);
        match (self.has_called, is_own) {
            (true, _) => unused >= EVICTION_PROTECTION,
            (false, false) => unused >= START_PROTECTION,
            (false, true) => true,
        }
    }
}

/// Maximum numbers of sessions, or of dialogs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableLimits {
    pub(crate) total: usize,
    pub(crate) per_client: usize,
}

/// An entry of a table of sessions or dialogs.
#[derive(Debug)]
pub(crate) struct TableEntry<'a, K> {
    pub(crate) key: &'a K,
    pub(crate) principal: &'a Principal,
    /// `None` while it is used.
    pub(crate) usage: Option<Usage>,
}

impl TableLimits {
    /// Whether one more entry certainly fits, because so few exist that no client can have more than its share.
    pub(crate) fn have_room(self, total: usize, own: usize) -> bool {
        total < self.total / 2 && own < self.per_client
    }

    /// Decides whether one more entry of a client fits, and which entry is evicted for it.
    ///
    /// At its own limit, a client loses an entry of its own. In a full table the entry of any client whose loss matters
    /// least is evicted. An active one is never evicted. Active entries of a client with a token leave as many
    /// to the others, so that each further client finds room. Without tokens all clients count as one.
    pub(crate) fn make_room<'a, K: Clone + 'a>(
        self,
        entries: impl Iterator<Item = TableEntry<'a, K>>,
        principal: &Principal,
        now: Instant,
    ) -> Result<Option<K>, CapacityError> {
        let (mut total, mut own, mut active, mut own_active) = (0, 0, 0, 0);
        let mut evictable: Option<(Usage, &K)> = None;
        let mut own_evictable: Option<(Usage, &K)> = None;
        let keep_first = |kept: &mut Option<(Usage, &'a K)>, usage: Usage, key: &'a K| {
            if kept.is_none_or(|(first, _)| usage < first) {
                *kept = Some((usage, key));
            }
        };
        for TableEntry { key, principal: owner, usage } in entries {
            let is_own = owner == principal;
            total += 1;
            own += usize::from(is_own);
            match usage.filter(|usage| usage.is_evictable(is_own, now)) {
                Some(usage) => {
                    keep_first(&mut evictable, usage, key);
                    if is_own {
                        keep_first(&mut own_evictable, usage, key);
                    }
                }
                None => {
                    active += 1;
                    own_active += usize::from(is_own);
                }
            }
        }
        let is_over_share =
            !principal.is_anonymous() && own_active > 0 && own_active >= self.total.saturating_sub(active);
        let evicted = match () {
            () if is_over_share => None,
            () if own >= self.per_client => own_evictable,
            () if total >= self.total => evictable,
            () => return Ok(None),
        };
        evicted.map(|(_, key)| Some(key.clone())).ok_or(CapacityError)
    }
}

/// Whether a request does more than list.
pub(crate) fn is_call(method: &MethodName) -> bool {
    !method.is_list() && !matches!(method.as_known(), Some(Method::Ping | Method::Discover))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expects which entry is evicted for a new one of `ann`. An entry is its owner and the seconds since its last use:
    /// `bob90` has called, `bob90-` has not, `bob` is in use. The limits are 8 in total and 4 for each client.
    #[track_caller]
    fn check(entries: &str, want: Result<Option<&str>, CapacityError>) {
        let now = Instant::now() + Duration::from_secs(3600);
        let parsed: Vec<(String, Principal, Option<Usage>)> = (entries.split_whitespace())
            .map(|entry| {
                let digits: String = entry.chars().filter(char::is_ascii_digit).collect();
                let usage = digits.parse().ok().map(|seconds| Usage {
                    has_called: !entry.ends_with('-'),
                    last_used: now - Duration::from_secs(seconds),
                });
                (entry.to_owned(), Principal::named(&entry[..3]), usage)
            })
            .collect();
        let limits = TableLimits { total: 8, per_client: 4 };
        let entries_of_table =
            parsed.iter().map(|(key, principal, usage)| TableEntry { key, principal, usage: *usage });
        let made = limits.make_room(entries_of_table, &Principal::named("ann"), now);
        assert_eq!(made.as_ref().map(|key| key.as_deref()).map_err(|error| *error), want, "{entries}");
    }

    // RPT-473
    #[test]
    fn idle_entries_are_evicted_first_whoever_owns_them() {
        check("ann1 bob1", Ok(None));
        let full = "bob70 bob71 cat90 cat62 dan65 dan66 dan67";
        check(&format!("{full} ann"), Ok(Some("cat90")));
        // One without a call matters less, unless its client has just begun.
        check(&format!("{full} bob20-"), Ok(Some("bob20-")));
        check(&format!("{full} bob5-"), Ok(Some("cat90")));
        check("bob1 bob2 bob cat1 cat2 cat3 dan1 dan2", Err(CapacityError));
        // At its own limit a client loses an entry of its own, but no active one.
        check("ann1 ann61 ann2 ann3 bob99", Ok(Some("ann61")));
        check("ann1 ann0- ann2 ann3 bob99", Ok(Some("ann0-")));
        check("ann1 ann2 ann3 ann bob99", Err(CapacityError));
        check("ann1 ann0- ann2- bob99 ann70", Ok(Some("ann2-")));
    }

    // RPT-474
    #[test]
    fn active_entries_of_a_client_leave_room_for_others() {
        check("bob1 bob2 bob3 bob4", Ok(None));
        check("bob1 bob2 bob3 bob4 cat1 cat2", Ok(None));
        check("bob1 bob2 bob3 bob4 ann1", Ok(None));
        check("bob1 bob2 bob3 bob4 ann1 ann2", Err(CapacityError));
        check("bob1 bob2 bob3 bob4 cat1 cat2 dan1", Ok(None));
    }
}
