//! The slot of one server: its configuration, its start, and its running instance.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{Era, Method, Sharing};
use mcp_host_registry::{DesiredServer, ServerLists};
use tokio::time::Instant;

use super::lease::LeaseHistory;
use super::supervision::RestartState;
use super::{DrainMode, MachineAction, StartTicket, desired};
use crate::error::HostError;
use crate::supervisor::lists::ListSnapshot;
use crate::supervisor::tool_problem::ToolProblem;

/// The state of one server.
pub(super) struct ServerSlot<I> {
    /// Its name as written in the configuration.
    pub(super) name: String,
    /// The configured server.
    pub(super) config: SlotConfig,
    /// The current start.
    pub(super) start: StartState,
    /// Whether it may run.
    pub(super) mode: SlotMode,
    /// Consecutive failures and the next restart.
    pub(super) restarts: RestartState,
    /// Failures of leased instances.
    pub(super) lease_history: LeaseHistory,
    /// The method of the server request because of which each dialog has its own instance, with
    /// [`Sharing::Auto`].
    pub(super) requested: Option<Method>,
    /// The running instance, of the current or the previous configuration.
    pub(super) running: Option<RunningServer<I>>,
    /// What ran before it was lost, so that errors can name the server of a tool.
    pub(super) last_run: Option<(Arc<ResolvedServer>, Arc<ServerLists>)>,
}

/// The configuration of a slot.
pub(super) enum SlotConfig {
    /// A valid server.
    Server(Arc<ResolvedServer>),
    /// An invalid entry.
    Invalid(HostError),
    /// Not set yet.
    Missing,
}

/// Whether a server may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SlotMode {
    On,
    /// Disabled until it is restarted or its entry changes.
    Disabled,
}

/// The state of a start.
pub(super) enum StartState {
    /// Starting.
    Pending {
        /// The start.
        ticket: StartTicket,
        /// The server.
        server: Arc<ResolvedServer>,
        /// The last failure; `None` for a first attempt.
        after: Option<HostError>,
    },
    /// Nothing to start: it runs, or cannot run.
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
    pub(super) listed: ListSnapshot,
    /// The time of the start.
    pub(super) since: Instant,
    /// The time of the next probe; `None` while one runs, or without probes.
    pub(super) probe: Option<Instant>,
    /// Problems of tools that calls reported, with their reasons.
    pub(super) tool_problems: BTreeMap<(String, ToolProblem), String>,
}

impl<I: Clone> ServerSlot<I> {
    /// A slot without a configuration.
    pub(super) fn new(name: &str) -> ServerSlot<I> {
        ServerSlot {
            name: name.to_owned(),
            config: SlotConfig::Missing,
            start: StartState::Done,
            mode: SlotMode::On,
            restarts: RestartState::default(),
            lease_history: LeaseHistory::default(),
            requested: None,
            running: None,
            last_run: None,
        }
    }

    /// The slot of an invalid entry.
    pub(super) fn refused(name: &str, failure: HostError) -> ServerSlot<I> {
        ServerSlot { config: SlotConfig::Invalid(failure), ..ServerSlot::new(name) }
    }

    /// What a new configuration is compared with: the configured server, else the running one.
    pub(super) fn desired(&self) -> Option<DesiredServer> {
        let running = || self.running.as_ref().map(|it| Arc::clone(&it.server));
        self.server().or_else(running).map(|server| desired(&server))
    }

