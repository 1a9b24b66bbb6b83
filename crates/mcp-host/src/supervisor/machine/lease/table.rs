//! The published leases, and replies to lease requests.

use std::collections::HashMap;

use mcp_host_model::ServerId;

use crate::error::HostError;
use crate::state::dialog_id::DialogId;

/// The id of a lease request that waits for its reply.
pub(crate) type WaiterId = u64;

/// A request for a leased instance.
#[derive(Debug, Clone)]
pub(crate) struct LeaseRequest {
    /// The dialog.
    pub(crate) dialog: DialogId,
    /// The server.
    pub(crate) server: ServerId,
    /// The ticket number of the base in the routing table of the caller.
    pub(crate) base: u64,
}

/// The reply to a lease request or release.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LeaseReply<I> {
    /// The leased instance.
    Granted(I),
    /// The dialog gets no instance, because of this error.
    Refused(HostError),
    /// The server has changed: look it up again.
    Stale,
    /// The lease was released and its instance closed.
    Released,
    /// There was no lease.
    NotHeld,
}

/// The published leases.
#[derive(Debug, Clone)]
pub(crate) struct LeaseTable<I> {
    /// The running leases by dialog and server.
    pub(crate) active: HashMap<(DialogId, ServerId), ActiveLease<I>>,
    /// Dialogs to remind of servers, in the order of the first leases.
    pub(crate) reminders: Vec<(DialogId, ServerId)>,
}

/// A published lease.
#[derive(Debug, Clone)]
pub(crate) struct ActiveLease<I> {
    /// The ticket number of its base.
    pub(crate) base: u64,
    /// The instance.
    pub(crate) instance: I,
}

impl<I> LeaseTable<I> {
    /// Creates a table without leases.
    pub(crate) fn empty() -> LeaseTable<I> {
        LeaseTable { active: HashMap::new(), reminders: Vec::new() }
    }
}
