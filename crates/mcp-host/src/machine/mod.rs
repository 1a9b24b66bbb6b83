//! The life of a host's servers as a pure state machine: events in, actions out, and a snapshot on request.
//!
//! Nothing here waits, starts or asks the time. `I` stands for a running instance, of which the machine knows nothing
//! but who has one. What keeps late news from doing harm is the [`Ticket`]: each start has its own, every event about
//! it carries it, and a ticket that is no longer what its slot waits for or lives by changes nothing.

mod slot;
mod view;

use std::sync::Arc;

use mcp_config::ResolvedServer;
use mcp_model::{Era, Kind, ServerId};
use mcp_registry::{ActiveProblem, Builtins, Catalog, Desired, Fingerprint, ListKind, Plan, Problem};

use crate::listed::Listed;
use crate::{FailedServer, Failure, Wanted};
use slot::{Live, Slot, Start};

pub(crate) use view::{Absent, Route, Snapshot};

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
    Config(Wanted),
    /// This, and nothing else, is wrong with where the configuration comes from.
    Source(Vec<Problem>),
    /// A start succeeded.
    Ready(Ticket, Started<I>),
    /// A start failed.
    Failed(Ticket, Failure),
    /// A running server's lists were read again.
    Lists(Ticket, Listed),
    /// A running server's connection is over.
    Died(Ticket, Failure),
    /// The arguments of a tool cannot be checked.
    Unvalidated {
        /// The tool's server.
        server: ServerId,
        /// The tool's own name.
        tool: String,
        /// Why not.
        reason: String,
    },
    /// The host shuts down.
    Close,
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
        /// The server it is an instance of.
        server: Arc<ResolvedServer>,
        /// Its lists so far.
        listed: Listed,
    },
    /// Let nobody in any more, wait for those inside, close.
    Retire(I),
}

/// All servers and what becomes of them.
pub(crate) struct Machine<I> {
    builtins: Builtins,
    slots: Vec<Slot<I>>,
    phase: Phase,
    starts: u64,
    generation: u64,
    /// Something has changed since the last snapshot.
    changed: bool,
    /// The catalog of the last snapshot; `None` when it has to be made anew.
    catalog: Option<Arc<Catalog>>,
    /// The problems of the last snapshot.
    problems: Vec<ActiveProblem>,
    /// What is wrong with where the configuration comes from.
    source: Vec<Problem>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    Closed,
}

impl<I: Clone> Machine<I> {
    /// A machine without servers.
    pub(crate) fn new(builtins: Builtins) -> Machine<I> {
        Machine {
            builtins,
            slots: Vec::new(),
            phase: Phase::Open,
            starts: 0,
            generation: 0,
            changed: false,
            catalog: None,
            problems: Vec::new(),
            source: Vec::new(),
        }
    }

    /// Has anything changed since the last snapshot?
    pub(crate) fn is_changed(&self) -> bool {
        self.changed
    }

    /// Takes one event.
    pub(crate) fn handle(&mut self, event: Event<I>) -> Vec<Action<I>> {
        match event {
            Event::Config(_) if self.phase == Phase::Closed => Vec::new(),
            Event::Config(wanted) => self.configure(wanted),
            Event::Source(problems) => self.source(problems),
            Event::Ready(ticket, started) => self.ready(ticket, started),
            Event::Failed(ticket, failure) => self.failed(&ticket, failure),
            Event::Lists(ticket, listed) => self.lists(ticket, listed),
            Event::Died(ticket, failure) => self.died(&ticket, failure),
            Event::Unvalidated { server, tool, reason } => self.unvalidated(&server, tool, reason),
            Event::Close => self.close(),
        }
    }

    fn configure(&mut self, wanted: Wanted) -> Vec<Action<I>> {
        self.touch();
        // An entry that never ran is nothing to compare with.
        self.slots.retain(|it| it.desired().is_some());
        let old: Vec<Desired> = self.slots.iter().filter_map(Slot::desired).collect();
        let new: Vec<Desired> = wanted.servers.iter().map(desired).collect();
        let Plan { added, removed, changed, re_exposed, unchanged } = Plan::between(&old, &new);
        tracing::debug!(?added, ?removed, ?changed, ?re_exposed, ?unchanged, "configuration taken");

        let mut actions = Vec::new();
        let mut refused = wanted.failed;
        let order: Vec<String> =
            new.iter().map(|it| it.id.to_string()).chain(refused.iter().map(|it| it.id.clone())).collect();
        for id in removed {
            actions.extend(self.remove(&id, &mut refused));
        }
        for (at, (server, desired)) in wanted.servers.into_iter().zip(new).enumerate() {
            if order[..at].iter().any(|it| it == desired.id.as_str()) {
                let message = format!("another server is named '{}'", desired.id);
                let failure = Failure::new(Kind::McpConfig, message);
                refused.push(FailedServer { id: desired.id.to_string(), failure });
                continue;
            }
            if added.contains(&desired.id) {
                self.slots.push(Slot::new(desired.id.as_str()));
            }
            let slot = self.slots.iter_mut().find(|it| it.name == desired.id.as_str());
            let slot = slot.expect("a server of the plan was there, or has just been added");
            actions.extend(slot.wish(Arc::new(server), desired, &mut self.starts));
        }
        for FailedServer { id, failure } in refused {
            self.slots.push(Slot::refused(&id, failure));
        }
        // Stable: of two with one name the one that runs stands first.
        self.slots.sort_by_key(|slot| order.iter().position(|it| *it == slot.name));
        actions
    }

