//! The life of a host's servers as a pure state machine: events in, actions out, and a snapshot on request.
//!
//! Nothing here waits, starts or asks the time. `I` stands for a running instance, of which the machine knows nothing
//! but who has one. What keeps late news from doing harm is the [`Ticket`]: each start has its own, every event about
//! it carries it, and a ticket that is no longer what its slot waits for or lives by changes nothing.

mod approved;
mod lease;
mod recover;
mod slot;
mod stopped;
mod supervision;
mod view;
mod words;

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp_config::ResolvedServer;
use mcp_model::{ErrorKind, ServerId};
use mcp_registry::{
    ActiveProblem, Catalog, DesiredServer, Fingerprint, ListKind, Problem, ReloadPlan, ViewFilter,
};
use tokio::time::Instant;

use crate::config::desired::{DesiredServers, FailedServer};
use crate::event::HostEventKind;
use crate::failure::HostError;
use crate::supervisor::dialog::DialogId;
use crate::supervisor::lists::Listed;
use lease::{Leases, is_leased};
use slot::{Live, Slot, Start};
pub(crate) use stopped::Stop;
use supervision::next_probe;
pub use supervision::{ProbePolicy, RestartPolicy, Supervision};

pub(crate) use lease::{Answer, LeaseTable, Waiter, Wanting};
pub(crate) use supervision::{later, slept};
pub(crate) use view::{Absent, Instructions, Place, Route, Snapshot};
pub(crate) use words::{Action, Drain, Event, News, Settings, Started, Ticket, ToolNote};

/// All servers and what becomes of them.
pub(crate) struct Machine<I> {
    settings: Settings,
    slots: Vec<Slot<I>>,
    leases: Leases<I>,
    phase: Phase,
    starts: u64,
    generation: u64,
    /// Something has changed since the last snapshot.
    changed: bool,
    /// The catalog of the last snapshot.
    catalog: Arc<Catalog>,
    /// The next one may be another.
    stale: bool,
    /// How servers differ from what was approved of them, as last looked at.
    looked: BTreeMap<ServerId, approved::Looked>,
    /// The problems of the last snapshot.
    problems: Vec<ActiveProblem>,
    /// Views of the catalog that are in use.
    views: Vec<ViewFilter>,
    /// What was not told yet.
    news: Vec<News>,
    /// What is wrong with where the configuration comes from.
    source: Vec<Problem>,
    /// Why the last result that was too large could not be written to a file.
    spilling: Option<Problem>,
    /// Dialogs whose model's provider refused a request, and what is to be shown of that.
    stopped: Arc<BTreeMap<DialogId, Stop>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    Closed,
}

impl<I: Clone> Machine<I> {
    /// A machine without servers.
    pub(crate) fn new(settings: Settings) -> Machine<I> {
        let catalog = Arc::new(Catalog::build(&settings.builtins, &[]));
        Machine {
            settings,
            slots: Vec::new(),
            leases: Leases::new(),
            phase: Phase::Open,
            starts: 0,
            generation: 0,
            changed: false,
            catalog,
            stale: true,
            looked: BTreeMap::new(),
            problems: Vec::new(),
            views: Vec::new(),
            news: Vec::new(),
            source: Vec::new(),
            spilling: None,
            stopped: Arc::default(),
        }
    }

    /// Has anything changed since the last snapshot?
    pub(crate) fn is_changed(&self) -> bool {
        self.changed
    }

