//! Events, actions and settings of the state machine.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use mcp_host_config::ResolvedServer;
use mcp_host_model::{Era, Method, ServerId};
use mcp_host_registry::{Builtins, CatalogServer, NamedView, Problem, ServerLists, ToolBudget};
use tokio::time::Instant;

use super::lease::{LeaseReply, LeaseRequest, WaiterId};
use super::supervision::Supervision;
use crate::config::approval::Approval;
use crate::config::desired::DesiredServers;
use crate::error::HostError;
use crate::state::dialog_id::DialogId;
use crate::state::event::{HostEvent, HostEventKind};
use crate::supervisor::dialog_end::DialogEnd;
use crate::supervisor::lease_policy::LeasePolicy;
use crate::supervisor::lists::ListSnapshot;
use crate::supervisor::tool_problem::ToolProblem;

/// Identifies one start of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StartTicket {
    /// Unique in this host. Compared first.
    pub(crate) number: u64,
    /// The server.
    pub(crate) server: ServerId,
}

/// An event for the state machine.
#[derive(Debug)]
pub(crate) enum MachineEvent<I> {
    /// A new configuration: run these servers.
    Configure(DesiredServers),
    /// All current problems of the configuration files.
    SetFileProblems(Vec<Problem>),
    /// The views in use.
    SetViews(Vec<NamedView>),
    /// The approved definitions; `None` approves everything.
    SetApproval(Option<Approval>),
    /// A start succeeded.
    Started(StartTicket, StartedInstance<I>),
    /// A start failed.
    StartFailed(StartTicket, HostError),
    /// The lists of a running server were read again.
    ListsRead(StartTicket, ListSnapshot),
    /// A running legacy server sent its first request of this method.
    ServerRequest(StartTicket, Method),
    /// The connection of a running server ended.
    Disconnected(StartTicket, ConnectionLoss),
    /// A call found a problem of a tool, which has its original name here. Without a reason, the problem is withdrawn.
    ToolProblem { server: ServerId, tool: String, problem: ToolProblem, reason: Option<String> },
    /// The outcome of the last attempt to write an oversized result to files; `None`: it succeeded.
    SetSpillProblem(Option<Problem>),
    /// Stop a dialog whose provider refused a request, and publish the problem. `ends_seen` is the number of dialogs
    /// that had ended before.
    StopDialog { dialog: DialogId, problem: Problem, ends_seen: u64 },
    /// Resume a stopped dialog.
    ResumeDialog(DialogId),
    /// A running server answered a probe.
    ProbeSucceeded(StartTicket),
    /// The computer was suspended for this time.
    ClockJumped(Duration),
    /// A call requests a leased instance; `waiter` receives the reply. `ends_seen` is the number of dialogs that had
    /// ended before.
    RequestLease { request: LeaseRequest, ends_seen: u64, waiter: WaiterId },
    /// A leased instance was checked: the beginning of its idle time, or `None` while it is in use.
    IdleChecked(StartTicket, Option<Instant>),
    /// A dialog releases its lease of a server; `waiter` receives the reply.
    ReleaseLease { dialog: DialogId, server: ServerId, waiter: WaiterId },
    /// A dialog ended.
    DialogEnded(DialogEnd),
    /// Restart this server, also if it is disabled.
    Restart(ServerId),
    /// Disable this server.
    Disable(ServerId),
    /// Execute what is due.
    Tick,
    /// Shut down.
    Close,
}

/// The end of the connection of a running server.
#[derive(Debug)]
pub(crate) struct ConnectionLoss {
    /// The error.
    pub(crate) error: HostError,
    /// When it ended.
    pub(crate) moment: LossMoment,
}

/// When a connection ended, as its callers see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LossMoment {
    /// The server ended it between two calls: it had responded to one, and none waited for a response, or its process
    /// exited with status 0. The server is started again at once, and calls wait for that.
    BetweenCalls,
    /// Any other: the server is restarted after a delay, and calls fail meanwhile.
    Other,
}