    /// Lets go of a server that is not among those to run. One that is running and whose entry is merely wrong now
    /// is kept as it is (DM-105).
    fn remove(&mut self, id: &ServerId, refused: &mut Vec<FailedServer>) -> Vec<Action<I>> {
        let at = self.slots.iter().position(|it| it.name == id.as_str());
        let at = at.expect("the plan removes only what was there");
        let mut actions = self.slots[at].abort();
        let entry = refused.iter().position(|it| it.id == id.as_str());
        if let (Some(entry), Some(_)) = (entry, &self.slots[at].live) {
            self.slots[at].refuse(refused.remove(entry).failure);
            return actions;
        }
        let slot = self.slots.remove(at);
        actions.extend(slot.live.map(|it| Action::Retire(it.instance)));
        actions
    }

    fn ready(&mut self, ticket: Ticket, started: Started<I>) -> Vec<Action<I>> {
        let Started { instance, era, listed } = started;
        let Some(slot) = self.slots.iter_mut().find(|it| it.waits_for(&ticket)) else {
            return vec![Action::Retire(instance)];
        };
        let server = slot.server().expect("only a server that is wanted is waited for");
        slot.start = Start::Done;
        let follow = Action::Follow {
            ticket: ticket.clone(),
            instance: instance.clone(),
            server: Arc::clone(&server),
            listed: listed.clone(),
        };
        let before = slot.live.replace(Live::new(ticket, server, instance, era, listed));
        slot.last = None;
        self.touch();
        let mut actions = vec![follow];
        actions.extend(before.map(|it| Action::Retire(it.instance)));
        actions
    }

    fn failed(&mut self, ticket: &Ticket, failure: Failure) -> Vec<Action<I>> {
        if let Some(slot) = self.slots.iter_mut().find(|it| it.waits_for(ticket)) {
            slot.start = Start::Failed(failure);
            self.touch();
        }
        Vec::new()
    }

    fn lists(&mut self, ticket: Ticket, listed: Listed) -> Vec<Action<I>> {
        let Some(live) = self.slots.iter_mut().find_map(|it| it.lives_by(&ticket)) else { return Vec::new() };
        if live.listed.lists.tools != listed.lists.tools {
            live.unvalidated.clear();
        }
        // A server that announces what is known already wakes nobody.
        let is_news = live.listed.lists != listed.lists || live.listed.notes != listed.notes;
        live.listed = listed.clone();
        let (instance, server) = (live.instance.clone(), Arc::clone(&live.server));
        if is_news {
            self.touch();
        }
        vec![Action::Follow { ticket, instance, server, listed }]
    }

    fn died(&mut self, ticket: &Ticket, failure: Failure) -> Vec<Action<I>> {
        let Some(slot) =
            self.slots.iter_mut().find(|it| it.live.as_ref().is_some_and(|it| it.ticket == *ticket))
        else {
            return Vec::new();
        };
        let actions = slot.lose(failure);
        self.touch();
        actions
    }

    fn unvalidated(&mut self, server: &ServerId, tool: String, reason: String) -> Vec<Action<I>> {
        let slot = self.slots.iter_mut().find(|it| it.name == server.as_str() && it.live.is_some());
        let Some(live) = slot.and_then(|it| it.live.as_mut()) else { return Vec::new() };
        // The first reason stays: many calls say the same.
        if !live.unvalidated.contains_key(&tool) && live.listed.lists.tools.iter().any(|it| *it.name == tool)
        {
            live.unvalidated.insert(tool, reason);
            self.changed = true;
        }
        Vec::new()
    }

    fn source(&mut self, problems: Vec<Problem>) -> Vec<Action<I>> {
        self.changed |= self.source != problems;
        self.source = problems;
        Vec::new()
    }

    fn close(&mut self) -> Vec<Action<I>> {
        if self.phase == Phase::Closed {
            return Vec::new();
        }
        self.phase = Phase::Closed;
        self.touch();
        let mut actions = Vec::new();
        for slot in &mut self.slots {
            actions.extend(slot.abort());
            actions.extend(slot.live.take().map(|it| Action::Retire(it.instance)));
        }
        actions
    }

    /// The catalog may be another one now.
    fn touch(&mut self) {
        self.changed = true;
        self.catalog = None;
    }
}

/// A server's settings as a plan compares them.
pub(crate) fn desired(server: &ResolvedServer) -> Desired {
    let ResolvedServer { spec, endpoint, config } = server;
    Desired {
        id: spec.id.clone(),
        runtime: Fingerprint::of_runtime(endpoint, config.as_ref(), &spec.discovery),
        exposure: Fingerprint::of_exposure(&spec.exposure, &spec.limits, spec.sharing),
    }
}

/// What a list is called in a sentence.
pub(crate) fn plural(kind: ListKind) -> &'static str {
    match kind {
        ListKind::Tool => "tools",
        ListKind::Prompt => "prompts",
        ListKind::Resource => "resources",
    }
}

#[cfg(test)]
mod tests;
