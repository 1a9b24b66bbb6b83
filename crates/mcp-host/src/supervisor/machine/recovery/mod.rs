//! Restarts of failed servers and probes of running ones.

use std::time::Duration;

use mcp_host_model::Era;
use tokio::time::Instant;

use super::protocol::UnpublishedEvents;
use super::slot::{RunningServer, ServerSlot, StartState};
use super::supervision::{Outage, ProbePolicy, RestartDecision, RestartPolicy, Supervision, next_probe_time};
use super::{ConnectionLoss, LossMoment, Machine, MachineAction, Phase, StartTicket};
use crate::error::HostError;
use crate::state::event::HostEventKind;

impl<I: Clone> Machine<I> {
    /// Handles a failed start.
    pub(super) fn handle_start_failure(&mut self, ticket: &StartTicket, failure: HostError, now: Instant) {
        let Some(slot) = self.slots.iter_mut().find(|it| it.is_starting(ticket)) else {
            return self.handle_lease_failure(ticket, failure, now);
        };
        let state_before = (slot.state(), slot.failure().cloned());
        let outage = Outage::new(&failure, None);
        self.events.push(&slot.name, HostEventKind::StartFailed(failure.clone()));
        slot.start = StartState::Failed(failure.clone());
        if slot.has_ended() {
            self.actions.extend(slot.disconnect(failure));
            self.is_catalog_stale = true;
        }
        slot.schedule_restart(&self.settings.supervision, outage, now, &mut self.events);
        // A repeated failure is not published again.
        if state_before != (slot.state(), slot.failure().cloned()) {
            self.is_changed = true;
        }
    }

    /// Handles a lost connection. A server that ended between two calls is started again at once, however often: each
    /// start follows a call.
    pub(super) fn handle_disconnect(&mut self, ticket: &StartTicket, loss: ConnectionLoss, now: Instant) {
        let is_supervised = self.is_supervised();
        let Some(slot) = self.slots.iter_mut().find(|it| it.is_running(ticket)) else {
            return self.handle_lease_loss(ticket, loss, now);
        };
        let ConnectionLoss { error: failure, moment } = loss;
        if slot.has_ended() {
            return;
        }
        if is_supervised && moment == LossMoment::BetweenCalls {
            // It counts as a restart, and not as a failure.
            let failures = slot.restarts.failures.max(1);
            self.events.push(&slot.name, HostEventKind::ConnectionLost(failure));
            if let Some(start) = slot.start_successor(&mut self.last_ticket) {
                self.events.push(&slot.name, HostEventKind::Starting { failures });
                self.actions.push(start);
            }
            self.is_changed = true;
            return;
        }
        let uptime = slot.running.as_ref().map(|it| now.saturating_duration_since(it.since));
        let outage = Outage::new(&failure, uptime);
        self.events.push(&slot.name, HostEventKind::ConnectionLost(failure.clone()));
        self.actions.extend(slot.disconnect(failure));
        match slot.start {
            StartState::Failed(_) => {
                slot.schedule_restart(&self.settings.supervision, outage, now, &mut self.events);
            }
            StartState::Pending { .. } | StartState::Done => {}
        }
        self.mark_catalog_stale();
    }

    /// Executes what is due at `now`.
    pub(super) fn tick(&mut self, now: Instant) {
        if self.phase == Phase::Closed {
            return;
        }
        let timeout = self.probe_policy().map(|it| it.timeout);
        for slot in &mut self.slots {
            if slot.restarts.next_attempt.is_some_and(|it| it <= now) {
                let failures = slot.restarts.failures;
                let before = slot.state();
                let restart = slot.retry(&mut self.last_ticket);
                slot.restarts.clear_schedule();
                self.is_changed |= before != slot.state();
                if restart.is_some() {
                    self.events.push(&slot.name, HostEventKind::Starting { failures });
                }
                self.actions.extend(restart);
            }
            let running = slot.running.as_mut().filter(|it| it.next_probe.is_some_and(|probe| probe <= now));
            self.actions
                .extend(running.zip(timeout).and_then(|(running, timeout)| running.start_probe(timeout)));
        }
        self.tick_leases(now);
    }

