//! The state machine of a host's servers. It handles events, returns actions to execute, and creates snapshots to
//! publish.
//!
//! It does no I/O, reads no clock and is not async. `I` is the type of running instances, which the machine only
//! stores. Each start of a server has its own [`StartTicket`], which its events contain. An event with an outdated
//! ticket changes nothing.

mod drift;
mod lease;
mod protocol;
mod recovery;
mod routing;
mod slot;
mod state;
mod stopped_dialogs;
mod supervision;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use ahash::{HashMap, HashSet};
use mcp_host_model::{ErrorKind, ServerId, ServerName};
use mcp_host_registry::{Catalog, DesiredServer, NamedView, Problem, ReloadPlan};
use tokio::time::Instant;

use crate::config::desired::{DesiredServers, FailedServer, desired_server};
use crate::error::HostError;
use crate::state::event::{HostEvent, HostEventKind};
use crate::supervisor::lists::ListSnapshot;
use crate::supervisor::tool_problem::ToolProblem;
use lease::Leases;
use protocol::UnpublishedEvents;
use slot::{RunningServer, ServerSlot, StartState};
use state::Phase;
pub(crate) use state::{DialogStop, Machine};
use supervision::next_probe_time;
pub use supervision::{ProbePolicy, RestartPolicy, Supervision};

pub(crate) use lease::{LeaseReply, LeaseRequest, LeaseTable, WaiterId};
pub(crate) use protocol::{
    ConnectionLoss, DrainMode, LossMoment, MachineAction, MachineEvent, MachineSettings, StartTicket,
    StartedInstance,
};
pub(crate) use routing::{InstructionsAccess, Route, RouteTarget, RoutingTable, UnavailableServer};
pub(crate) use supervision::{saturating_after, suspend_duration};

/// The first place of each of these names.
fn first_places<'a>(
    names: impl DoubleEndedIterator<Item = &'a str> + ExactSizeIterator,
) -> HashMap<&'a str, usize> {
    names.enumerate().rev().map(|(place, name)| (name, place)).collect()
}

impl<I: Clone> Machine<I> {
    /// Creates a machine without servers.
    pub(crate) fn new(settings: MachineSettings) -> Machine<I> {
        let catalog = Arc::new(Catalog::build(&settings.builtins, &[]));
        Machine {
            settings,
            slots: Vec::new(),
            leases: Leases::new(),
            phase: Phase::Open,
            last_ticket: 0,
            generation: 0,
            is_changed: false,
            catalog,
            is_catalog_stale: true,
            drift_cache: BTreeMap::new(),
            problems: Vec::new(),
            views: Vec::new(),
            events: UnpublishedEvents::default(),
            actions: Vec::new(),
            reload_plan: ReloadPlan::default(),
            file_problems: Vec::new(),
            spill_problem: None,
            stopped_dialogs: Arc::default(),
        }
    }

    /// Returns whether anything has changed since the last snapshot.
    pub(crate) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Takes the unpublished host events, which are published at this time.
    pub(crate) fn take_events(&mut self, at: SystemTime) -> Vec<HostEvent> {
        self.events.take(at)
    }

    /// Takes the plan by which the last configuration was applied.
    pub(crate) fn take_reload_plan(&mut self) -> ReloadPlan {
        std::mem::take(&mut self.reload_plan)
    }

