//! The state of one server: its configuration, its start, and its running instance.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{Era, Method, ServerName, Sharing};
use mcp_host_registry::{CatalogServer, DesiredServer, ServerLists};
use tokio::time::Instant;

use super::lease::LeaseHistory;
use super::supervision::RestartState;
use super::{DrainMode, MachineAction, StartTicket, desired_server};
use crate::error::HostError;
use crate::supervisor::lists::ListSnapshot;
use crate::supervisor::tool_problem::ToolProblem;

/// The state of one server.
pub(super) struct ServerSlot<I> {
    /// Its name as written in the configuration.
    pub(super) name: ServerName,
    /// The configured server.
    pub(super) config: SlotConfig,
    /// The current start.
    pub(super) start: StartState,
    /// Whether it is enabled.
    pub(super) mode: SlotMode,
    /// Consecutive failures and the next restart.
    pub(super) restarts: RestartState,
    /// Failures of leased instances.
    pub(super) lease_history: LeaseHistory,
    /// The method of the first server request. With [`Sharing::Auto`], each dialog has its own instance from then on.
    pub(super) first_request: Option<Method>,
    /// The running instance, of the current or the previous configuration.
    pub(super) running: Option<RunningServer<I>>,
    /// The last running configuration and its lists, so that an error can name the server of a tool.
    pub(super) last_run: Option<(Arc<ResolvedServer>, Arc<ServerLists>)>,
}

/// The configuration of a slot.
pub(super) enum SlotConfig {
    /// A valid server.
    Server(Arc<ResolvedServer>),
    /// An invalid entry.
    Invalid(HostError),
    /// The slot is new: its configuration is set next.
    Missing,
}

/// Whether a server is enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotMode {
    Enabled,
    /// Disabled until it is restarted or its entry changes.
    Disabled,
}

/// The state of a start.
pub(super) enum StartState {
    /// Starting.
    Pending {
        /// The ticket of the start.
        ticket: StartTicket,
        /// The configuration that is started.
        server: Arc<ResolvedServer>,
        /// The failure before this attempt; `None` for a first attempt.
        last_failure: Option<HostError>,
    },
    /// There is nothing to start: the server runs, is disabled, or is invalid.
    Done,
    /// The start failed, or the connection was lost.
    Failed(HostError),
}

/// A running server.
pub(super) struct RunningServer<I> {
    /// Its start.
    pub(super) ticket: StartTicket,
    /// Its configuration.
    pub(super) server: Arc<ResolvedServer>,
    /// The shared instance; `None` if each dialog has its own.
    pub(super) instance: Option<I>,
    pub(super) era: Era,
    pub(super) listing: Arc<ListSnapshot>,
    /// It as the input of the last catalog.
    pub(super) catalog_server: Option<Arc<CatalogServer>>,
    /// The time of its start.
    pub(super) since: Instant,
    /// Whether it ended between two calls. Its successor is being started, and calls wait for that.
    pub(super) has_ended: bool,
    /// The time of the next probe; `None` while one runs, or without probes.
    pub(super) next_probe: Option<Instant>,
    /// Problems that calls reported, by tool name and problem, with their reasons.
    pub(super) tool_problems: BTreeMap<(String, ToolProblem), String>,
}

impl<I> RunningServer<I> {
    /// Returns it as the input of a catalog: the same as before if neither its rules nor its lists have changed.
    pub(super) fn catalog_server(&mut self) -> Arc<CatalogServer> {
        let (exposure, lists) = (&self.server.spec.exposure, &self.listing.lists);
        let is_current = |it: &&Arc<CatalogServer>| Arc::ptr_eq(&it.lists, lists) && it.exposure == *exposure;
        if let Some(known) = self.catalog_server.as_ref().filter(is_current) {
            return Arc::clone(known);
        }
        let server = CatalogServer::new(self.ticket.server.clone(), exposure.clone(), Arc::clone(lists));
        Arc::clone(self.catalog_server.insert(Arc::new(server)))
    }
}

impl<I: Clone> ServerSlot<I> {
    /// Creates a slot without a configuration.
    pub(super) fn new(name: ServerName) -> ServerSlot<I> {
        ServerSlot {
            name,
            config: SlotConfig::Missing,
            start: StartState::Done,
            mode: SlotMode::Enabled,
            restarts: RestartState::default(),
            lease_history: LeaseHistory::default(),
            first_request: None,
            running: None,
            last_run: None,
        }
    }

