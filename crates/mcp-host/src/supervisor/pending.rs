//! What has happened and is not yet published: whether it waits for what follows it.
//!
//! Servers that are started together become ready one after the other, and a catalog costs what all of them have. So
//! what became of a start waits a moment for others while there are any; the first and the last wait for nothing, and
//! nothing else that happens waits, nor does what a call waits for.

use std::time::Duration;

use tokio::time::Instant;

use crate::supervisor::machine::{Event, Ticket};

/// How long what became of starts is published at the most after what became of starts before.
const TOGETHER: Duration = Duration::from_millis(4);

/// What has happened, in order.
pub(crate) struct Pending<I> {
    events: Vec<Event<I>>,
    /// When something that became of a start was last taken.
    last: Option<Instant>,
}

impl<I> Pending<I> {
    /// Nothing has happened yet.
    pub(crate) fn new() -> Pending<I> {
        Pending { events: Vec::new(), last: None }
    }

    /// This has happened, too.
    pub(crate) fn extend(&mut self, events: Vec<Event<I>>) {
        self.events.extend(events);
    }

    /// Does all of it wait for other starts? One on a lease does not: a call waits for it.
    pub(crate) fn waits(&self, is_leased: impl Fn(&Ticket) -> bool, now: Instant) -> bool {
        let start = |it: &Event<I>| start_of(it).is_some_and(|it| !is_leased(it));
        self.due().is_some_and(|it| now < it) && self.events.iter().all(start)
    }

    /// When it has waited long enough; `None` where nothing does.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.last.filter(|_| !self.events.is_empty()).map(|it| it + TOGETHER)
    }

    /// All of it.
    pub(crate) fn take(&mut self, now: Instant) -> Vec<Event<I>> {
        if self.events.iter().any(|it| start_of(it).is_some()) {
            self.last = Some(now);
        }
        std::mem::take(&mut self.events)
    }
}

/// The start that this became of.
fn start_of<I>(event: &Event<I>) -> Option<&Ticket> {
    match event {
        Event::Ready(ticket, _) | Event::Failed(ticket, _) => Some(ticket),
        Event::Config(_)
        | Event::Source(_)
        | Event::Views(_)
        | Event::Approved(_)
        | Event::Lists(..)
        | Event::Died(..)
        | Event::Noted { .. }
        | Event::Spilling(_)
        | Event::Rejected { .. }
        | Event::Resume(_)
        | Event::Alive(_)
        | Event::Woke(_)
        | Event::Lease(..)
        | Event::Seen(..)
        | Event::Release(..)
        | Event::DialogOver(_)
        | Event::Restart(_)
        | Event::Disable(_)
        | Event::Tick
        | Event::Close => None,
    }
}

#[cfg(test)]
mod tests {
    use mcp_model::ErrorKind;

    use super::*;
    use crate::failure::HostError;
    use crate::fixture::server;
    use crate::supervisor::machine::desired;

    fn ticket(number: u64) -> Ticket {
        let server = server("a=1.1");
        Ticket { server: server.spec.id.clone(), runtime: desired(&server).runtime, number }
    }

    /// `now` are milliseconds, and what happens then: `s`, what became of a start; `l`, of one on a lease; `t`, something
    /// else. What is told is how many were taken when.
    #[track_caller]
    fn check(happens: &str, want: &str) {
        let begun = Instant::now();
        let mut pending: Pending<()> = Pending::new();
        let mut got = Vec::new();
        for step in happens.split(' ') {
            let (at, what) = step.split_once(':').unwrap();
            let now = begun + Duration::from_millis(at.parse().unwrap());
            let start = |number| Event::Failed(ticket(number), HostError::new(ErrorKind::Connection, "no"));
            let event = |it| match it {
                's' => start(1),
                'l' => start(2),
                't' => Event::Tick,
                other => panic!("{other}"),
            };
            pending.extend(what.chars().map(event).collect());
            if !pending.waits(|it| it.number == 2, now) {
                got.push(format!("{at}:{}", pending.take(now).len()));
            }
        }
        assert_eq!(got.join(" "), want, "{happens}");
    }

    #[test]
    fn what_became_of_starts_is_published_together() {
        check("0:s 1:s 3:ss 4:s 5:s 9:", "0:1 4:4 9:1");
        check("0:s 9:s 10:s 13:", "0:1 9:1 13:1");
    }

    #[test]
    fn nothing_else_waits_and_nothing_waits_behind_it() {
        check("0:s 1:s 2:t 3:s 6:", "0:1 2:2 6:1");
        check("0:s 1:s 2:l 3:t", "0:1 2:2 3:1");
        check("0:t 1:s 2:", "0:1 1:1 2:0");
    }

    #[test]
    fn what_waits_is_due_and_nothing_is_not() {
        let now = Instant::now();
        let mut pending: Pending<()> = Pending::new();
        pending.extend(vec![Event::Tick]);
        assert_eq!(pending.due(), None);
        pending.take(now);
        assert_eq!(pending.due(), None);
        let failed = || Event::Failed(ticket(1), HostError::new(ErrorKind::Connection, "no"));
        pending.extend(vec![failed()]);
        pending.take(now);
        assert_eq!(pending.due(), None);
        pending.extend(vec![failed()]);
        assert_eq!(pending.due(), Some(now + TOGETHER));
    }
}