    /// Handles one event at `now`. Returns the actions to execute after the next snapshot is published.
    pub(crate) fn handle(&mut self, event: MachineEvent<I>, now: Instant) -> Vec<MachineAction<I>> {
        match event {
            MachineEvent::Configure(_) | MachineEvent::Restart(_) | MachineEvent::Disable(_)
                if self.phase == Phase::Closed => {}
            MachineEvent::Configure(desired) => self.configure(desired),
            MachineEvent::SetViews(views) => self.set_views(views),
            MachineEvent::SetApproval(approval) => self.set_approval(approval),
            MachineEvent::SetFileProblems(problems) => self.set_file_problems(problems),
            MachineEvent::Started(ticket, started) => self.handle_start(ticket, started, now),
            MachineEvent::StartFailed(ticket, failure) => self.handle_start_failure(&ticket, failure, now),
            MachineEvent::ListsRead(ticket, listing) => self.update_lists(ticket, listing),
            MachineEvent::ServerRequest(ticket, method) => self.handle_server_request(&ticket, method),
            MachineEvent::Disconnected(ticket, loss) => self.handle_disconnect(&ticket, loss, now),
            MachineEvent::ToolProblem { server, tool, problem, reason } => {
                self.set_tool_problem(&server, (tool, problem), reason)
            }
            MachineEvent::SetSpillProblem(problem) => self.set_spill_problem(problem),
            MachineEvent::StopDialog { dialog, problem, ends_seen } => {
                self.stop_dialog(dialog, DialogStop { problem, ends_seen })
            }
            MachineEvent::ResumeDialog(dialog) => self.resume_dialog(&dialog),
            MachineEvent::ProbeSucceeded(ticket) => self.record_probe(&ticket, now),
            MachineEvent::ClockJumped(slept) => self.handle_clock_jump(slept, now),
            MachineEvent::RequestLease { request, ends_seen, waiter } => {
                self.handle_lease_request(request, ends_seen, waiter, now)
            }
            MachineEvent::IdleChecked(ticket, unused) => self.record_idle_check(&ticket, unused, now),
            MachineEvent::ReleaseLease { dialog, server, waiter } => {
                self.release_lease(&dialog, &server, waiter)
            }
            MachineEvent::DialogEnded(end) => {
                self.forget_stopped_dialog(&end);
                self.end_dialog(&end)
            }
            MachineEvent::Restart(server) => self.restart_server(&server),
            MachineEvent::Disable(server) => self.disable_server(&server),
            MachineEvent::Tick => self.tick(now),
            MachineEvent::Close => self.close(),
        }
        std::mem::take(&mut self.actions)
    }

    /// Applies a new configuration: starts added and changed servers, removes the others.
    fn configure(&mut self, mut desired: DesiredServers) {
        if let Some(items) = self.settings.list_items {
            desired.limit_lists(items);
        }
        self.mark_catalog_stale();
        // Slots of invalid entries without a running instance are created again below.
        self.slots.retain(|it| it.desired_server().is_some());
        let old: Vec<DesiredServer<'_>> = self.slots.iter().filter_map(ServerSlot::desired_server).collect();
        let new: Vec<DesiredServer<'_>> = desired.servers.iter().map(desired_server).collect();
        let mut plan = ReloadPlan::compute(&old, &new);
        let mut failed = desired.failed;
        // A running server whose entry became invalid remains (DM-105).
        let (invalid, removed): (Vec<_>, Vec<_>) = plan.removed.into_iter().partition(|id| {
            let is_running = |it: &ServerSlot<I>| it.name == *id && it.running.is_some();
            failed.iter().any(|it| it.id == *id) && self.slots.iter().any(is_running)
        });
        plan.removed = removed;
        let order = desired.servers.iter().map(|it| it.spec.id.clone().into());
        let order: Vec<ServerName> = order.chain(failed.iter().map(|it| it.id.clone())).collect();
        for id in &invalid {
            let entry = failed.iter().position(|it| it.id == *id).expect("it is a failed entry");
            let slot = self.slots.iter_mut().find(|it| it.name == *id).expect("it has a slot");
            // The start of one that ended between calls continues.
            if !slot.has_ended() {
                self.actions.extend(slot.abort_start());
            }
            slot.set_invalid(failed.remove(entry).error);
        }
        self.remove_servers(&plan.removed);
        let first_places = first_places(order.iter().map(|name| &**name));
        let mut slot_places: HashMap<ServerName, usize> = {
            let places = self.slots.iter().enumerate();
            places.rev().map(|(place, slot)| (slot.name.clone(), place)).collect()
        };
        for (at, server) in desired.servers.into_iter().enumerate() {
            let id = &server.spec.id;
            if first_places[id.as_str()] < at {
                let message = format!("another server is named '{id}'");
                let failure = HostError::new(ErrorKind::McpConfig, message);
                failed.push(FailedServer { id: id.clone().into(), error: failure });
                continue;
            }
            // The plan has added a server without a slot.
            let place = *slot_places.entry(id.clone().into()).or_insert_with(|| {
                self.slots.push(ServerSlot::new(id.clone().into()));
                self.slots.len() - 1
            });
            let slot = &mut self.slots[place];
            let actions = slot.configure(Arc::new(server), &mut self.last_ticket);
            if actions.iter().any(|it| matches!(it, MachineAction::Start(..))) {
                self.events.push(&slot.name, HostEventKind::Starting { failures: 0 });
            }
            self.actions.extend(actions);
        }
        for FailedServer { id, error: failure } in failed {
            self.slots.push(ServerSlot::invalid(id, failure));
        }
        self.apply_limits_to_leases();
        // The sort is stable: of two entries with one name, the running one comes first.
        let place = |slot: &ServerSlot<I>| first_places.get(&*slot.name).copied();
        if !self.slots.is_sorted_by_key(place) {
            self.slots.sort_by_cached_key(place);
        }
        plan.unchanged.extend(invalid);
        tracing::debug!(?plan, "configuration applied");
        self.reload_plan = plan;
    }