    /// Creates the slot of an invalid entry.
    pub(super) fn invalid(name: ServerName, failure: HostError) -> ServerSlot<I> {
        ServerSlot { config: SlotConfig::Invalid(failure), ..ServerSlot::new(name) }
    }

    /// Returns the settings with which a new configuration is compared: those of the configured server, else those of
    /// the running one.
    pub(super) fn desired_server(&self) -> Option<DesiredServer<'_>> {
        let running = || self.running.as_ref().map(|it| &it.server);
        self.configured().or_else(running).map(|server| desired_server(server))
    }

    /// Returns the configured server, if its entry is valid.
    pub(super) fn server(&self) -> Option<Arc<ResolvedServer>> {
        self.configured().cloned()
    }

    fn configured(&self) -> Option<&Arc<ResolvedServer>> {
        match &self.config {
            SlotConfig::Server(server) => Some(server),
            SlotConfig::Invalid(_) | SlotConfig::Missing => None,
        }
    }

    pub(super) fn is_starting(&self, ticket: &StartTicket) -> bool {
        matches!(&self.start, StartState::Pending { ticket: pending, .. } if pending == ticket)
    }

    pub(super) fn is_running(&self, ticket: &StartTicket) -> bool {
        self.running.as_ref().is_some_and(|it| it.ticket == *ticket)
    }

    pub(super) fn running_mut(&mut self, ticket: &StartTicket) -> Option<&mut RunningServer<I>> {
        self.running.as_mut().filter(|it| it.ticket == *ticket)
    }

    /// Sets the configuration. A running instance remains if only names, filters or limits differ (DM-110). Otherwise
    /// it remains until its successor is ready (DM-101). A server that is not running is started.
    pub(super) fn configure(
        &mut self,
        server: Arc<ResolvedServer>,
        last_ticket: &mut u64,
    ) -> Vec<MachineAction<I>> {
        let mut actions = Vec::new();
        let desired = desired_server(&server);
        // A disabled server stays disabled until its entry changes.
        let is_unchanged = self.configured().is_some_and(|configured| desired_server(configured) == desired);
        self.config = SlotConfig::Server(Arc::clone(&server));
        if self.mode == SlotMode::Disabled && is_unchanged {
            return actions;
        }
        self.mode = SlotMode::Enabled;
        let is_leased = self.is_leased(&server);
        let can_remain = |it: &&mut RunningServer<I>| {
            !it.has_ended
                && desired_server(&it.server).runtime == desired.runtime
                && it.instance.is_none() == is_leased
        };
        if let Some(running) = self.running.as_mut().filter(can_remain) {
            if let Some(instance) =
                running.instance.clone().filter(|_| running.server.spec.limits != server.spec.limits)
            {
                actions.push(MachineAction::SetLimits(instance, Arc::clone(&server)));
            }
            running.server = Arc::clone(&server);
            actions.extend(self.abort_start());
            return actions;
        }
        let is_pending = |pending: &ResolvedServer| desired_server(pending).runtime == desired.runtime;
        if matches!(&self.start, StartState::Pending { server, .. } if is_pending(server)) {
            return actions;
        }
        let is_other = |it: &RunningServer<I>| desired_server(&it.server).runtime != desired.runtime;
        if self.running.as_ref().is_none_or(is_other) {
            // Another program may send no server requests.
            self.first_request = None;
        }
        actions.extend(self.abort_start());
        self.restarts = RestartState::default();
        self.lease_history = LeaseHistory::default();
        actions.push(self.begin_start(Arc::clone(&server), None, last_ticket));
        actions
    }

    /// Returns whether each dialog gets its own instance of `server`.
    pub(super) fn is_leased(&self, server: &ResolvedServer) -> bool {
        if server.endpoint.is_per_user() {
            return true;
        }
        match server.spec.sharing {
            Sharing::Auto => self.first_request.is_some(),
            Sharing::Shared => false,
            Sharing::PerOwner => true,
        }
    }

    /// Begins a start after a failure: that of the configured server, else that of the last one that ran.
    pub(super) fn retry(&mut self, last_ticket: &mut u64) -> Option<MachineAction<I>> {
        let StartState::Failed(failure) = &self.start else { return None };
        let server = self.server().or_else(|| self.last_run.as_ref().map(|it| Arc::clone(&it.0)))?;
        let failure = failure.clone();
        self.restarts.clear_schedule();
        Some(self.begin_start(server, Some(failure), last_ticket))
    }

    /// Begins a start with a new ticket.
    fn begin_start(
        &mut self,
        server: Arc<ResolvedServer>,
        last_failure: Option<HostError>,
        last_ticket: &mut u64,
    ) -> MachineAction<I> {
        *last_ticket += 1;
        let ticket = StartTicket { server: server.spec.id.clone(), number: *last_ticket };
        self.start =
            StartState::Pending { ticket: ticket.clone(), server: Arc::clone(&server), last_failure };
        MachineAction::Start(ticket, server)
    }

    /// Marks the entry invalid. A running instance remains.
    pub(super) fn set_invalid(&mut self, failure: HostError) {
        self.config = SlotConfig::Invalid(failure);
    }

    /// Aborts a pending start, clears a failed one, and cancels a scheduled restart.
    pub(super) fn abort_start(&mut self) -> Option<MachineAction<I>> {
        self.restarts.clear_schedule();
        match std::mem::replace(&mut self.start, StartState::Done) {
            StartState::Pending { ticket, .. } => Some(MachineAction::AbortStart(ticket)),
            StartState::Done | StartState::Failed(_) => None,
        }
    }

    /// Handles the loss of the running instance.
    pub(super) fn disconnect(&mut self, failure: HostError) -> Option<MachineAction<I>> {
        let running = self.running.take()?;
        // The loss replaces the failure of an earlier start. A pending start may still succeed.
        match self.start {
            StartState::Pending { .. } => {}
            StartState::Done | StartState::Failed(_) => self.start = StartState::Failed(failure),
        }
        self.last_run = Some((running.server, Arc::clone(&running.listing.lists)));
        running.instance.map(|it| MachineAction::retire(it, DrainMode::CallsAndPins))
    }

    /// Returns whether the running instance ended between two calls.
    pub(super) fn has_ended(&self) -> bool {
        self.running.as_ref().is_some_and(|it| it.has_ended)
    }

    /// Starts the successor of an instance that ended between two calls, unless one is being started. Until then the
    /// instance remains, and calls wait.
    pub(super) fn start_successor(&mut self, last_ticket: &mut u64) -> Option<MachineAction<I>> {
        let running = self.running.as_mut()?;
        (running.has_ended, running.next_probe) = (true, None);
        match self.start {
            StartState::Pending { .. } => None,
            StartState::Done | StartState::Failed(_) => {
                let server = Arc::clone(&running.server);
                self.restarts.clear_schedule();
                Some(self.begin_start(self.server().unwrap_or(server), None, last_ticket))
            }
        }
    }

    /// Restarts an unchanged server. The running instance remains until its successor is ready.
    pub(super) fn restart(&mut self, last_ticket: &mut u64) -> Vec<MachineAction<I>> {
        let last_run = self.last_run.as_ref().map(|it| Arc::clone(&it.0));
        let Some(server) =
            self.server().or(self.running.as_ref().map(|it| Arc::clone(&it.server))).or(last_run)
        else {
            return Vec::new();
        };
        let mut actions: Vec<_> = self.abort_start().into_iter().collect();
        self.mode = SlotMode::Enabled;
        self.restarts = RestartState::default();
        self.lease_history = LeaseHistory::default();
        actions.push(self.begin_start(server, None, last_ticket));
        actions
    }

    /// Disables the server.
    pub(super) fn disable(&mut self) -> Vec<MachineAction<I>> {
        let mut actions: Vec<_> = self.abort_start().into_iter().collect();
        self.mode = SlotMode::Disabled;
        self.lease_history = LeaseHistory::default();
        if let Some(running) = self.running.take() {
            self.last_run = Some((running.server, Arc::clone(&running.listing.lists)));
            actions.extend(running.instance.map(|it| MachineAction::retire(it, DrainMode::CallsAndPins)));
        }
        actions
    }
}
