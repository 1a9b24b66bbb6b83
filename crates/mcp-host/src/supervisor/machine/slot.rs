//! The place of one server: what is wanted of it, whether that is being started, and what runs meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_config::ResolvedServer;
use mcp_model::Era;
use mcp_registry::{DesiredServer, ServerLists};
use tokio::time::Instant;

use super::lease::{Past, is_leased};
use super::supervision::Trouble;
use super::{Action, Drain, Ticket, ToolNote, desired};
use crate::failure::HostError;
use crate::supervisor::lists::Listed;

/// One server's place.
pub(super) struct Slot<I> {
    /// Its name as written.
    pub(super) name: String,
    /// What the configuration says of it.
    pub(super) wish: Wish,
    /// What became of that.
    pub(super) start: Start,
    /// Whether it may run.
    pub(super) mode: Mode,
    /// What it has been through, and when it is tried again.
    pub(super) trouble: Trouble,
    /// What instances that dialogs have of it have been through.
    pub(super) past: Past,
    /// What runs: an instance of what is wanted, or of what was wanted before.
    pub(super) live: Option<Live<I>>,
    /// What ran before it died: enough to tell a caller whose tool he asks for.
    pub(super) last: Option<(Arc<ResolvedServer>, Arc<ServerLists>)>,
}

/// What the configuration says.
pub(super) enum Wish {
    /// Run this.
    Server(Arc<ResolvedServer>, DesiredServer),
    /// The entry is wrong.
    Refused(HostError),
    /// Nothing yet.
    Nothing,
}

/// Whether a server may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    On,
    /// Somebody has switched it off.
    Disabled,
}

/// What became of a wish.
pub(super) enum Start {
    /// It is being started.
    Pending {
        /// The start.
        ticket: Ticket,
        /// What is started.
        server: Arc<ResolvedServer>,
        /// Why it is tried again; `None` where it is tried for the first time.
        after: Option<HostError>,
    },
    /// There is nothing to start: it runs, or cannot be run.
    Done,
    /// It could not be started, or was lost.
    Failed(HostError),
}

/// A running instance.
pub(super) struct Live<I> {
    /// Its start.
    pub(super) ticket: Ticket,
    /// What it is an instance of.
    pub(super) server: Arc<ResolvedServer>,
    /// The instance that all share; `None` where each dialog has its own.
    pub(super) instance: Option<I>,
    pub(super) era: Era,
    pub(super) listed: Listed,
    /// Since when it runs.
    pub(super) since: Instant,
    /// When it is next asked whether it lives; `None` while it is being asked, or is not asked at all.
    pub(super) probe: Option<Instant>,
    /// What calls found out about its tools: by tool and note, and why.
    pub(super) tool_notes: BTreeMap<(String, ToolNote), String>,
}

impl<I: Clone> Slot<I> {
    /// A place of which nothing is wanted yet.
    pub(super) fn new(name: &str) -> Slot<I> {
        Slot {
            name: name.to_owned(),
            wish: Wish::Nothing,
            start: Start::Done,
            mode: Mode::On,
            trouble: Trouble::default(),
            past: Past::default(),
            live: None,
            last: None,
        }
    }

    /// The place of an entry that is wrong.
    pub(super) fn refused(name: &str, failure: HostError) -> Slot<I> {
        Slot { wish: Wish::Refused(failure), ..Slot::new(name) }
    }

    /// What a new configuration is compared with: what is wanted, else what runs.
    pub(super) fn desired(&self) -> Option<DesiredServer> {
        match &self.wish {
            Wish::Server(_, desired) => Some(desired.clone()),
            Wish::Refused(_) | Wish::Nothing => self.live.as_ref().map(|it| desired(&it.server)),
        }
    }

    /// The server that is wanted.
    pub(super) fn server(&self) -> Option<Arc<ResolvedServer>> {
        match &self.wish {
            Wish::Server(server, _) => Some(Arc::clone(server)),
            Wish::Refused(_) | Wish::Nothing => None,
        }
    }

    pub(super) fn waits_for(&self, ticket: &Ticket) -> bool {
        matches!(&self.start, Start::Pending { ticket: pending, .. } if pending == ticket)
    }

    pub(super) fn runs_by(&self, ticket: &Ticket) -> bool {
        self.live.as_ref().is_some_and(|it| it.ticket == *ticket)
    }

    pub(super) fn lives_by(&mut self, ticket: &Ticket) -> Option<&mut Live<I>> {
        self.live.as_mut().filter(|it| it.ticket == *ticket)
    }

