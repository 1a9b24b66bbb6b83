//! The usage of sessions and dialogs, which decides which one is evicted first.

use std::time::Duration;

use mcp_host_model::{Method, MethodName};
use tokio::time::Instant;

use crate::access::principal::Principal;

/// The error for too many sessions or dialogs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CapacityError;

/// How long an unused session with a call is protected from eviction if there are no tokens, because it may belong to
/// another client.
pub(crate) const EVICTION_PROTECTION: Duration = Duration::from_secs(60);

/// The usage of a session or dialog that is unused now. The smallest is evicted first: without a call, then the least
/// recently used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Usage {
    /// Whether the client has called anything. A client that has only listed loses nothing.
    pub(crate) has_called: bool,
    pub(crate) last_used: Instant,
}

impl Usage {
    /// Whether a session or dialog may be evicted for another one of the same client.
    pub(crate) fn is_evictable(self, principal: &Principal, now: Instant) -> bool {
        let is_protected = || now.saturating_duration_since(self.last_used) < EVICTION_PROTECTION;
        !principal.is_anonymous() || !self.has_called || !is_protected()
    }
}

/// Whether a request does more than list.
pub(crate) fn is_call(method: &MethodName) -> bool {
    !method.is_list() && !matches!(method.as_known(), Some(Method::Ping | Method::Discover))
}
