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
    /// Starting and running leases, in the order of their starts.
    pub(in crate::supervisor::machine) all: Vec<Lease<I>>,
    /// The dialogs to remind of servers, in the order of the first leases.
    pub(in crate::supervisor::machine) reminders: Vec<(DialogId, ServerId)>,
    /// Whether anything has changed since the last [`LeaseTable`](super::LeaseTable).
    pub(in crate::supervisor::machine) is_changed: bool,
}

/// An instance that is reserved for one dialog, or its start.
pub(in crate::supervisor::machine) struct Lease<I> {
    pub(in crate::supervisor::machine) dialog: DialogId,
    /// The number of ended dialogs at the last request. An earlier end belongs to another dialog with the same id.
    pub(in crate::supervisor::machine) ends_seen: u64,
    /// The ticket of its own start.
    pub(in crate::supervisor::machine) ticket: StartTicket,
    /// The ticket number of its base.
    pub(in crate::supervisor::machine) base: u64,
    pub(in crate::supervisor::machine) server: Arc<ResolvedServer>,
    pub(in crate::supervisor::machine) state: LeaseState<I>,
}

/// The state of a lease.
pub(in crate::supervisor::machine) enum LeaseState<I> {
    /// The instance is starting; these requests wait for it.
    Starting(Vec<WaiterId>),
    Running(RunningLease<I>),
}

/// A running leased instance.
pub(in crate::supervisor::machine) struct RunningLease<I> {
    pub(in crate::supervisor::machine) instance: I,
    pub(in crate::supervisor::machine) era: Era,
    pub(in crate::supervisor::machine) lists: Arc<ServerLists>,
    /// The time of its start.
    pub(in crate::supervisor::machine) since: Instant,
    /// The time of the next check whether it is idle.
    pub(in crate::supervisor::machine) idle_check: Option<Instant>,
    /// The time of the next probe.
    pub(in crate::supervisor::machine) next_probe: Option<Instant>,
}

impl<I> Leases<I> {
    pub(in crate::supervisor::machine) fn new() -> Leases<I> {
        Leases { all: Vec::new(), reminders: Vec::new(), is_changed: false }
    }

    /// Returns the times of all scheduled checks and probes.
    pub(in crate::supervisor::machine) fn due_times(&self) -> impl Iterator<Item = Instant> {
        self.running().flat_map(|it| [it.idle_check, it.next_probe]).flatten()
    }

    /// Returns whether the start of this ticket is a leased one that has not ended.
    #[cfg(test)]
    pub(in crate::supervisor::machine) fn is_starting(&self, ticket: &StartTicket) -> bool {
        self.all.iter().any(|it| it.ticket == *ticket && matches!(it.state, LeaseState::Starting(_)))
    }

    /// Returns the running leased instances.
    pub(in crate::supervisor::machine) fn running(&self) -> impl Iterator<Item = &RunningLease<I>> {
        self.all.iter().filter_map(|it| match &it.state {
            LeaseState::Running(running) => Some(running),
            LeaseState::Starting(_) => None,
        })
    }

    /// Returns whether the instance of this start has the token of a user.
    pub(in crate::supervisor::machine) fn is_of_user(&self, ticket: &StartTicket) -> bool {
        self.all.iter().any(|it| it.ticket == *ticket && it.server.endpoint.is_per_user())
    }

    /// Returns the running instance of this start, the ticket number of its base, and its dialog.
    pub(in crate::supervisor::machine) fn find_running(
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
