//! The leases of all dialogs.

use std::sync::Arc;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{Era, ServerId};
use mcp_host_registry::ServerLists;
use tokio::time::Instant;

use super::table::WaiterId;
use crate::state::dialog_id::DialogId;
use crate::supervisor::machine::protocol::StartTicket;

/// All leases.
pub(in crate::supervisor::machine) struct Leases<I> {
    pub(in crate::supervisor::machine) held: Vec<Lease<I>>,
    pub(in crate::supervisor::machine) reminders: Vec<(DialogId, ServerId)>,
    pub(in crate::supervisor::machine) changed: bool,
}

pub(in crate::supervisor::machine) struct Lease<I> {
    pub(in crate::supervisor::machine) dialog: DialogId,
    /// The number of ended dialogs at the last request. An earlier end belongs to another dialog with the same id.
    pub(in crate::supervisor::machine) ends_seen: u64,
    pub(in crate::supervisor::machine) ticket: StartTicket,
    pub(in crate::supervisor::machine) base: u64,
    pub(in crate::supervisor::machine) server: Arc<ResolvedServer>,
    pub(in crate::supervisor::machine) state: LeaseState<I>,
}

pub(in crate::supervisor::machine) enum LeaseState<I> {
    Starting(Vec<WaiterId>),
    Running(RunningLease<I>),
}

pub(in crate::supervisor::machine) struct RunningLease<I> {
    pub(in crate::supervisor::machine) instance: I,
    pub(in crate::supervisor::machine) era: Era,
    pub(in crate::supervisor::machine) lists: Arc<ServerLists>,
    /// The time of the start.
    pub(in crate::supervisor::machine) since: Instant,
    /// When it is next checked for idleness.
    pub(in crate::supervisor::machine) idle_check: Option<Instant>,
    /// When it is next probed.
    pub(in crate::supervisor::machine) probe: Option<Instant>,
}

impl<I> Leases<I> {
    pub(in crate::supervisor::machine) fn new() -> Leases<I> {
        Leases { held: Vec::new(), reminders: Vec::new(), changed: false }
    }

    pub(in crate::supervisor::machine) fn next_wake(&self) -> impl Iterator<Item = Instant> {
        self.live().flat_map(|it| [it.idle_check, it.probe]).flatten()
    }

    /// Whether a leased start is running.
    #[cfg(test)]
    pub(in crate::supervisor::machine) fn is_starting(&self, ticket: &StartTicket) -> bool {
        self.held.iter().any(|it| it.ticket == *ticket && matches!(it.state, LeaseState::Starting(_)))
    }

    pub(in crate::supervisor::machine) fn live(&self) -> impl Iterator<Item = &RunningLease<I>> {
        self.held.iter().filter_map(|it| match &it.state {
            LeaseState::Running(live) => Some(live),
            LeaseState::Starting(_) => None,
        })
    }

    /// Whether the instance of a start has the token of a user.
    pub(in crate::supervisor::machine) fn is_of_user(&self, ticket: &StartTicket) -> bool {
        self.held.iter().any(|it| it.ticket == *ticket && it.server.endpoint.is_per_user())
    }

    pub(in crate::supervisor::machine) fn live_by(
        &mut self,
        ticket: &StartTicket,
    ) -> Option<(&mut RunningLease<I>, u64, &DialogId)> {
        let lease = self.held.iter_mut().find(|it| it.ticket == *ticket)?;
        match &mut lease.state {
            LeaseState::Running(live) => Some((live, lease.base, &lease.dialog)),
            LeaseState::Starting(_) => None,
        }
    }
}
