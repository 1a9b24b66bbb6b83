//! The published leases, and replies to lease requests.

use std::collections::HashMap;

use mcp_host_model::ServerId;

use crate::error::HostError;
use crate::state::dialog_id::DialogId;

/// Identifies a waiting call.
pub(crate) type WaiterId = u64;

/// A request for a leased instance.
#[derive(Debug, Clone)]
pub(crate) struct LeaseRequest {
    /// The dialog.
    pub(crate) dialog: DialogId,
    /// The server.
    pub(crate) server: ServerId,
    /// The base that the caller has seen.
    pub(crate) base: u64,
}

/// The reply to a lease request or release.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LeaseReply<I> {
    /// The instance.
    Granted(I),
    /// No instance is available.
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
    /// Leases by dialog and server.
    pub(crate) held: HashMap<(DialogId, ServerId), ActiveLease<I>>,
    /// Dialogs to remind of servers, in the order of the first leases.
    pub(crate) reminders: Vec<(DialogId, ServerId)>,
}

/// A published lease.
#[derive(Debug, Clone)]
pub(crate) struct ActiveLease<I> {
    /// The base.
    pub(crate) base: u64,
    /// The instance.
    pub(crate) instance: I,
}

impl<I> LeaseTable<I> {
    /// A table without leases.
    pub(crate) fn empty() -> LeaseTable<I> {
        LeaseTable { held: HashMap::new(), reminders: Vec::new() }
    }
}