    /// Returns the time at which the next action is due.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        let slots = self.slots.iter().filter(|_| self.phase == Phase::Open);
        let slots = slots
            .flat_map(|it| [it.restarts.next_attempt, it.running.as_ref().and_then(|it| it.next_probe)])
            .flatten();
        slots.chain(self.leases.due_times()).min()
    }

    /// Handles a suspend of the computer: connections may have been lost unnoticed, so servers are probed.
    pub(super) fn handle_clock_jump(&mut self, slept: Duration, now: Instant) {
        tracing::info!(?slept, "the computer was suspended; all servers are probed");
        let timeout = self.probe_policy().map(|it| it.timeout);
        if let Some(timeout) = timeout {
            let running = self.slots.iter_mut().filter_map(|it| it.running.as_mut());
            let probes = running.filter(|it| it.can_be_probed()).filter_map(|it| it.start_probe(timeout));
            self.actions.extend(probes);
        }
        self.probe_leases(now);
    }

    /// Handles a successful probe: schedules the next one.
    pub(super) fn record_probe(&mut self, ticket: &StartTicket, now: Instant) {
        if let Some(running) = self.slots.iter_mut().find_map(|it| it.running_mut(ticket)) {
            let next = next_probe_time(&self.settings.supervision, &running.server, now);
            running.next_probe = next.filter(|_| running.can_be_probed());
        }
        self.record_lease_probe(ticket, now);
    }

    /// Returns whether failed servers are restarted.
    pub(crate) fn is_supervised(&self) -> bool {
        self.probe_policy().is_some()
    }

    /// Returns the policy for probes; `None`: servers are not probed.
    pub(super) fn probe_policy(&self) -> Option<&ProbePolicy> {
        match &self.settings.supervision {
            Supervision::Off => None,
            Supervision::Restart(RestartPolicy { probe, .. }) => Some(probe),
        }
    }
}

impl<I: Clone> RunningServer<I> {
    /// Returns whether the server can be probed: only legacy servers support `ping`, and a leased server has no shared
    /// instance.
    pub(super) fn can_be_probed(&self) -> bool {
        match self.era {
            Era::Legacy => self.instance.is_some() && !self.has_ended,
            Era::Modern => false,
        }
    }

    /// Returns an action to probe the shared instance. The next probe is scheduled when this one has succeeded.
    fn start_probe(&mut self, timeout: Duration) -> Option<MachineAction<I>> {
        self.next_probe = None;
        Some(MachineAction::Probe { ticket: self.ticket.clone(), instance: self.instance.clone()?, timeout })
    }
}

impl<I: Clone> ServerSlot<I> {
    /// Schedules a restart. If restarts are suspended, the error says so.
    fn schedule_restart(
        &mut self,
        supervision: &Supervision,
        outage: Outage,
        now: Instant,
        events: &mut UnpublishedEvents,
    ) {
        let Supervision::Restart(policy) = supervision else { return };
        let decision = self.restarts.record_failure(policy, &self.name, outage, now);
        let failures = self.restarts.failures;
        let event = match decision {
            RestartDecision::Retry(after) => HostEventKind::RestartScheduled { after, failures },
            RestartDecision::Suspend(after) => HostEventKind::RestartSuspended { after, failures },
            RestartDecision::GiveUp => return,
        };
        if let (RestartDecision::Suspend(_), StartState::Failed(failure)) = (decision, &mut self.start) {
            failure.message.push_str(&format!(
                "; it failed {failures} times in a row; restarts are suspended for up to {} s",
                policy.cooldown.as_secs()
            ));
        }
        events.push(&self.name, event);
    }
}

#[cfg(test)]
mod tests;
