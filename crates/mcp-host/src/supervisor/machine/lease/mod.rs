//! Leases: instances that belong to one dialog each (DM-074 to DM-080).
//!
//! A lease has a base: the server's start that last read its lists. When the base is replaced, its leases end, and
//! waiting calls look up the server again.

mod backoff;
mod history;
mod state;
mod table;

use std::collections::HashMap;
use std::sync::Arc;

use mcp_host_model::{Era, ErrorKind, Method, ServerId, Sharing};
use tokio::time::Instant;

use super::supervision::{next_probe, saturating_after};
use super::{DrainMode, Machine, MachineAction, Phase, StartTicket, StartedInstance};
use crate::error::HostError;
use crate::state::dialog_id::DialogId;
use crate::state::event::{HostEventKind, ReleaseReason};
use crate::supervisor::dialog_end::DialogEnd;
use crate::supervisor::lease_policy::RequestingServers;
use crate::supervisor::lists::ListSnapshot;

pub(super) use history::LeaseHistory;
pub(super) use state::Leases;
use state::{Lease, LeaseState, RunningLease};
pub(crate) use table::{ActiveLease, LeaseReply, LeaseRequest, LeaseTable, WaiterId};

impl<I: Clone> Machine<I> {
    /// The leases, if they have changed since the last call.
    pub(crate) fn lease_table(&mut self) -> Option<LeaseTable<I>> {
        if !std::mem::take(&mut self.leases.changed) {
            return None;
        }
        let mut held = HashMap::new();
        for lease in &self.leases.held {
            if let LeaseState::Running(RunningLease { instance, .. }) = &lease.state {
                let key = (lease.dialog.clone(), lease.ticket.server.clone());
                held.insert(key, ActiveLease { base: lease.base, instance: instance.clone() });
            }
        }
        Some(LeaseTable { held, reminders: self.leases.reminders.clone() })
    }

    /// The dialog of a leased start.
    pub(crate) fn lessee(&self, ticket: &StartTicket) -> Option<DialogId> {
        self.leases.held.iter().find(|it| it.ticket == *ticket).map(|it| it.dialog.clone())
    }

    /// Handles the first server request of a shared instance. If its server is leased from now on, each dialog gets an
    /// instance of its own. The shared one finishes its calls, because one of them may wait for the response, and its
    /// tasks.
    pub(super) fn server_request(&mut self, ticket: &StartTicket, method: Method) {
        let may_lease = self.settings.leases.requesting_servers == RequestingServers::Lease;
        let Some(slot) = self.slots.iter_mut().find(|it| it.is_running(ticket)) else { return };
        let Some(running) = &mut slot.running else { return };
        if may_lease {
            slot.requested.get_or_insert(method);
        }
        let is_leased = may_lease && running.server.spec.sharing == Sharing::Auto;
        if let Some(instance) = running.instance.take_if(|_| is_leased) {
            running.probe = None;
            let server = &ticket.server;
            tracing::info!(%server, %method, "the server sends requests: each client gets an instance of its own");
            self.events.push(server.as_str(), HostEventKind::LeasedPerDialog { method });
            self.actions.push(MachineAction::retire(instance, DrainMode::CallsUnlimitedAndTasks));
            self.changed = true;
        } else if let Some(instance) = running.instance.clone() {
            let (ticket, listed) = (ticket.clone(), running.listed.clone());
            self.actions.push(MachineAction::Watch { ticket, instance, listed });
        }
    }