impl<I> MachineEvent<I> {
    /// Creates the event of a loss after which calls fail until the server is restarted.
    pub(crate) fn outage(ticket: StartTicket, error: HostError) -> MachineEvent<I> {
        MachineEvent::Disconnected(ticket, ConnectionLoss { error, moment: LossMoment::Other })
    }
}

/// The result of a successful start.
#[derive(Debug)]
pub(crate) struct StartedInstance<I> {
    /// The instance.
    pub(crate) instance: I,
    /// Its era.
    pub(crate) era: Era,
    /// Its lists.
    pub(crate) listing: ListSnapshot,
}

/// An action to execute after the snapshot is published.
#[derive(Debug, PartialEq)]
pub(crate) enum MachineAction<I> {
    /// Connect and read the lists.
    Start(StartTicket, Arc<ResolvedServer>),
    /// Abort this start.
    AbortStart(StartTicket),
    /// Wait for the next change of the instance's current lists, or its end.
    Watch { ticket: StartTicket, instance: I, listing: Box<ListSnapshot> },
    /// Apply the server's limits.
    SetLimits(I, Arc<ResolvedServer>),
    /// Probe the instance, unless it is busy. The response has this timeout.
    Probe { ticket: StartTicket, instance: I, timeout: Duration },
    /// Connect for one dialog. These lists are known, and are not read again.
    StartLeased(StartTicket, Arc<ResolvedServer>, Arc<ServerLists>),
    /// Reply to a waiting lease request.
    Reply(WaiterId, LeaseReply<I>),
    /// Check whether the instance is idle.
    CheckIdle(StartTicket, I),
    /// Refuse new calls, wait as `drain` says, and close the instance. Then `waiter`, if any, receives
    /// [`LeaseReply::Released`].
    Retire { instance: I, drain: DrainMode, waiter: Option<WaiterId> },
}

/// What to wait for before an instance is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DrainMode {
    /// Its calls and pins, for the host's drain period.
    CallsAndPins,
    /// Its calls and pins, for the host's drain period, then its tasks.
    CallsPinsAndTasks,
    /// Its calls, for the host's drain period.
    Calls,
    /// Its calls without a limit, because each has a deadline.
    CallsUnlimited,
    /// Its calls without a limit, then its tasks.
    CallsUnlimitedAndTasks,
}

impl<I> MachineAction<I> {
    /// Creates an action to retire an instance without a reply.
    pub(super) fn retire(instance: I, drain: DrainMode) -> MachineAction<I> {
        MachineAction::Retire { instance, drain, waiter: None }
    }
}

/// Host events that are not published yet, as pairs of the server's name and the kind. They have no time, because the
/// machine reads no clock.
#[derive(Debug, Default)]
pub(super) struct UnpublishedEvents(Vec<(String, HostEventKind)>);

impl UnpublishedEvents {
    pub(super) fn push(&mut self, server: &str, kind: HostEventKind) {
        self.0.push((server.to_owned(), kind));
    }

    /// Takes the events, with the time of their publication.
    pub(super) fn take(&mut self, at: SystemTime) -> Vec<HostEvent> {
        self.0.drain(..).map(|(server, kind)| HostEvent { at, server, kind }).collect()
    }
}

/// The settings of a state machine.
#[derive(Debug, Clone, Default)]
pub(crate) struct MachineSettings {
    /// Names that no server may take.
    pub(crate) builtins: Builtins,
    /// The policy for restarts of failed servers.
    pub(crate) supervision: Supervision,
    /// Limits for leases.
    pub(crate) leases: LeasePolicy,
    /// The host's own tools, which precede those of all servers.
    pub(crate) own_tools: Vec<Arc<CatalogServer>>,
    /// The approved definitions; `None` approves everything.
    pub(crate) approval: Option<Approval>,
    /// The limits on the tools of each view.
    pub(crate) tool_budget: ToolBudget,
    /// The maximum number of items of a list; `None`: that of each server.
    pub(crate) list_items: Option<usize>,
}
