//! Batching of the results of starts, so that they are published together.
//!
//! Each publication builds a catalog, at a cost for each server. Therefore the results of servers that start at
//! the same time wait briefly for each other. The first and the last result do not wait, nor does that of a leased
//! start, for which a call waits, nor do other events.

use std::time::Duration;

use tokio::time::Instant;

use crate::supervisor::machine::{MachineEvent, StartTicket};

/// The time that results of starts are batched, if a publication is short.
const BATCH_WINDOW: Duration = Duration::from_millis(4);

/// Results of starts are batched at least this many times as long as the last publication took, so that publications
/// take at most a fifth of the time.
const WINDOW_FACTOR: u32 = 4;

/// The maximum time that results of starts are batched.
const MAX_WINDOW: Duration = Duration::from_secs(1);

/// The pending events, in order.
pub(crate) struct EventBatcher<I> {
    events: Vec<MachineEvent<I>>,
    /// The time at which a result of a start was last taken.
    last_result: Option<Instant>,
    /// The time that results of starts are batched.
    window: Duration,
}

impl<I> EventBatcher<I> {
    /// Creates a batcher without events.
    pub(crate) fn new() -> EventBatcher<I> {
        EventBatcher { events: Vec::new(), last_result: None, window: BATCH_WINDOW }
    }

    /// Adds events.
    pub(crate) fn extend(&mut self, events: Vec<MachineEvent<I>>) {
        self.events.extend(events);
    }

    /// Returns whether all pending events can still wait for the results of other starts.
    pub(crate) fn should_wait(&self, is_leased: impl Fn(&StartTicket) -> bool, now: Instant) -> bool {
        let can_wait = |event: &MachineEvent<I>| start_ticket(event).is_some_and(|ticket| !is_leased(ticket));
        self.due().is_some_and(|due| now < due) && self.events.iter().all(can_wait)
    }

    /// Returns the time at which the wait ends; `None` if there are no events, or no result was taken before.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.last_result.filter(|_| !self.events.is_empty()).map(|last| last + self.window)
    }

    /// Records how long the last publication took.
    pub(crate) fn record_publication(&mut self, took: Duration) {
        self.window = (took * WINDOW_FACTOR).clamp(BATCH_WINDOW, MAX_WINDOW);
    }

    /// Takes all events.
    pub(crate) fn take(&mut self, now: Instant) -> Vec<MachineEvent<I>> {
        if self.events.iter().any(|it| start_ticket(it).is_some()) {
            self.last_result = Some(now);
        }
        std::mem::take(&mut self.events)
    }
}

/// Returns the ticket of the start whose result this event is.
fn start_ticket<I>(event: &MachineEvent<I>) -> Option<&StartTicket> {
    let (MachineEvent::Started(ticket, _) | MachineEvent::StartFailed(ticket, _)) = event else {
        return None;
    };
    Some(ticket)
}

#[cfg(test)]
mod tests {
    use mcp_host_model::ErrorKind;

    use super::*;
    use crate::error::HostError;
    use crate::supervisor::machine::tests::fixture::server;

    fn ticket(number: u64) -> StartTicket {
        StartTicket { server: server("a=1.1").spec.id.clone(), number }
    }

    /// Steps are `milliseconds:events`: `s` result of a start, `l` of a leased start, `t` another event. Expects the
    /// number of events taken at each time.
    #[track_caller]
    fn check(happens: &str, want: &str) {
        let begun = Instant::now();
        let mut pending: EventBatcher<()> = EventBatcher::new();
        let mut got = Vec::new();
        for step in happens.split(' ') {
            let (at, what) = step.split_once(':').unwrap();
            let now = begun + Duration::from_millis(at.parse().unwrap());
            let start = |number| {
                MachineEvent::StartFailed(ticket(number), HostError::new(ErrorKind::Connection, "no"))
            };
            let event = |it| match it {
                's' => start(1),
                'l' => start(2),
                't' => MachineEvent::Tick,
                other => panic!("{other}"),
            };
            pending.extend(what.chars().map(event).collect());
            if !pending.should_wait(|it| it.number == 2, now) {
                got.push(format!("{at}:{}", pending.take(now).len()));
            }
        }
        assert_eq!(got.join(" "), want, "{happens}");
    }

    #[test]
    fn results_of_starts_are_batched() {
        check("0:s 1:s 3:ss 4:s 5:s 9:", "0:1 4:4 9:1");
        check("0:s 9:s 10:s 13:", "0:1 9:1 13:1");
    }

    #[test]
    fn results_wait_longer_if_publications_are_long() {
        let now = Instant::now();
        let mut pending: EventBatcher<()> = EventBatcher::new();
        let failed = || MachineEvent::StartFailed(ticket(1), HostError::new(ErrorKind::Connection, "no"));
        pending.extend(vec![failed()]);
        pending.take(now);
        pending.extend(vec![failed()]);
        for (took, window) in [(0, 4), (1, 4), (5, 20), (9999, 1000)] {
            pending.record_publication(Duration::from_millis(took));
            assert_eq!(pending.due(), Some(now + Duration::from_millis(window)), "{took}");
        }
    }

    #[test]
    fn other_events_are_not_delayed() {
        check("0:s 1:s 2:t 3:s 6:", "0:1 2:2 6:1");
        check("0:s 1:s 2:l 3:t", "0:1 2:2 3:1");
        check("0:t 1:s 2:", "0:1 1:1 2:0");
    }

    #[test]
    fn waiting_events_have_a_due_time() {
        let now = Instant::now();
        let mut pending: EventBatcher<()> = EventBatcher::new();
        pending.extend(vec![MachineEvent::Tick]);
        assert_eq!(pending.due(), None);
        pending.take(now);
        assert_eq!(pending.due(), None);
        let failed = || MachineEvent::StartFailed(ticket(1), HostError::new(ErrorKind::Connection, "no"));
        pending.extend(vec![failed()]);
        pending.take(now);
        assert_eq!(pending.due(), None);
        pending.extend(vec![failed()]);
        assert_eq!(pending.due(), Some(now + BATCH_WINDOW));
    }
}
