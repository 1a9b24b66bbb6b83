//! The fields of the state machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_host_model::ServerId;
use mcp_host_registry::{
    ActiveProblem, Catalog, Drift, ListKind, NamedView, Problem, ReloadPlan, ServerIdentity, ServerLists,
};

use super::lease::Leases;
use super::protocol::{MachineAction, MachineSettings, UnpublishedEvents};
use super::slot::ServerSlot;
use crate::state::dialog_id::DialogId;

/// The state machine of a host: all servers with their state, and what is not published or executed yet.
pub(crate) struct Machine<I> {
    pub(super) settings: MachineSettings,
    pub(super) slots: Vec<ServerSlot<I>>,
    pub(super) leases: Leases<I>,
    pub(super) phase: Phase,
    /// The number of the last [`StartTicket`](super::StartTicket).
    pub(super) last_ticket: u64,
    /// The generation of the last snapshot.
    pub(super) generation: u64,
    /// Whether anything has changed since the last snapshot.
    pub(super) is_changed: bool,
    /// The catalog of the last snapshot.
    pub(super) catalog: Arc<Catalog>,
    /// Whether the catalog must be rebuilt.
    pub(super) is_catalog_stale: bool,
    /// The cached drift of servers.
    pub(super) drift_cache: BTreeMap<ServerId, CachedDrift>,
    /// The problems of the last snapshot.
    pub(super) problems: Vec<ActiveProblem>,
    /// The views in use.
    pub(super) views: Vec<NamedView>,
    /// Host events that are not published yet.
    pub(super) events: UnpublishedEvents,
    /// Actions that are not executed yet.
    pub(super) actions: Vec<MachineAction<I>>,
    /// The plan by which the last configuration was applied.
    pub(super) reload_plan: ReloadPlan,
    /// Problems of the configuration files.
    pub(super) file_problems: Vec<Problem>,
    /// The problem of the last attempt to write an oversized result to files; `None` after a success.
    pub(super) spill_problem: Option<Problem>,
    /// The stopped dialogs with the reasons.
    pub(super) stopped_dialogs: Arc<BTreeMap<DialogId, DialogStop>>,
}

/// Whether the host is running or shut down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Open,
    Closed,
}

/// The drift of a server, and what it was computed from.
pub(super) struct CachedDrift {
    pub(super) lists: Arc<ServerLists>,
    pub(super) identity: ServerIdentity,
    pub(super) read_lists: Vec<ListKind>,
    pub(super) drift: Arc<Drift>,
}

/// The reason why a dialog is stopped.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DialogStop {
    /// The published problem.
    pub(crate) problem: Problem,
    /// The number of ended dialogs when it was stopped.
    pub(super) ends_seen: u64,
}