    /// Requests an instance for a dialog.
    pub(super) fn lease(&mut self, request: LeaseRequest, ends_seen: u64, waiter: WaiterId, now: Instant) {
        let LeaseRequest { dialog, server, base } = request;
        if self.phase == Phase::Closed {
            return self.reply(waiter, LeaseReply::Refused(HostError::shut_down()));
        }
        let slot = self.slots.iter().find(|it| it.name == server.as_str());
        let live = slot.and_then(|it| it.running.as_ref());
        let live = live.filter(|it| it.ticket.number == base && it.instance.is_none());
        let Some((base_ticket, entry, lists)) =
            live.map(|it| (it.ticket.clone(), Arc::clone(&it.server), Arc::clone(&it.listed.lists)))
        else {
            return self.reply(waiter, LeaseReply::Stale);
        };
        let own = self.leases.held.iter_mut().find(|it| it.dialog == dialog && it.base == base);
        let own = own.map(|it| {
            it.ends_seen = it.ends_seen.max(ends_seen);
            &mut it.state
        });
        match own {
            Some(LeaseState::Running(live)) => {
                let instance = live.instance.clone();
                return self.reply(waiter, LeaseReply::Granted(instance));
            }
            Some(LeaseState::Starting(waiting)) => {
                waiting.push(waiter);
                return;
            }
            None => {}
        }
        if let Some(failure) = self.lease_refusal(&server, &dialog, now) {
            return self.reply(waiter, LeaseReply::Refused(failure));
        }
        let most = self.settings.leases.max_leases;
        if self.leases.held.len() >= most {
            let detail =
                format!("the limit of {most} leased instances is reached; release one, or end a dialog");
            let error = HostError::of_server(ErrorKind::Connection, server.as_str(), detail);
            return self.reply(waiter, LeaseReply::Refused(error));
        }
        self.starts += 1;
        let server = entry;
        let ticket = StartTicket { number: self.starts, ..base_ticket };
        self.leases.held.push(Lease {
            dialog,
            ends_seen,
            ticket: ticket.clone(),
            base,
            server: Arc::clone(&server),
            state: LeaseState::Starting(vec![waiter]),
        });
        self.actions.push(MachineAction::StartLeased(ticket, server, lists));
    }

    /// Handles a successful leased start. Returns `started` as an error if no lease waits for it.
    pub(super) fn lease_ready(
        &mut self,
        ticket: &StartTicket,
        started: StartedInstance<I>,
        now: Instant,
    ) -> Result<(), Box<StartedInstance<I>>> {
        let idle = self.settings.leases.idle_timeout;
        let waits = |it: &&mut Lease<I>| it.ticket == *ticket && matches!(it.state, LeaseState::Starting(_));
        let Some(lease) = self.leases.held.iter_mut().find(waits) else { return Err(Box::new(started)) };
        let StartedInstance { instance, era, listed } = started;
        self.actions.push(MachineAction::Watch {
            ticket: ticket.clone(),
            instance: instance.clone(),
            listed: listed.clone(),
        });
        let live = RunningLease {
            instance: instance.clone(),
            era,
            lists: listed.lists,
            since: now,
            idle_check: idle.map(|it| saturating_after(now, it)),
            probe: next_probe(&self.settings.supervision, &lease.server, now).filter(|_| era == Era::Legacy),
        };
        let LeaseState::Starting(waiting) = std::mem::replace(&mut lease.state, LeaseState::Running(live))
        else {
            unreachable!("the lease is starting")
        };
        let answers =
            waiting.into_iter().map(|it| MachineAction::Reply(it, LeaseReply::Granted(instance.clone())));
        self.actions.extend(answers);
        let owner = (lease.dialog.clone(), ticket.server.clone());
        self.record_lease_start(&owner.1, &owner.0, now);
        let leased = HostEventKind::Leased { dialog: owner.0.clone() };
        self.events.push(ticket.server.as_str(), leased);
        if owner.0 != DialogId::anonymous() && !self.leases.reminders.contains(&owner) {
            self.leases.reminders.push(owner);
        }
        self.leases.changed = true;
        Ok(())
    }