    /// Removes the servers that are not configured any more, which each have one slot.
    fn remove_servers(&mut self, removed: &[ServerId]) {
        if removed.is_empty() {
            return;
        }
        let removed: HashSet<&ServerId> = removed.iter().collect();
        let is_removed = |it: &mut ServerSlot<I>| it.name.id().is_some_and(|id| removed.contains(id));
        let slots: Vec<ServerSlot<I>> = self.slots.extract_if(.., is_removed).collect();
        for mut slot in slots {
            self.actions.extend(slot.abort_start());
            if let Some(instance) = slot.running.and_then(|it| it.instance) {
                self.events.push(&slot.name, HostEventKind::Retired);
                self.actions.push(MachineAction::retire(instance, DrainMode::CallsAndPins));
            }
            self.end_outdated_leases(slot.name.id().expect("it is a removed id"), None);
        }
    }

    /// Handles a successful start: the new instance replaces the previous one of the server, which is retired.
    fn handle_start(&mut self, ticket: StartTicket, started: StartedInstance<I>, now: Instant) {
        let started = match self.handle_leased_start(&ticket, started, now) {
            Ok(()) => return,
            Err(started) => *started,
        };
        let StartedInstance { instance, era, listing } = started;
        let Some(slot) = self.slots.iter_mut().find(|it| it.is_starting(&ticket)) else {
            return self.actions.push(MachineAction::retire(instance, DrainMode::Calls));
        };
        let StartState::Pending { server, .. } = std::mem::replace(&mut slot.start, StartState::Done) else {
            unreachable!("a starting slot is pending");
        };
        // The server's names or limits may have changed during the start.
        let server = slot.server().unwrap_or(server);
        let is_leased = slot.is_leased(&server);
        self.actions.push(if is_leased {
            // This instance was needed only to read the lists: each dialog gets its own (DM-080).
            MachineAction::retire(instance.clone(), DrainMode::Calls)
        } else {
            MachineAction::Watch {
                ticket: ticket.clone(),
                instance: instance.clone(),
                listing: Box::new(listing.clone()),
            }
        });
        let (id, number) = (ticket.server.clone(), ticket.number);
        let instance = Some(instance).filter(|_| !is_leased);
        let mut running = RunningServer {
            ticket,
            server,
            instance,
            era,
            listing: Arc::new(listing),
            catalog_server: None,
            since: now,
            has_ended: false,
            next_probe: None,
            tool_problems: BTreeMap::new(),
        };
        let next = next_probe_time(&self.settings.supervision, &running.server, now);
        running.next_probe = next.filter(|_| running.can_be_probed());
        let replaced = slot.running.replace(running);
        slot.last_run = None;
        self.events.push(&slot.name, HostEventKind::Ready { era });
        let replaced = replaced.and_then(|it| it.instance);
        if replaced.is_some() {
            self.events.push(&slot.name, HostEventKind::Retired);
        }
        self.mark_catalog_stale();
        self.actions.extend(replaced.map(|it| MachineAction::retire(it, DrainMode::CallsPinsAndTasks)));
        self.end_outdated_leases(&id, Some(number));
    }