    /// The configured server.
    pub(super) fn server(&self) -> Option<Arc<ResolvedServer>> {
        match &self.config {
            SlotConfig::Server(server) => Some(Arc::clone(server)),
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

    /// Configures `server`. A running instance stays if only names, filters or limits differ (DM-110), and otherwise
    /// until its successor is ready (DM-101). A server that is not running is started.
    pub(super) fn config(
        &mut self,
        server: Arc<ResolvedServer>,
        wanted: DesiredServer,
        starts: &mut u64,
    ) -> Vec<MachineAction<I>> {
        let mut actions = Vec::new();
        // A disabled server stays disabled until its entry changes.
        let same = self.server().is_some_and(|configured| desired(&configured) == wanted);
        self.config = SlotConfig::Server(Arc::clone(&server));
        if self.mode == SlotMode::Disabled && same {
            return actions;
        }
        self.mode = SlotMode::On;
        let is_leased = self.is_leased(&server);
        let is_same = |it: &&mut RunningServer<I>| {
            desired(&it.server).runtime == wanted.runtime && it.instance.is_none() == is_leased
        };
        if let Some(running) = self.running.as_mut().filter(is_same) {
            if let Some(instance) =
                running.instance.clone().filter(|_| running.server.spec.limits != server.spec.limits)
            {
                actions.push(MachineAction::SetLimits(instance, Arc::clone(&server)));
            }
            running.server = server;
            actions.extend(self.abort());
            return actions;
        }
        let is_pending = |pending: &ResolvedServer| desired(pending).runtime == wanted.runtime;
        if matches!(&self.start, StartState::Pending { server, .. } if is_pending(server)) {
            return actions;
        }
        let is_other = |it: &RunningServer<I>| desired(&it.server).runtime != wanted.runtime;
        if self.running.as_ref().is_none_or(is_other) {
            // Another program may send no requests.
            self.requested = None;
        }
        actions.extend(self.abort());
        self.restarts = RestartState::default();
        self.lease_history = LeaseHistory::default();
        actions.push(self.begin(server, None, starts));
        actions
    }

    /// Whether each dialog gets its own instance of `server`.
    pub(super) fn is_leased(&self, server: &ResolvedServer) -> bool {
        if server.endpoint.is_per_user() {
            return true;
        }
        match server.spec.sharing {
            Sharing::Auto => self.requested.is_some(),
            Sharing::Shared => false,
            Sharing::PerOwner => true,
        }
    }

    /// Restarts after a failure: the configured server, else the last one that ran.
    pub(super) fn retry(&mut self, starts: &mut u64) -> Option<MachineAction<I>> {
        let StartState::Failed(failure) = &self.start else { return None };
        let server = self.server().or_else(|| self.last_run.as_ref().map(|it| Arc::clone(&it.0)))?;
        let failure = failure.clone();
        self.restarts.clear_schedule();
        Some(self.begin(server, Some(failure), starts))
    }

    fn begin(
        &mut self,
        server: Arc<ResolvedServer>,
        after: Option<HostError>,
        starts: &mut u64,
    ) -> MachineAction<I> {
        *starts += 1;
        let ticket = StartTicket { server: server.spec.id.clone(), number: *starts };
        self.start = StartState::Pending { ticket: ticket.clone(), server: Arc::clone(&server), after };
        MachineAction::Start(ticket, server)
    }

    /// Marks the entry invalid; a running instance stays.
    pub(super) fn set_invalid(&mut self, failure: HostError) {
        self.config = SlotConfig::Invalid(failure);
    }

    /// Aborts a pending start, or forgets a failed one.
    pub(super) fn abort(&mut self) -> Option<MachineAction<I>> {
        self.restarts.clear_schedule();
        match std::mem::replace(&mut self.start, StartState::Done) {
            StartState::Pending { ticket, .. } => Some(MachineAction::Abort(ticket)),
            StartState::Done | StartState::Failed(_) => None,
        }
    }

    /// Removes a lost instance.
    pub(super) fn disconnect(&mut self, failure: HostError) -> Option<MachineAction<I>> {
        let running = self.running.take()?;
        // The loss replaces the failure of an earlier change. A pending start may still succeed.
        match self.start {
            StartState::Pending { .. } => {}
            StartState::Done | StartState::Failed(_) => self.start = StartState::Failed(failure),
        }
        self.last_run = Some((running.server, running.listed.lists));
        running.instance.map(|it| MachineAction::retire(it, DrainMode::CallsAndPins))
    }

    /// Restarts an unchanged server; the running instance stays until its successor is ready.
    pub(super) fn restart(&mut self, starts: &mut u64) -> Vec<MachineAction<I>> {
        let last_run = self.last_run.as_ref().map(|it| Arc::clone(&it.0));
        let Some(server) =
            self.server().or(self.running.as_ref().map(|it| Arc::clone(&it.server))).or(last_run)
        else {
            return Vec::new();
        };
        let mut actions: Vec<_> = self.abort().into_iter().collect();
        self.mode = SlotMode::On;
        self.restarts = RestartState::default();
        self.lease_history = LeaseHistory::default();
        actions.push(self.begin(server, None, starts));
        actions
    }

    /// Disables the server.
    pub(super) fn disable(&mut self) -> Vec<MachineAction<I>> {
        let mut actions: Vec<_> = self.abort().into_iter().collect();
        self.mode = SlotMode::Disabled;
        self.lease_history = LeaseHistory::default();
        if let Some(running) = self.running.take() {
            self.last_run = Some((running.server, running.listed.lists));
            actions.extend(running.instance.map(|it| MachineAction::retire(it, DrainMode::CallsAndPins)));
        }
        actions
    }
}