    /// What happened since this was last asked.
    pub(crate) fn take_news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    /// Takes one event, at `now`.
    pub(crate) fn handle(&mut self, event: Event<I>, now: Instant) -> Vec<Action<I>> {
        match event {
            Event::Config(_) if self.phase == Phase::Closed => Vec::new(),
            Event::Config(wanted) => self.configure(wanted),
            Event::Views(views) => self.view(views),
            Event::Approved(approval) => self.approve(approval),
            Event::Source(problems) => self.source(problems),
            Event::Ready(ticket, started) => self.ready(ticket, started, now),
            Event::Failed(ticket, failure) => self.failed(&ticket, failure, now),
            Event::Lists(ticket, listed) => self.lists(ticket, listed),
            Event::Died(ticket, failure) => self.died(&ticket, failure, now),
            Event::Noted { server, tool, note, reason } => self.noted(&server, (tool, note), reason),
            Event::Spilling(problem) => self.spilling(problem),
            Event::Rejected { dialog, problem, asked } => self.stop(dialog, Stop { problem, asked }),
            Event::Resume(dialog) => self.resume(&dialog),
            Event::Alive(ticket) => self.alive(&ticket, now),
            Event::Woke(slept) => self.woke(slept, now),
            Event::Lease(wanting, asked, waiter) => self.lease(wanting, asked, waiter, now),
            Event::Seen(ticket, unused) => self.lease_seen(&ticket, unused, now),
            Event::Release(dialog, server, waiter) => self.release(&dialog, &server, waiter),
            Event::DialogOver(end) => {
                self.stopped_over(&end);
                self.dialog_over(&end)
            }
            Event::Restart(server) => self.restart(&server),
            Event::Disable(server) => self.disable(&server),
            Event::Tick => self.tick(now),
            Event::Close => self.close(),
        }
    }

