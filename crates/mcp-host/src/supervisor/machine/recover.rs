//! What is done about servers that failed, and how those that run are asked whether they still live.

use std::time::Duration;

use mcp_model::Era;
use tokio::time::Instant;

use super::slot::{Live, Slot, Start};
use super::supervision::{Down, ProbePolicy, RestartPolicy, Supervision, Verdict, next_probe};
use super::{Action, Machine, News, Phase, Ticket};
use crate::event::HostEventKind;
use crate::failure::HostError;

impl<I: Clone> Machine<I> {
    /// A start failed.
    pub(super) fn failed(&mut self, ticket: &Ticket, failure: HostError, now: Instant) -> Vec<Action<I>> {
        let Some(slot) = self.slots.iter_mut().find(|it| it.waits_for(ticket)) else {
            return self.lease_failed(ticket, failure, now);
        };
        let before = (slot.state(), slot.failure().cloned());
        let down = Down { kind: failure.kind, uptime: None };
        self.news.push(News::new(&slot.name, HostEventKind::StartFailed(failure.clone())));
        slot.start = Start::Failed(failure);
        self.news.extend(slot.set_back(&self.settings.supervision, down, now));
        // A server that fails for the tenth time in the same way wakes nobody.
        if before != (slot.state(), slot.failure().cloned()) {
            self.changed = true;
        }
        Vec::new()
    }

    /// What ran is gone.
    pub(super) fn died(&mut self, ticket: &Ticket, failure: HostError, now: Instant) -> Vec<Action<I>> {
        let Some(slot) = self.slots.iter_mut().find(|it| it.runs_by(ticket)) else {
            return self.lease_died(ticket, failure, now);
        };
        let uptime = slot.live.as_ref().map(|it| now.saturating_duration_since(it.since));
        let down = Down { kind: failure.kind, uptime };
        self.news.push(News::new(&slot.name, HostEventKind::Lost(failure.clone())));
        let actions = slot.lose(failure);
        match slot.start {
            Start::Failed(_) => {
                self.news.extend(slot.set_back(&self.settings.supervision, down, now));
            }
            Start::Pending { .. } | Start::Done => {}
        }
        self.touch();
        actions
    }

    /// Does what is due at `now`.
    pub(super) fn tick(&mut self, now: Instant) -> Vec<Action<I>> {
        let mut actions = Vec::new();
        if self.phase == Phase::Closed {
            return actions;
        }
        let within = self.probe().map(|it| it.timeout);
        for slot in &mut self.slots {
            if slot.trouble.next().is_some_and(|it| it <= now) {
                let setbacks = slot.trouble.setbacks();
                let before = slot.state();
                let again = slot.again(&mut self.starts);
                slot.trouble.tried();
                self.changed |= before != slot.state();
                if again.is_some() {
                    self.news.push(News::new(&slot.name, HostEventKind::Starting { failures: setbacks }));
                }
                actions.extend(again);
            }
            let live = slot.live.as_mut().filter(|it| it.probe.is_some_and(|it| it <= now));
            actions.extend(live.zip(within).and_then(|(live, within)| live.ask(within)));
        }
        actions.extend(self.tick_leases(now));
        actions
    }

    /// When there is next something to do.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        let slots = self.slots.iter().filter(|_| self.phase == Phase::Open);
        let slots =
            slots.flat_map(|it| [it.trouble.next(), it.live.as_ref().and_then(|it| it.probe)]).flatten();
        slots.chain(self.leases.next_wake()).min()
    }

    /// The machine that we run on has slept: whoever was there may be gone without a word.
    pub(super) fn woke(&mut self, slept: Duration, now: Instant) -> Vec<Action<I>> {
        tracing::info!(?slept, "this machine has slept; servers are asked whether they live");
        let within = self.probe().map(|it| it.timeout);
        let alive = self.slots.iter_mut().filter_map(|it| it.live.as_mut()).filter(|it| it.is_asked());
        let asked = alive.zip(within.into_iter().cycle()).filter_map(|(live, within)| live.ask(within));
        let mut actions: Vec<_> = asked.collect();
        actions.extend(self.wake_leases(now));
        actions
    }

    /// A server that was asked lives.
    pub(super) fn alive(&mut self, ticket: &Ticket, now: Instant) -> Vec<Action<I>> {
        if let Some(live) = self.slots.iter_mut().find_map(|it| it.lives_by(ticket)) {
            let next = next_probe(&self.settings.supervision, &live.server, now);
            live.probe = next.filter(|_| live.is_asked());
        }
        self.lease_alive(ticket, now);
        Vec::new()
    }

    pub(super) fn probe(&self) -> Option<&ProbePolicy> {
        match &self.settings.supervision {
            Supervision::Off => None,
            Supervision::Restart(RestartPolicy { probe, .. }) => Some(probe),
        }
    }
}

impl<I: Clone> Live<I> {
    /// Only one era has a `ping`, and only an instance can be asked.
    pub(super) fn is_asked(&self) -> bool {
        match self.era {
            Era::Legacy => self.instance.is_some(),
            Era::Modern => false,
        }
    }

    fn ask(&mut self, within: Duration) -> Option<Action<I>> {
        self.probe = None;
        Some(Action::Probe { ticket: self.ticket.clone(), instance: self.instance.clone()?, within })
    }
}

impl<I: Clone> Slot<I> {
    /// Plans what is done about a failure, and says so in its text where that is not soon.
    fn set_back(&mut self, supervision: &Supervision, down: Down, now: Instant) -> Option<News> {
        let Supervision::Restart(policy) = supervision else { return None };
        let verdict = self.trouble.setback(policy, &self.name, down, now);
        let setbacks = self.trouble.setbacks();
        let what = match verdict {
            Verdict::Again(after) => HostEventKind::RestartScheduled { after, failures: setbacks },
            Verdict::Rest(after) => HostEventKind::RestartSuspended { after, failures: setbacks },
            Verdict::Nothing => return None,
        };
        if let (Verdict::Rest(_), Start::Failed(failure)) = (verdict, &mut self.start) {
            failure.message.push_str(&format!(
                "; it went wrong {setbacks} times in a row, and is left alone for up to {} s",
                policy.cooldown.as_secs()
            ));
        }
        Some(News::new(&self.name, what))
    }
}

#[cfg(test)]
mod tests;