    /// Handles new lists of a running instance.
    fn update_lists(&mut self, ticket: StartTicket, listing: ListSnapshot) {
        let Some(slot) = self.slots.iter_mut().find(|it| it.is_running(&ticket)) else {
            return self.update_lease_lists(ticket, listing);
        };
        let name = slot.name.clone();
        let running = slot.running.as_mut().expect("the slot is running");
        let Some(instance) = running.instance.clone() else { return };
        if running.listing.lists.tools != listing.lists.tools {
            running.tool_problems.clear();
        }
        // Unchanged lists are not published.
        let has_changed = running.listing.differs_from(&listing);
        running.listing = Arc::new(listing.clone());
        if has_changed {
            self.events.push(&name, HostEventKind::ListsChanged);
            self.mark_catalog_stale();
        }
        self.actions.push(MachineAction::Watch { ticket, instance, listing: Box::new(listing) });
    }

    /// Adds a problem of a tool that a call reported; removes it if there is no `reason`.
    fn set_tool_problem(
        &mut self,
        server: &ServerId,
        problem: (String, ToolProblem),
        reason: Option<String>,
    ) {
        let slot = self.slots.iter_mut().find(|it| it.name == *server && it.running.is_some());
        let Some(running) = slot.and_then(|it| it.running.as_mut()) else { return };
        let Some(reason) = reason else {
            self.is_changed |= running.tool_problems.remove(&problem).is_some();
            return;
        };
        // The first reason is kept, because many calls report the same.
        if !running.tool_problems.contains_key(&problem)
            && running.listing.lists.tools.iter().any(|it| *it.name == *problem.0)
        {
            running.tool_problems.insert(problem, reason);
            self.is_changed = true;
        }
    }

    fn set_spill_problem(&mut self, problem: Option<Problem>) {
        self.is_changed |= self.spill_problem != problem;
        self.spill_problem = problem;
    }

    fn set_views(&mut self, views: Vec<NamedView>) {
        self.is_changed |= self.views != views;
        self.views = views;
    }

    fn set_file_problems(&mut self, problems: Vec<Problem>) {
        self.is_changed |= self.file_problems != problems;
        self.file_problems = problems;
    }

    /// Shuts down: aborts all starts and retires all instances.
    fn close(&mut self) {
        if self.phase == Phase::Closed {
            return;
        }
        self.phase = Phase::Closed;
        self.mark_catalog_stale();
        for slot in &mut self.slots {
            self.actions.extend(slot.abort_start());
            if let Some(instance) = slot.running.take().and_then(|it| it.instance) {
                self.events.push(&slot.name, HostEventKind::Retired);
                self.actions.push(MachineAction::retire(instance, DrainMode::Calls));
            }
        }
        self.close_leases();
    }

    /// Restarts a server, also if it is disabled.
    fn restart_server(&mut self, server: &ServerId) {
        let Some(slot) = self.slots.iter_mut().find(|it| it.name == *server) else { return };
        let actions = slot.restart(&mut self.last_ticket);
        if !actions.is_empty() {
            self.events.push(&slot.name, HostEventKind::Starting { failures: 0 });
            self.is_changed = true;
        }
        self.actions.extend(actions);
    }

    /// Disables a server until it is restarted or its entry changes.
    fn disable_server(&mut self, server: &ServerId) {
        let Some(slot) = self.slots.iter_mut().find(|it| it.name == *server) else { return };
        self.actions.extend(slot.disable());
        self.events.push(&slot.name, HostEventKind::Disabled);
        self.mark_catalog_stale();
        self.end_outdated_leases(server, None);
    }

    /// Causes a new snapshot with a rebuilt catalog.
    fn mark_catalog_stale(&mut self) {
        self.is_changed = true;
        self.is_catalog_stale = true;
    }
}

#[cfg(test)]
pub(crate) mod tests;
