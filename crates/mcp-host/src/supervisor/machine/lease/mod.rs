//! Leases: instances that belong to one dialog each (DM-074 to DM-080).
//!
//! The base of a lease is the start of the server whose lists the leased instance uses; leases store its ticket number.
//! When the base is replaced, its leases end, and waiting calls look up the server again.

mod backoff;
mod history;
mod state;
mod table;

use std::collections::HashMap;
use std::sync::Arc;

use mcp_host_model::{Era, ErrorKind, Method, ServerId, Sharing};
use tokio::time::Instant;

use super::supervision::{next_probe_time, saturating_after};
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
    /// Returns the running leases, if they have changed since the last call.
    pub(crate) fn lease_table(&mut self) -> Option<LeaseTable<I>> {
        if !std::mem::take(&mut self.leases.is_changed) {
            return None;
        }
        let mut active = HashMap::new();
        for lease in &self.leases.all {
            if let LeaseState::Running(RunningLease { instance, .. }) = &lease.state {
                let key = (lease.dialog.clone(), lease.ticket.server.clone());
                active.insert(key, ActiveLease { base: lease.base, instance: instance.clone() });
            }
        }
        Some(LeaseTable { active, reminders: self.leases.reminders.clone() })
    }

    /// Returns the dialog of a leased start.
    pub(crate) fn lease_dialog(&self, ticket: &StartTicket) -> Option<DialogId> {
        self.leases.all.iter().find(|it| it.ticket == *ticket).map(|it| it.dialog.clone())
    }

    /// Handles the first server request of a shared instance. If its server is leased from now on, the shared instance
    /// is retired after its calls, of which one may wait for the response, and its tasks.
    pub(super) fn handle_server_request(&mut self, ticket: &StartTicket, method: Method) {
        let can_lease = self.settings.leases.requesting_servers == RequestingServers::Lease;
        let Some(slot) = self.slots.iter_mut().find(|it| it.is_running(ticket)) else { return };
        let Some(running) = &mut slot.running else { return };
        if can_lease {
            slot.first_request.get_or_insert(method);
        }
        let is_leased = can_lease && running.server.spec.sharing == Sharing::Auto;
        if let Some(instance) = running.instance.take_if(|_| is_leased) {
            running.next_probe = None;
            let server = &ticket.server;
            tracing::info!(%server, %method, "the server sends requests: each client gets an instance of its own");
            self.events.push(server.as_str(), HostEventKind::LeasedPerDialog { method });
            self.actions.push(MachineAction::retire(instance, DrainMode::CallsUnlimitedAndTasks));
            self.is_changed = true;
        } else if let Some(instance) = running.instance.clone() {
            let (ticket, listing) = (ticket.clone(), Box::new(ListSnapshot::clone(&running.listing)));
            self.actions.push(MachineAction::Watch { ticket, instance, listing });
        }
    }

    /// Handles a request for a leased instance. Starts one if the dialog has none; the reply then follows the start.
    pub(super) fn handle_lease_request(
        &mut self,
        request: LeaseRequest,
        ends_seen: u64,
        waiter: WaiterId,
        now: Instant,
    ) {
        let LeaseRequest { dialog, server, base } = request;
        if self.phase == Phase::Closed {
            return self.reply(waiter, LeaseReply::Refused(HostError::shut_down()));
        }
        let slot = self.slots.iter().find(|it| it.name == server);
        let running = slot.and_then(|it| it.running.as_ref());
        let running = running.filter(|it| it.ticket.number == base && it.instance.is_none());
        let Some((base_ticket, entry, lists)) =
            running.map(|it| (it.ticket.clone(), Arc::clone(&it.server), Arc::clone(&it.listing.lists)))
        else {
            return self.reply(waiter, LeaseReply::Stale);
        };
        let own = self.leases.all.iter_mut().find(|it| it.dialog == dialog && it.base == base);
        let own = own.map(|it| {
            it.ends_seen = it.ends_seen.max(ends_seen);
            &mut it.state
        });
        match own {
            Some(LeaseState::Running(running)) => {
                let instance = running.instance.clone();
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
        let max_leases = self.settings.leases.max_leases;
        if self.leases.all.len() >= max_leases {
            let detail = format!(
                "the limit of {max_leases} leased instances is reached; release one, or end a dialog"
            );
            let error = HostError::of_server(ErrorKind::Connection, server.as_str(), detail);
            return self.reply(waiter, LeaseReply::Refused(error));
        }
        self.last_ticket += 1;
        let server = entry;
        let ticket = StartTicket { number: self.last_ticket, ..base_ticket };
        self.leases.all.push(Lease {
            dialog,
            ends_seen,
            ticket: ticket.clone(),
            base,
            server: Arc::clone(&server),
            state: LeaseState::Starting(vec![waiter]),
        });
        self.actions.push(MachineAction::StartLeased(ticket, server, lists));
    }

    /// Handles a successful start of a leased instance. Returns `started` as the error if no lease waits for it.
    pub(super) fn handle_leased_start(
        &mut self,
        ticket: &StartTicket,
        started: StartedInstance<I>,
        now: Instant,
    ) -> Result<(), Box<StartedInstance<I>>> {
        let idle_timeout = self.settings.leases.idle_timeout;
        let is_own = |it: &&mut Lease<I>| it.ticket == *ticket && matches!(it.state, LeaseState::Starting(_));
        let Some(lease) = self.leases.all.iter_mut().find(is_own) else { return Err(Box::new(started)) };
        let StartedInstance { instance, era, listing } = started;
        self.actions.push(MachineAction::Watch {
            ticket: ticket.clone(),
            instance: instance.clone(),
            listing: Box::new(listing.clone()),
        });
        let next_probe = next_probe_time(&self.settings.supervision, &lease.server, now);
        let running = RunningLease {
            instance: instance.clone(),
            era,
            lists: listing.lists,
            since: now,
            idle_check: idle_timeout.map(|it| saturating_after(now, it)),
            next_probe: next_probe.filter(|_| era == Era::Legacy),
        };
        let LeaseState::Starting(waiting) = std::mem::replace(&mut lease.state, LeaseState::Running(running))
        else {
            unreachable!("the lease is starting")
        };
        let replies =
            waiting.into_iter().map(|it| MachineAction::Reply(it, LeaseReply::Granted(instance.clone())));
        self.actions.extend(replies);
        let dialog = lease.dialog.clone();
        self.record_lease_start(&ticket.server, &dialog, now);
        self.events.push(ticket.server.as_str(), HostEventKind::Leased { dialog: dialog.clone() });
        let reminder = (dialog, ticket.server.clone());
        if reminder.0 != DialogId::anonymous() && !self.leases.reminders.contains(&reminder) {
            self.leases.reminders.push(reminder);
        }
        self.leases.is_changed = true;
        Ok(())
    }

    /// Handles new lists of a leased instance. They become those of the server, unless they may differ for each user.
    pub(super) fn update_lease_lists(&mut self, ticket: StartTicket, listing: ListSnapshot) {
        let is_of_user = self.leases.is_of_user(&ticket);
        let Some((running, base, _)) = self.leases.find_running(&ticket) else { return };
        let has_changed = running.lists != listing.lists;
        running.lists = Arc::clone(&listing.lists);
        let instance = running.instance.clone();
        let entry = self.slots.iter_mut().filter_map(|it| it.running.as_mut());
        if let Some(entry) = entry.into_iter().find(|it| it.ticket.number == base && !is_of_user) {
            // Only lists that have changed on this instance are newer than those of the server.
            let is_newer = entry.listing.lists != listing.lists && has_changed
                || entry.listing.failures != listing.failures
                || entry.listing.incomplete != listing.incomplete;
            if is_newer {
                if entry.listing.lists.tools != listing.lists.tools {
                    entry.tool_problems.clear();
                }
                let known = Arc::make_mut(&mut entry.listing);
                known.lists = Arc::clone(&listing.lists);
                known.failures.clone_from(&listing.failures);
                known.incomplete.clone_from(&listing.incomplete);
                self.events.push(ticket.server.as_str(), HostEventKind::ListsChanged);
                self.mark_catalog_stale();
            }
        }
        self.actions.push(MachineAction::Watch { ticket, instance, listing: Box::new(listing) });
    }

    /// Handles the result of an idle check of a leased instance.
    /// `idle` is the beginning of its idle time, and `None` while the instance is in use.
    pub(super) fn record_idle_check(&mut self, ticket: &StartTicket, idle: Option<Instant>, now: Instant) {
        let Some(idle_timeout) = self.settings.leases.idle_timeout else { return };
        let Some((running, ..)) = self.leases.find_running(ticket) else { return };
        let end = saturating_after(idle.unwrap_or(now), idle_timeout);
        if end > now {
            running.idle_check = Some(end);
            return;
        }
        self.end_leases(|it| it.ticket == *ticket, ReleaseReason::Idle);
    }

    /// Releases a dialog's lease of a server.
    pub(super) fn release_lease(&mut self, dialog: &DialogId, server: &ServerId, waiter: WaiterId) {
        self.leases.reminders.retain(|it| (&it.0, &it.1) != (dialog, server));
        self.leases.is_changed = true;
        let first_new = self.actions.len();
        let is_own = |it: &Lease<I>| it.dialog == *dialog && it.ticket.server == *server;
        self.end_leases(is_own, ReleaseReason::Requested);
        for action in &mut self.actions[first_new..] {
            // The reply follows when the instance is closed.
            if let MachineAction::Retire { waiter: on_close, .. } = action {
                *on_close = Some(waiter);
                return;
            }
        }
        let was_starting = self.actions.len() > first_new;
        self.reply(waiter, if was_starting { LeaseReply::Released } else { LeaseReply::NotHeld });
    }

    /// Handles the end of a dialog. Leases of a later dialog with the same id remain.
    pub(super) fn end_dialog(&mut self, end: &DialogEnd) {
        let is_own = |it: &Lease<I>| it.dialog == end.dialog && it.ends_seen <= end.number;
        self.end_leases(is_own, ReleaseReason::DialogEnded);
        let later = self.leases.all.iter().filter(|it| it.dialog == end.dialog);
        let later: Vec<ServerId> = later.map(|it| it.ticket.server.clone()).collect();
        if later.is_empty() {
            self.forget_crashes(&end.dialog);
        }
        self.leases.reminders.retain(|it| it.0 != end.dialog || later.contains(&it.1));
        self.leases.is_changed = true;
    }

    /// Ends the leases of a server on any other base than `base`. If there is a base, the server was replaced, and the
    /// tasks of the ended leases continue.
    pub(super) fn end_outdated_leases(&mut self, server: &ServerId, base: Option<u64>) {
        let is_outdated = |it: &Lease<I>| it.ticket.server == *server && Some(it.base) != base;
        let first_new = self.actions.len();
        self.end_leases(is_outdated, ReleaseReason::ServerChanged);
        for action in self.actions[first_new..].iter_mut().filter(|_| base.is_some()) {
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
    pub(super) fn apply_limits_to_leases(&mut self) {
        for lease in &mut self.leases.all {
            let entry = self.slots.iter().filter_map(|it| it.running.as_ref());
            let Some(entry) = entry.into_iter().find(|it| it.ticket.number == lease.base) else { continue };
            if let LeaseState::Running(running) = &lease.state
                && lease.server.spec.limits != entry.server.spec.limits
            {
                let instance = running.instance.clone();
                self.actions.push(MachineAction::SetLimits(instance, Arc::clone(&entry.server)));
            }
            lease.server = Arc::clone(&entry.server);
        }
    }

    /// Executes the idle checks and probes of leased instances that are due at `now`.
    pub(super) fn tick_leases(&mut self, now: Instant) {
        let timeout = self.probe_policy().map(|it| it.timeout);
        for lease in &mut self.leases.all {
            let (ticket, LeaseState::Running(running)) = (&lease.ticket, &mut lease.state) else { continue };
            if running.idle_check.is_some_and(|it| it <= now) {
                running.idle_check = None;
                self.actions.push(MachineAction::CheckIdle(ticket.clone(), running.instance.clone()));
            }
            if let Some(timeout) = timeout
                && running.next_probe.is_some_and(|it| it <= now)
            {
                running.next_probe = None;
                let (ticket, instance) = (ticket.clone(), running.instance.clone());
                self.actions.push(MachineAction::Probe { ticket, instance, timeout });
            }
        }
    }

    /// Probes all leased instances, because the computer was suspended.
    pub(super) fn probe_leases(&mut self, now: Instant) {
        if self.probe_policy().is_none() {
            return;
        }
        for lease in &mut self.leases.all {
            if let LeaseState::Running(running) = &mut lease.state
                && running.era == Era::Legacy
            {
                running.next_probe = Some(now);
            }
        }
        self.tick_leases(now);
    }

    /// Handles a successful probe of a leased instance.
    pub(super) fn record_lease_probe(&mut self, ticket: &StartTicket, now: Instant) {
        let Some(lease) = self.leases.all.iter_mut().find(|it| it.ticket == *ticket) else { return };
        if let LeaseState::Running(running) = &mut lease.state {
            let next = next_probe_time(&self.settings.supervision, &lease.server, now);
            running.next_probe = next.filter(|_| running.era == Era::Legacy);
        }
    }

    fn reply(&mut self, waiter: WaiterId, reply: LeaseReply<I>) {
        self.actions.push(MachineAction::Reply(waiter, reply));
    }

    /// Ends the leases that `is_ended` selects. Their instances are retired, or their starts aborted.
    fn end_leases(&mut self, is_ended: impl Fn(&Lease<I>) -> bool, reason: ReleaseReason) {
        let ended: Vec<Lease<I>> = self.leases.all.extract_if(.., |it| is_ended(it)).collect();
        for Lease { dialog, ticket, state, .. } in ended {
            self.leases.is_changed = true;
            let server = &ticket.server;
            // What a running instance waits for, and the reply to calls that wait for a start.
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
                    self.actions.push(MachineAction::AbortStart(ticket));
                    waiting.into_iter().for_each(|it| self.reply(it, reply.clone()));
                }
                LeaseState::Running(running) => {
                    let released = HostEventKind::Released { dialog: dialog.clone(), reason };
                    self.events.push(server.as_str(), released);
                    // The next call leases the server again, so its reminder remains.
                    if !matches!(reason, ReleaseReason::ConnectionLost | ReleaseReason::ServerChanged) {
                        self.leases.reminders.retain(|it| (&it.0, &it.1) != (&dialog, server));
                    }
                    self.actions.push(MachineAction::retire(running.instance, drain));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
