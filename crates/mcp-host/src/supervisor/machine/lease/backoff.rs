//! Backoff for leased servers whose instances fail to start, or crash soon after it. During the backoff calls fail with
//! the error of the last start.
//!
//! A failed start affects all dialogs, unless the instance has the token of a user: the start may succeed for another
//! user. A crash affects only the dialog of the instance, because its calls may be the cause.
//!
//! The first call after the backoff starts the server again. Until that start has ended, other calls still fail, so
//! that a broken server costs one process at a time.

use mcp_host_model::ServerId;
use tokio::time::Instant;

use super::super::supervision::{Outage, Supervision};
use super::super::{ConnectionLoss, LossMoment};
use super::history::{LeaseFailure, LeaseHistory};
use super::{DrainMode, LeaseReply, LeaseState, Machine, MachineAction, RunningLease, StartTicket};
use crate::error::HostError;
use crate::state::dialog_id::DialogId;
use crate::state::event::{HostEventKind, ReleaseReason};

impl<I: Clone> Machine<I> {
    /// Returns the error of a call of `dialog` that gets no instance of `server` at `now`. `None`: one may be started.
    pub(super) fn lease_refusal(
        &mut self,
        server: &ServerId,
        dialog: &DialogId,
        now: Instant,
    ) -> Option<HostError> {
        let is_starting = self.leases.all.iter().any(|it| match it.state {
            LeaseState::Starting(_) => it.ticket.server == *server,
            LeaseState::Running(_) => false,
        });
        let lease_history = self.lease_history(server)?;
        let own = lease_history.find_crashes(dialog).and_then(|it| it.refusal(false, now));
        lease_history.starts.refusal(is_starting, now).or(own)
    }

    /// Records a successful start of an instance of `dialog`.
    pub(super) fn record_lease_start(&mut self, server: &ServerId, dialog: &DialogId, now: Instant) {
        let Some(lease_history) = self.lease_history(server) else { return };
        let had_failure = lease_history.failure().is_some();
        lease_history.starts.record_start(now);
        if let Some(own) = lease_history.find_crashes(dialog) {
            own.record_start(now);
        }
        self.is_changed |= had_failure;
    }

    /// Handles a failed start of a leased instance.
    pub(crate) fn handle_lease_failure(&mut self, ticket: &StartTicket, failure: HostError, now: Instant) {
        let Some(at) = self.leases.all.iter().position(|it| it.ticket == *ticket) else { return };
        let lease = self.leases.all.remove(at);
        let (server, dialog) = (ticket.server.as_str(), lease.dialog);
        self.events.push(server, HostEventKind::LeaseFailed { dialog, error: failure.clone() });
        if !lease.server.endpoint.is_per_user() {
            let outage = Outage::new(&failure, None);
            self.record_lease_failure(LeaseFailure { ticket, error: failure.clone(), outage }, None, now);
        }
        match lease.state {
            LeaseState::Starting(waiting) => {
                waiting.into_iter().for_each(|it| self.reply(it, LeaseReply::Refused(failure.clone())));
            }
            LeaseState::Running(running) => {
                self.actions.push(MachineAction::retire(running.instance, DrainMode::CallsAndPins));
            }
        }
    }

    /// Handles the loss of a leased instance. After a long uptime, or if it ended between two calls, the next call
    /// replaces it at once; otherwise there is a backoff.
    pub(crate) fn handle_lease_loss(&mut self, ticket: &StartTicket, loss: ConnectionLoss, now: Instant) {
        let ConnectionLoss { error: failure, moment } = loss;
        let Some((RunningLease { since, .. }, _, dialog)) = self.leases.find_running(ticket) else {
            return;
        };
        let dialog = dialog.clone();
        let uptime = now.saturating_duration_since(*since);
        let is_stable = match &self.settings.supervision {
            Supervision::Off => true,
            Supervision::Restart(policy) => {
                uptime >= policy.stable_after || moment == LossMoment::BetweenCalls
            }
        };
        if !is_stable {
            let outage = Outage::new(&failure, Some(uptime));
            self.record_lease_failure(
                LeaseFailure { ticket, error: failure.clone(), outage },
                Some(&dialog),
                now,
            );
        }
        self.events.push(ticket.server.as_str(), HostEventKind::ConnectionLost(failure));
        self.end_leases(|it| it.ticket == *ticket, ReleaseReason::ConnectionLost);
    }

    /// Records a crash of the instance of `dialog`, or without a dialog a failed start.
    fn record_lease_failure(&mut self, failure: LeaseFailure<'_>, dialog: Option<&DialogId>, now: Instant) {
        let Supervision::Restart(policy) = &self.settings.supervision else { return };
        let server = &failure.ticket.server;
        let Some(slot) = self.slots.iter_mut().find(|it| it.name == *server) else { return };
        let history = match dialog {
            Some(dialog) => slot.lease_history.history_for_crash(dialog),
            None => &mut slot.lease_history.starts,
        };
        history.record_failure(policy, failure, self.last_ticket, now);
        self.is_changed = true;
    }

    /// Forgets the crashes of an ended dialog.
    pub(super) fn forget_crashes(&mut self, dialog: &DialogId) {
        for slot in &mut self.slots {
            self.is_changed |= slot.lease_history.forget(dialog);
        }
    }

    /// Returns the failure history of a server.
    fn lease_history(&mut self, server: &ServerId) -> Option<&mut LeaseHistory> {
        let slot = self.slots.iter_mut().find(|it| it.name == *server)?;
        Some(&mut slot.lease_history)
    }
}