    /// Handles new lists of a leased instance. They apply to its server, unless they may be those of one user.
    pub(super) fn lease_lists(&mut self, ticket: StartTicket, listed: ListSnapshot) {
        let is_of_user = self.leases.is_of_user(&ticket);
        let Some((live, base, _)) = self.leases.live_by(&ticket) else { return };
        let is_news = live.lists != listed.lists;
        live.lists = Arc::clone(&listed.lists);
        let instance = live.instance.clone();
        let entry = self.slots.iter_mut().filter_map(|it| it.running.as_mut());
        if let Some(entry) = entry.into_iter().find(|it| it.ticket.number == base && !is_of_user) {
            // Only a list that changed on this instance is taken; an outdated one is not.
            let differs =
                entry.listed.lists != listed.lists && is_news || entry.listed.failures != listed.failures;
            if differs {
                if entry.listed.lists.tools != listed.lists.tools {
                    entry.tool_problems.clear();
                }
                entry.listed.lists = Arc::clone(&listed.lists);
                entry.listed.failures.clone_from(&listed.failures);
                self.events.push(ticket.server.as_str(), HostEventKind::ListsChanged);
                self.mark_catalog_stale();
            }
        }
        self.actions.push(MachineAction::Watch { ticket, instance, listed });
    }

    /// Handles the result of an idle check of a leased instance.
    pub(super) fn record_idle_check(&mut self, ticket: &StartTicket, unused: Option<Instant>, now: Instant) {
        let Some(idle) = self.settings.leases.idle_timeout else { return };
        let Some((live, ..)) = self.leases.live_by(ticket) else { return };
        let end = saturating_after(unused.unwrap_or(now), idle);
        if end > now {
            live.idle_check = Some(end);
            return;
        }
        self.end_leases(|it| it.ticket == *ticket, ReleaseReason::Idle);
    }

    /// Releases a dialog's lease of a server.
    pub(super) fn release(&mut self, dialog: &DialogId, server: &ServerId, waiter: WaiterId) {
        self.leases.reminders.retain(|it| (&it.0, &it.1) != (dialog, server));
        self.leases.changed = true;
        let before = self.actions.len();
        let is_own = |it: &Lease<I>| it.dialog == *dialog && it.ticket.server == *server;
        self.end_leases(is_own, ReleaseReason::Requested);
        for action in &mut self.actions[before..] {
            // Replied when the last call has ended and the instance is closed.
            if let MachineAction::Retire { waiter: on_close, .. } = action {
                *on_close = Some(waiter);
                return;
            }
        }
        let is_held = self.actions.len() > before;
        self.reply(waiter, if is_held { LeaseReply::Released } else { LeaseReply::NotHeld });
    }

    /// Handles the end of a dialog. Leases of a later dialog with the same id remain.
    pub(super) fn end_dialog(&mut self, end: &DialogEnd) {
        let is_own = |it: &Lease<I>| it.dialog == end.dialog && it.ends_seen <= end.number;
        self.end_leases(is_own, ReleaseReason::DialogEnded);
        let later = self.leases.held.iter().filter(|it| it.dialog == end.dialog);
        let later: Vec<ServerId> = later.map(|it| it.ticket.server.clone()).collect();
        if later.is_empty() {
            self.forget_crashes(&end.dialog);
        }
        self.leases.reminders.retain(|it| it.0 != end.dialog || later.contains(&it.1));
        self.leases.changed = true;
    }

    /// Ends the leases of a server on any other base than `base`. Their tasks continue if there is a base.
    pub(super) fn end_outdated_leases(&mut self, server: &ServerId, base: Option<u64>) {
        let is_outdated = |it: &Lease<I>| it.ticket.server == *server && Some(it.base) != base;
        let before = self.actions.len();
        self.end_leases(is_outdated, ReleaseReason::ServerChanged);
        for action in self.actions[before..].iter_mut().filter(|_| base.is_some()) {
            if let MachineAction::Retire { drain, .. } = action {
                *drain = DrainMode::CallsPinsAndTasks;
            }
        }
    }

    /// Ends all leases at shutdown.
    pub(super) fn close_leases(&mut self) {
        self.leases.reminders.clear();
        self.end_leases(|_| true, ReleaseReason::HostShutdown);
    }

    /// Applies changed limits to leased instances.
    pub(super) fn limit_leases(&mut self) {
        for lease in &mut self.leases.held {
            let entry = self.slots.iter().filter_map(|it| it.running.as_ref());
            let Some(entry) = entry.into_iter().find(|it| it.ticket.number == lease.base) else { continue };
            if let LeaseState::Running(live) = &lease.state
                && lease.server.spec.limits != entry.server.spec.limits
            {
                self.actions.push(MachineAction::SetLimits(live.instance.clone(), Arc::clone(&entry.server)));
            }
            lease.server = Arc::clone(&entry.server);
        }
    }