    /// Wants `server` from now on. What runs stays where only names, filters or limits differ (DM-110), and else
    /// until the new instance is ready (DM-101). A server that is not there is started again.
    pub(super) fn wish(
        &mut self,
        server: Arc<ResolvedServer>,
        desired: DesiredServer,
        starts: &mut u64,
    ) -> Vec<Action<I>> {
        let mut actions = Vec::new();
        let (id, runtime) = (desired.id.clone(), desired.runtime);
        // A server that was switched off stays so until its entry is another one.
        let same = matches!(&self.wish, Wish::Server(_, wished) if *wished == desired);
        self.wish = Wish::Server(Arc::clone(&server), desired);
        if self.mode == Mode::Disabled && same {
            return actions;
        }
        self.mode = Mode::On;
        let is_same =
            |it: &&mut Live<I>| it.ticket.runtime == runtime && is_leased(&it.server) == is_leased(&server);
        if let Some(live) = self.live.as_mut().filter(is_same) {
            if let Some(instance) =
                live.instance.clone().filter(|_| live.server.spec.limits != server.spec.limits)
            {
                actions.push(Action::Limit(instance, Arc::clone(&server)));
            }
            live.server = server;
            actions.extend(self.abort());
            return actions;
        }
        if matches!(&self.start, Start::Pending { ticket, .. } if ticket.runtime == runtime) {
            return actions;
        }
        actions.extend(self.abort());
        self.trouble = Trouble::default();
        self.past = Past::default();
        *starts += 1;
        let ticket = Ticket { server: id, runtime, number: *starts };
        actions.push(self.begin(ticket, server, None));
        actions
    }

    /// Past again what went wrong: what is wanted, else what last ran well.
    pub(super) fn again(&mut self, starts: &mut u64) -> Option<Action<I>> {
        let Start::Failed(failure) = &self.start else { return None };
        let server = self.server().or_else(|| self.last.as_ref().map(|it| Arc::clone(&it.0)))?;
        let DesiredServer { id, runtime, exposure: _ } = desired(&server);
        let failure = failure.clone();
        self.trouble.tried();
        *starts += 1;
        Some(self.begin(Ticket { server: id, runtime, number: *starts }, server, Some(failure)))
    }

    fn begin(&mut self, ticket: Ticket, server: Arc<ResolvedServer>, after: Option<HostError>) -> Action<I> {
        self.start = Start::Pending { ticket: ticket.clone(), server: Arc::clone(&server), after };
        Action::Start(ticket, server)
    }

    /// The entry is wrong from now on; what runs goes on.
    pub(super) fn refuse(&mut self, failure: HostError) {
        self.wish = Wish::Refused(failure);
    }

    /// Gives up a start that is under way, and forgets one that failed.
    pub(super) fn abort(&mut self) -> Vec<Action<I>> {
        self.trouble.tried();
        match std::mem::replace(&mut self.start, Start::Done) {
            Start::Pending { ticket, .. } => vec![Action::Abort(ticket)],
            Start::Done | Start::Failed(_) => Vec::new(),
        }
    }

    /// What ran is gone, for the reason `failure`.
    pub(super) fn lose(&mut self, failure: HostError) -> Vec<Action<I>> {
        let Some(live) = self.live.take() else { return Vec::new() };
        // Of a failed change and the later death of what stayed, the death is what a user sees; a start under way
        // may still bring the server back.
        match self.start {
            Start::Pending { .. } => {}
            Start::Done | Start::Failed(_) => self.start = Start::Failed(failure),
        }
        self.last = Some((live.server, live.listed.lists));
        live.instance.map(|it| Action::retire(it, Drain::Swap)).into_iter().collect()
    }

    /// Starts it anew although nothing has changed; what runs stays until the new instance is ready.
    pub(super) fn restart(&mut self, starts: &mut u64) -> Vec<Action<I>> {
        let last = self.last.as_ref().map(|it| Arc::clone(&it.0));
        let Some(server) = self.server().or(self.live.as_ref().map(|it| Arc::clone(&it.server))).or(last)
        else {
            return Vec::new();
        };
        let mut actions = self.abort();
        self.mode = Mode::On;
        self.trouble = Trouble::default();
        self.past = Past::default();
        let DesiredServer { id, runtime, exposure: _ } = desired(&server);
        *starts += 1;
        actions.push(self.begin(Ticket { server: id, runtime, number: *starts }, server, None));
        actions
    }

    /// Lets it run no more.
    pub(super) fn disable(&mut self) -> Vec<Action<I>> {
        let mut actions = self.abort();
        self.mode = Mode::Disabled;
        self.past = Past::default();
        if let Some(live) = self.live.take() {
            self.last = Some((live.server, live.listed.lists));
            actions.extend(live.instance.map(|it| Action::retire(it, Drain::Swap)));
        }
        actions
    }
}
