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
pub(crate) struct Leases<I> {
    /// Starting and running leases, in the order of their starts.
    pub(crate) all: Vec<Lease<I>>,
    /// The dialogs to remind of servers, in the order of the first leases.
    pub(crate) reminders: Vec<(DialogId, ServerId)>,
    /// Whether anything has changed since the last [`LeaseTable`](super::LeaseTable).
    pub(crate) is_changed: bool,
}

/// An instance that is reserved for one dialog, or its start.
pub(crate) struct Lease<I> {
    pub(crate) dialog: DialogId,
    /// The number of ended dialogs at the last request. An earlier end belongs to another dialog with the same id.
    pub(crate) ends_seen: u64,
    /// The ticket of its own start.
    pub(crate) ticket: StartTicket,
    /// The ticket number of its base.
    pub(crate) base: u64,
    pub(crate) server: Arc<ResolvedServer>,
    pub(crate) state: LeaseState<I>,
}

/// The state of a lease.
pub(crate) enum LeaseState<I> {
    /// The instance is starting; these requests wait for it.
    Starting(Vec<WaiterId>),
    Running(RunningLease<I>),
}

/// A running leased instance.
pub(crate) struct RunningLease<I> {
    pub(crate) instance: I,
    pub(crate) era: Era,
    pub(crate) lists: Arc<ServerLists>,
    /// The time of its start.
    pub(crate) since: Instant,
    /// The time of the next check whether it is idle.
    pub(crate) idle_check: Option<Instant>,
    /// The time of the next probe.
    pub(crate) next_probe: Option<Instant>,
}

impl<I> Leases<I> {
    pub(crate) fn new() -> Leases<I> {
        Leases { all: Vec::new(), reminders: Vec::new(), is_changed: false }
    }

    /// Returns the times of all scheduled checks and probes.
    pub(crate) fn due_times(&self) -> impl Iterator<Item = Instant> {
        self.running().flat_map(|it| [it.idle_check, it.next_probe]).flatten()
    }

    /// Returns whether the start of this ticket is a leased one that has not ended.
    #[cfg(test)]
    pub(crate) fn is_starting(&self, ticket: &StartTicket) -> bool {
        self.all.iter().any(|it| it.ticket == *ticket && matches!(it.state, LeaseState::Starting(_)))
    }

    /// Returns the running leased instances.
    pub(crate) fn running(&self) -> impl Iterator<Item = &RunningLease<I>> {
        self.all.iter().filter_map(|it| match &it.state {
            LeaseState::Running(running) => Some(running),
            LeaseState::Starting(_) => None,
        })
    }

    /// Returns whether the instance of this start has the token of a user.
    pub(crate) fn is_of_user(&self, ticket: &StartTicket) -> bool {
        self.all.iter().any(|it| it.ticket == *ticket && it.server.endpoint.is_per_user())
    }

    /// Returns the running instance of this start, the ticket number of its base, and its dialog.
    pub(crate) fn find_running(
        &mut self,
        ticket: &StartTicket,
    ) -> Option<(&mut RunningLease<I>, u64, &DialogId)> {
        let lease = self.all.iter_mut().find(|it| it.ticket == *ticket)?;
        match &mut lease.state {
            LeaseState::Running(running) => Some((running, lease.base, &lease.dialog)),
            LeaseState::Starting(_) => None,
        }
    }
}