    /// Executes what is due at `now`.
    pub(super) fn tick_leases(&mut self, now: Instant) {
        let within = self.ping().map(|it| it.timeout);
        for lease in &mut self.leases.held {
            let (ticket, LeaseState::Running(live)) = (&lease.ticket, &mut lease.state) else { continue };
            if live.idle_check.is_some_and(|it| it <= now) {
                live.idle_check = None;
                self.actions.push(MachineAction::CheckIdle(ticket.clone(), live.instance.clone()));
            }
            if let (Some(within), true) = (within, live.probe.is_some_and(|it| it <= now)) {
                live.probe = None;
                let (ticket, instance) = (ticket.clone(), live.instance.clone());
                self.actions.push(MachineAction::Probe { ticket, instance, within });
            }
        }
    }

    /// Probes all leased instances after a suspend.
    pub(super) fn wake_leases(&mut self, now: Instant) {
        if self.ping().is_none() {
            return;
        }
        for lease in &mut self.leases.held {
            if let LeaseState::Running(live) = &mut lease.state
                && live.era == Era::Legacy
            {
                live.probe = Some(now);
            }
        }
        self.tick_leases(now);
    }

    /// Handles a successful probe of a leased instance.
    pub(super) fn lease_alive(&mut self, ticket: &StartTicket, now: Instant) {
        let Some(lease) = self.leases.held.iter_mut().find(|it| it.ticket == *ticket) else { return };
        if let LeaseState::Running(live) = &mut lease.state {
            let next = next_probe(&self.settings.supervision, &lease.server, now);
            live.probe = next.filter(|_| live.era == Era::Legacy);
        }
    }

    fn reply(&mut self, waiter: WaiterId, reply: LeaseReply<I>) {
        self.actions.push(MachineAction::Reply(waiter, reply));
    }

    fn end_leases(&mut self, which: impl Fn(&Lease<I>) -> bool, reason: ReleaseReason) {
        let ended: Vec<Lease<I>> = self.leases.held.extract_if(.., |it| which(it)).collect();
        for Lease { dialog, ticket, state, .. } in ended {
            self.leases.changed = true;
            let server = &ticket.server;
            // What is waited for, and the reply to calls that wait for the start.
            let (drain, reply) = match reason {
                ReleaseReason::Requested => {
                    let detail = "its lease was released while it was starting";
                    let error = HostError::of_server(ErrorKind::Connection, server.as_str(), detail);
                    (DrainMode::CallsUnlimited, LeaseReply::Refused(error))
                }
                ReleaseReason::DialogEnded => {
                    let error = HostError::new(ErrorKind::Connection, "the dialog has ended");
                    (DrainMode::Calls, LeaseReply::Refused(error))
                }
                ReleaseReason::HostShutdown => {
                    (DrainMode::Calls, LeaseReply::Refused(HostError::shut_down()))
                }
                ReleaseReason::Idle | ReleaseReason::ConnectionLost | ReleaseReason::ServerChanged => {
                    (DrainMode::CallsAndPins, LeaseReply::Stale)
                }
            };
            match state {
                LeaseState::Starting(waiting) => {
                    self.actions.push(MachineAction::Abort(ticket));
                    waiting.into_iter().for_each(|it| self.reply(it, reply.clone()));
                }
                LeaseState::Running(live) => {
                    let released = HostEventKind::Released { dialog: dialog.clone(), reason };
                    self.events.push(server.as_str(), released);
                    // A lost server returns with the next call, so its reminder remains.
                    if !matches!(reason, ReleaseReason::ConnectionLost | ReleaseReason::ServerChanged) {
                        self.leases.reminders.retain(|it| (&it.0, &it.1) != (&dialog, server));
                    }
                    self.actions.push(MachineAction::retire(live.instance, drain));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
