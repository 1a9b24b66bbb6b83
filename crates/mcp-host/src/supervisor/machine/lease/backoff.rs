//! Backoff for leased servers whose instances fail to start or crash soon: for a while calls receive the error
//! without a start.
//!
//! A failed start affects all dialogs, unless the instance is that of a user: another user may be welcome. A
//! crash affects only the dialog whose instance it was, because its calls may be the cause.
//!
//! Nothing restarts a leased server by itself: the first call after the backoff does. Meanwhile other calls receive
//! the error, so that a broken server costs one process at a time.

use mcp_host_model::ServerId;
use tokio::time::Instant;

use super::super::supervision::{Outage, Supervision};
use super::history::{LeaseFailure, LeaseHistory};
use super::{DrainMode, LeaseReply, LeaseState, Machine, MachineAction, RunningLease, StartTicket};
use crate::error::HostError;
use crate::state::dialog_id::DialogId;
use crate::state::event::{HostEventKind, ReleaseReason};

impl<I: Clone> Machine<I> {
    /// Why a call of `dialog` gets no instance of `server` at `now`.
    pub(super) fn lease_refusal(
        &mut self,
        server: &ServerId,
        dialog: &DialogId,
        now: Instant,
    ) -> Option<HostError> {
        let is_tried = self.leases.held.iter().any(|it| match it.state {
            LeaseState::Starting(_) => it.ticket.server == *server,
            LeaseState::Running(_) => false,
        });
        let lease_history = self.lease_history(server)?;
        let own = lease_history.crashed(dialog).and_then(|it| it.refusal(false, now));
        lease_history.starts.refusal(is_tried, now).or(own)
    }

    /// An instance of `dialog` started.
    pub(super) fn record_lease_start(&mut self, server: &ServerId, dialog: &DialogId, now: Instant) {
        let Some(lease_history) = self.lease_history(server) else { return };
        let was_down = lease_history.failure().is_some();
        lease_history.starts.record_start(now);
        if let Some(own) = lease_history.crashed(dialog) {
            own.record_start(now);
        }
        self.changed |= was_down;
    }

    /// A leased start failed.
    pub(in crate::supervisor::machine) fn handle_lease_failure(
        &mut self,
        ticket: &StartTicket,
        failure: HostError,
        now: Instant,
    ) {
        let Some(at) = self.leases.held.iter().position(|it| it.ticket == *ticket) else { return };
        let lease = self.leases.held.remove(at);
        let (server, dialog) = (ticket.server.as_str(), lease.dialog);
        self.events.push(server, HostEventKind::LeaseFailed { dialog, error: failure.clone() });
        if !lease.server.endpoint.is_per_user() {
            let down = Outage { kind: failure.kind, uptime: None };
            self.record_lease_failure(LeaseFailure { ticket, failure: failure.clone(), down }, None, now);
        }
        match lease.state {
            LeaseState::Starting(waiting) => {
                waiting.into_iter().for_each(|it| self.reply(it, LeaseReply::Refused(failure.clone())));
            }
            LeaseState::Running(live) => {
                self.actions.push(MachineAction::retire(live.instance, DrainMode::CallsAndPins));
            }
        }
    }

    /// A leased instance was lost. After a long run the next call replaces it at once; after a short one there is a
    /// backoff.
    pub(in crate::supervisor::machine) fn handle_lease_loss(
        &mut self,
        ticket: &StartTicket,
        failure: HostError,
        now: Instant,
    ) {
        let Some((RunningLease { since, .. }, _, dialog)) = self.leases.live_by(ticket) else {
            return;
        };
        let dialog = dialog.clone();
        let uptime = now.saturating_duration_since(*since);
        let lasted = match &self.settings.supervision {
            Supervision::Off => true,
            Supervision::Restart(policy) => uptime >= policy.stable_after,
        };
        if !lasted {
            let down = Outage { kind: failure.kind, uptime: Some(uptime) };
            self.record_lease_failure(
                LeaseFailure { ticket, failure: failure.clone(), down },
                Some(&dialog),
                now,
            );
        }
        self.events.push(ticket.server.as_str(), HostEventKind::ConnectionLost(failure));
        self.end_leases(|it| it.ticket == *ticket, ReleaseReason::ConnectionLost);
    }

    /// Records a crash of `dialog`'s instance, or a failed start.
    fn record_lease_failure(&mut self, setback: LeaseFailure<'_>, dialog: Option<&DialogId>, now: Instant) {
        let Supervision::Restart(policy) = &self.settings.supervision else { return };
        let server = setback.ticket.server.as_str();
        let Some(slot) = self.slots.iter_mut().find(|it| it.name == server) else { return };
        let tries = match dialog {
            Some(dialog) => slot.lease_history.dialog_starts(dialog),
            None => &mut slot.lease_history.starts,
        };
        tries.record_failure(policy, setback, self.starts, now);
        self.changed = true;
    }

    /// Forgets the crashes of an ended dialog.
    pub(super) fn forget_crashes(&mut self, dialog: &DialogId) {
        for slot in &mut self.slots {
            self.changed |= slot.lease_history.forget(dialog);
        }
    }

    fn lease_history(&mut self, server: &ServerId) -> Option<&mut LeaseHistory> {
        let slot = self.slots.iter_mut().find(|it| it.name == server.as_str())?;
        Some(&mut slot.lease_history)
    }
}
