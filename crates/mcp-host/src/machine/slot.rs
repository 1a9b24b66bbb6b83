//! The place of one server: what is wanted of it, whether that is being started, and what runs meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_config::ResolvedServer;
use mcp_model::Era;
use mcp_registry::{Desired, Lists};

use super::{Action, Ticket, desired};
use crate::Failure;
use crate::listed::Listed;

/// One server's place.
pub(super) struct Slot<I> {
    /// Its name as written.
    pub(super) name: String,
    /// What the configuration says of it.
    pub(super) wish: Wish,
    /// What became of that.
    pub(super) start: Start,
    /// What runs: an instance of what is wanted, or of what was wanted before.
    pub(super) live: Option<Live<I>>,
    /// What ran before it died: enough to tell a caller whose tool he asks for.
    pub(super) last: Option<(Arc<ResolvedServer>, Arc<Lists>)>,
}

/// What the configuration says.
pub(super) enum Wish {
    /// Run this.
    Server(Arc<ResolvedServer>, Desired),
    /// The entry is wrong.
    Refused(Failure),
    /// Nothing yet.
    Nothing,
}

/// What became of a wish.
pub(super) enum Start {
    /// It is being started.
    Pending(Ticket),
    /// There is nothing to start: it runs, or cannot be run.
    Done,
    /// It could not be started, or was lost.
    Failed(Failure),
}

/// A running instance.
pub(super) struct Live<I> {
    /// Its start.
    pub(super) ticket: Ticket,
    /// What it is an instance of.
    pub(super) server: Arc<ResolvedServer>,
    pub(super) instance: I,
    pub(super) era: Era,
    pub(super) listed: Listed,
    /// Tools whose arguments cannot be checked, and why.
    pub(super) unvalidated: BTreeMap<String, String>,
}

impl<I> Live<I> {
    pub(super) fn new(
        ticket: Ticket,
        server: Arc<ResolvedServer>,
        instance: I,
        era: Era,
        listed: Listed,
    ) -> Live<I> {
        Live { ticket, server, instance, era, listed, unvalidated: BTreeMap::new() }
    }
}

impl<I> Slot<I> {
    /// A place of which nothing is wanted yet.
    pub(super) fn new(name: &str) -> Slot<I> {
        Slot { name: name.to_owned(), wish: Wish::Nothing, start: Start::Done, live: None, last: None }
    }

    /// The place of an entry that is wrong.
    pub(super) fn refused(name: &str, failure: Failure) -> Slot<I> {
        Slot { wish: Wish::Refused(failure), ..Slot::new(name) }
    }

    /// What a new configuration is compared with: what is wanted, else what runs.
    pub(super) fn desired(&self) -> Option<Desired> {
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
        matches!(&self.start, Start::Pending(pending) if pending == ticket)
    }

    pub(super) fn lives_by(&mut self, ticket: &Ticket) -> Option<&mut Live<I>> {
        self.live.as_mut().filter(|it| it.ticket == *ticket)
    }

    /// Wants `server` from now on. What runs stays where only names, filters or limits differ (DM-110), and else
    /// until the new instance is ready (DM-101). A server that is not there is started again.
    pub(super) fn wish(
        &mut self,
        server: Arc<ResolvedServer>,
        desired: Desired,
        starts: &mut u64,
    ) -> Vec<Action<I>> {
        let mut actions = Vec::new();
        let (id, runtime) = (desired.id.clone(), desired.runtime);
        self.wish = Wish::Server(Arc::clone(&server), desired);
        if let Some(live) = self.live.as_mut().filter(|it| it.ticket.runtime == runtime) {
            live.server = server;
            return self.abort();
        }
        if matches!(&self.start, Start::Pending(ticket) if ticket.runtime == runtime) {
            return actions;
        }
        actions.extend(self.abort());
        *starts += 1;
        let ticket = Ticket { server: id, runtime, number: *starts };
        self.start = Start::Pending(ticket.clone());
        actions.push(Action::Start(ticket, server));
        actions
    }

    /// The entry is wrong from now on; what runs goes on.
    pub(super) fn refuse(&mut self, failure: Failure) {
        self.wish = Wish::Refused(failure);
    }

    /// Gives up a start that is under way, and forgets one that failed.
    pub(super) fn abort(&mut self) -> Vec<Action<I>> {
        match std::mem::replace(&mut self.start, Start::Done) {
            Start::Pending(ticket) => vec![Action::Abort(ticket)],
            Start::Done | Start::Failed(_) => Vec::new(),
        }
    }

    /// What ran is gone, for the reason `failure`.
    pub(super) fn lose(&mut self, failure: Failure) -> Vec<Action<I>> {
        let Some(live) = self.live.take() else { return Vec::new() };
        // Of a failed change and the later death of what stayed, the death is what a user sees; a start under way
        // may still bring the server back.
        match self.start {
            Start::Pending(_) => {}
            Start::Done | Start::Failed(_) => self.start = Start::Failed(failure),
        }
        self.last = Some((live.server, live.listed.lists));
        vec![Action::Retire(live.instance)]
    }
}