    fn configure(&mut self, wanted: DesiredServers) -> Vec<Action<I>> {
        self.touch();
        // An entry that never ran is nothing to compare with.
        self.slots.retain(|it| it.desired().is_some());
        let old: Vec<DesiredServer> = self.slots.iter().filter_map(Slot::desired).collect();
        let new: Vec<DesiredServer> = wanted.servers.iter().map(desired).collect();
        let ReloadPlan { added, removed, changed, re_exposed, unchanged } = ReloadPlan::compute(&old, &new);
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
                let failure = HostError::new(ErrorKind::McpConfig, message);
                refused.push(FailedServer { id: desired.id.to_string(), error: failure });
                continue;
            }
            if added.contains(&desired.id) {
                self.slots.push(Slot::new(desired.id.as_str()));
            }
            let slot = self.slots.iter_mut().find(|it| it.name == desired.id.as_str());
            let slot = slot.expect("a server of the plan was there, or has just been added");
            let started = slot.wish(Arc::new(server), desired, &mut self.starts);
            if started.iter().any(|it| matches!(it, Action::Start(..))) {
                self.news.push(News::new(&slot.name, HostEventKind::Starting { failures: 0 }));
            }
            actions.extend(started);
        }
        for FailedServer { id, error: failure } in refused {
            self.slots.push(Slot::refused(&id, failure));
        }
        actions.extend(self.limit_leases());
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
            self.slots[at].refuse(refused.remove(entry).error);
            return actions;
        }
        let slot = self.slots.remove(at);
        if let Some(instance) = slot.live.and_then(|it| it.instance) {
            self.news.push(News::new(id.as_str(), HostEventKind::Retired));
            actions.push(Action::retire(instance, Drain::Swap));
        }
        actions.extend(self.rebase(id, None));
        actions
    }

    fn ready(&mut self, ticket: Ticket, started: Started<I>, now: Instant) -> Vec<Action<I>> {
        let started = match self.lease_ready(&ticket, started, now) {
            Ok(actions) => return actions,
            Err(started) => *started,
        };
        let Started { instance, era, listed } = started;
        let Some(slot) = self.slots.iter_mut().find(|it| it.waits_for(&ticket)) else {
            return vec![Action::retire(instance, Drain::Shut)];
        };
        let Start::Pending { server, .. } = std::mem::replace(&mut slot.start, Start::Done) else {
            unreachable!("a slot that waits has something to wait for");
        };
        // Its names or limits may have changed meanwhile.
        let server = slot.server().unwrap_or(server);
        let leased = is_leased(&server);
        let mut actions = vec![match leased {
            // It has told what it offers, and each dialog gets one of its own (DM-080).
            true => Action::retire(instance.clone(), Drain::Shut),
            false => {
                Action::Follow { ticket: ticket.clone(), instance: instance.clone(), listed: listed.clone() }
            }
        }];
        let (id, number) = (ticket.server.clone(), ticket.number);
        let instance = Some(instance).filter(|_| !leased);
        let mut live = Live {
            ticket,
            server,
            instance,
            era,
            listed,
            since: now,
            probe: None,
            tool_notes: BTreeMap::new(),
        };
        let next = next_probe(&self.settings.supervision, &live.server, now);
        live.probe = next.filter(|_| live.is_asked());
        let before = slot.live.replace(live);
        slot.last = None;
        self.news.push(News::new(&slot.name, HostEventKind::Ready { era }));
        let before = before.and_then(|it| it.instance);
        if before.is_some() {
            self.news.push(News::new(&slot.name, HostEventKind::Retired));
        }
        self.touch();
        actions.extend(before.map(|it| Action::retire(it, Drain::Swap)));
        actions.extend(self.rebase(&id, Some(number)));
        actions
    }

    fn lists(&mut self, ticket: Ticket, listed: Listed) -> Vec<Action<I>> {
        let Some(slot) = self.slots.iter_mut().find(|it| it.runs_by(&ticket)) else {
            return self.lease_lists(ticket, listed);
        };
        let name = slot.name.clone();
        let live = slot.live.as_mut().expect("that is how it was found");
        let Some(instance) = live.instance.clone() else { return Vec::new() };
        if live.listed.lists.tools != listed.lists.tools {
            live.tool_notes.clear();
        }
        // A server that announces what is known already wakes nobody.
        let is_news = live.listed.lists != listed.lists || live.listed.notes != listed.notes;
        live.listed = listed.clone();
        if is_news {
            self.news.push(News::new(&name, HostEventKind::ListsChanged));
            self.touch();
        }
        vec![Action::Follow { ticket, instance, listed }]
    }

    /// What a call found out about a tool holds from now on for this reason, or does not hold any more.
    fn noted(
        &mut self,
        server: &ServerId,
        about: (String, ToolNote),
        reason: Option<String>,
    ) -> Vec<Action<I>> {
        let slot = self.slots.iter_mut().find(|it| it.name == server.as_str() && it.live.is_some());
        let Some(live) = slot.and_then(|it| it.live.as_mut()) else { return Vec::new() };
        let Some(reason) = reason else {
            self.changed |= live.tool_notes.remove(&about).is_some();
            return Vec::new();
        };
        // The first reason stays: many calls say the same.
        if !live.tool_notes.contains_key(&about)
            && live.listed.lists.tools.iter().any(|it| *it.name == *about.0)
        {
            live.tool_notes.insert(about, reason);
            self.changed = true;
        }
        Vec::new()
    }

    fn spilling(&mut self, problem: Option<Problem>) -> Vec<Action<I>> {
        self.changed |= self.spilling != problem;
        self.spilling = problem;
        Vec::new()
    }

    fn view(&mut self, views: Vec<ViewFilter>) -> Vec<Action<I>> {
        self.changed |= self.views != views;
        self.views = views;
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
            if let Some(instance) = slot.live.take().and_then(|it| it.instance) {
                self.news.push(News::new(&slot.name, HostEventKind::Retired));
                actions.push(Action::retire(instance, Drain::Shut));
            }
        }
        actions.extend(self.close_leases());
        actions
    }

    /// Starts a server anew.
    fn restart(&mut self, server: &ServerId) -> Vec<Action<I>> {
        let open = self.phase == Phase::Open;
        let slot = self.slots.iter_mut().find(|it| it.name == server.as_str());
        let Some(slot) = slot.filter(|_| open) else { return Vec::new() };
        let actions = slot.restart(&mut self.starts);
        if !actions.is_empty() {
            self.news.push(News::new(&slot.name, HostEventKind::Starting { failures: 0 }));
            self.changed = true;
        }
        actions
    }

    /// Switches a server off.
    fn disable(&mut self, server: &ServerId) -> Vec<Action<I>> {
        let open = self.phase == Phase::Open;
        let slot = self.slots.iter_mut().find(|it| it.name == server.as_str());
        let Some(slot) = slot.filter(|_| open) else { return Vec::new() };
        let mut actions = slot.disable();
        self.news.push(News::new(&slot.name, HostEventKind::Disabled));
        self.touch();
        actions.extend(self.rebase(server, None));
        actions
    }

    /// The catalog may be another one now.
    fn touch(&mut self) {
        self.changed = true;
        self.stale = true;
    }
}

/// A server's settings as a plan compares them.
pub(crate) fn desired(server: &ResolvedServer) -> DesiredServer {
    let ResolvedServer { spec, endpoint, config } = server;
    DesiredServer {
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
mod races;
#[cfg(test)]
mod tests;
