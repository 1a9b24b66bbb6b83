//! The words of the machine: what happens, what is to be done, and what is told.

use std::sync::Arc;
use std::time::Duration;

use mcp_config::ResolvedServer;
use mcp_model::{Era, ServerId};
use mcp_registry::{Builtins, Fingerprint, Problem, ServerEntry, ServerLists, ViewFilter};
use tokio::time::Instant;

use super::lease::{Answer, Waiter, Wanting};
use super::supervision::Supervision;
use crate::config::approval::Approval;
use crate::config::desired::DesiredServers;
use crate::event::HostEventKind;
use crate::failure::HostError;
use crate::supervisor::dialog::DialogEnd;
use crate::supervisor::dialog::{DialogId, LeasePolicy};
use crate::supervisor::lists::Listed;

/// One start of one server, as it was configured then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ticket {
    /// The server.
    pub(crate) server: ServerId,
    /// What its connection depends on.
    pub(crate) runtime: Fingerprint,
    /// No other start of this host has it.
    pub(crate) number: u64,
}

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Event<I> {
    /// These servers are wanted from now on.
    Config(DesiredServers),
    /// This, and nothing else, is wrong with where the configuration comes from.
    Source(Vec<Problem>),
    /// These views of the catalog are in use.
    Views(Vec<ViewFilter>),
    /// This is approved of servers from now on; everything where `None`.
    Approved(Option<Approval>),
    /// A start succeeded.
    Ready(Ticket, Started<I>),
    /// A start failed.
    Failed(Ticket, HostError),
    /// A running server's lists were read again.
    Lists(Ticket, Listed),
    /// A running server's connection is over.
    Died(Ticket, HostError),
    /// A call found something out about a tool, or that it is no longer so.
    Noted {
        /// The tool's server.
        server: ServerId,
        /// The tool's own name.
        tool: String,
        /// What.
        note: ToolNote,
        /// Why; `None` where it is no longer so.
        reason: Option<String>,
    },
    /// A result that was too large was written to a file, or could not be, which is this problem.
    Spilling(Option<Problem>),
    /// A provider refused a request of a dialog, which is stopped now.
    Rejected {
        /// The dialog.
        dialog: DialogId,
        /// What is said of it.
        problem: Problem,
        /// How many dialogs had ended when that was.
        asked: u64,
    },
    /// A stopped dialog may go on.
    Resume(DialogId),
    /// A running server that was asked whether it lives does.
    Alive(Ticket),
    /// This machine has slept for so long.
    Woke(Duration),
    /// A call of a dialog needs an instance of its own, and did when so many dialogs had ended.
    Lease(Wanting, u64, Waiter),
    /// A leased instance was looked at: since when does nobody use it? `None` while somebody does.
    Seen(Ticket, Option<Instant>),
    /// A dialog gives back what it has leased of a server.
    Release(DialogId, ServerId, Waiter),
    /// A dialog is over.
    DialogOver(DialogEnd),
    /// Start this server anew, also one that was switched off.
    Restart(ServerId),
    /// Let this server run no more.
    Disable(ServerId),
    /// Time has passed.
    Tick,
    /// The host shuts down.
    Close,
}

/// What calls can find out about a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ToolNote {
    /// Its arguments cannot be checked.
    ArgumentsUnchecked,
    /// Its structured results cannot be checked.
    ResultsUnchecked,
    /// Its last structured result was not what it promises.
    ResultInvalid,
}

impl ToolNote {
    pub(super) fn problem(self, server: &ServerId, tool: &str, reason: &str) -> Problem {
        match self {
            ToolNote::ArgumentsUnchecked => Problem::tool_unvalidated(server, tool, reason),
            ToolNote::ResultsUnchecked => Problem::tool_result_unvalidated(server, tool, reason),
            ToolNote::ResultInvalid => Problem::tool_result_invalid(server, tool, reason),
        }
    }
}

/// What a start brought.
#[derive(Debug)]
pub(crate) struct Started<I> {
    /// The running instance.
    pub(crate) instance: I,
    /// Its era.
    pub(crate) era: Era,
    /// Its lists.
    pub(crate) listed: Listed,
}

/// Something to do, after the snapshot that goes with it is published.
#[derive(Debug, PartialEq)]
pub(crate) enum Action<I> {
    /// Connect and list.
    Start(Ticket, Arc<ResolvedServer>),
    /// Give up this start.
    Abort(Ticket),
    /// Wait for the instance's next change of lists, or its end.
    Follow {
        /// Its start.
        ticket: Ticket,
        /// The instance.
        instance: I,
        /// Its lists so far.
        listed: Listed,
    },
    /// Keep the limits that the server has now.
    Limit(I, Arc<ResolvedServer>),
    /// Ask whether it lives; one that is busy does.
    Probe {
        /// Its start.
        ticket: Ticket,
        /// The instance.
        instance: I,
        /// How long an answer may take.
        within: Duration,
    },
    /// Connect for one dialog. The lists are known.
    Open(Ticket, Arc<ResolvedServer>, Arc<ServerLists>),
    /// Tell somebody who waits.
    Answer(Waiter, Answer<I>),
    /// Since when does nobody use it?
    Look(Ticket, I),
    /// Let nobody in any more, wait for those inside, close.
    Retire {
        /// The instance.
        instance: I,
        /// Who is waited for.
        drain: Drain,
        /// Who is told that it is closed.
        waiter: Option<Waiter>,
    },
}

/// Who is waited for before an instance is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Drain {
    /// Its calls, and whoever has pinned it, for the host's grace.
    Swap,
    /// Its calls, for the host's grace.
    Shut,
    /// Its calls, however long they take: each has a deadline.
    Release,
}

impl<I> Action<I> {
    pub(super) fn retire(instance: I, drain: Drain) -> Action<I> {
        Action::Retire { instance, drain, waiter: None }
    }
}

/// Something to be told, without the moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct News {
    /// The server's name as written.
    pub(crate) server: String,
    /// What happened to it.
    pub(crate) what: HostEventKind,
}

impl News {
    pub(super) fn new(server: &str, what: HostEventKind) -> News {
        News { server: server.to_owned(), what }
    }
}

/// How a machine is to be.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    /// Names that no server takes.
    pub(crate) builtins: Builtins,
    /// What is done about servers that fail.
    pub(crate) supervision: Supervision,
    /// How servers are leased that are not shared.
    pub(crate) leases: LeasePolicy,
    /// The host's own tools, which stand before those of all servers.
    pub(crate) own: Vec<ServerEntry>,
    /// What is approved of servers; everything where `None`.
    pub(crate) approval: Option<Approval>,
}
