//! When a call is given up: a pure value, the clock is an argument.

use std::time::Duration;

use tokio::time::Instant;

/// The deadlines of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deadline {
    absolute: Option<(Instant, Duration)>,
    idle: Option<(Instant, Duration)>,
    /// How many questions about the call are with somebody here: meanwhile the silence is ours.
    asked: u32,
    /// Since when there are any.
    since: Option<Instant>,
    /// How much longer such questions may keep the absolute deadline from running.
    patience: Duration,
}

/// Which deadline passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expiry {
    /// The whole call took longer than this.
    Absolute(Duration),
    /// Nothing was heard of it for this long.
    Idle(Duration),
}

impl Deadline {
    /// A call that `begun` for its caller and is made `now`. A duration too long for the clock is no deadline.
    pub(crate) fn new(
        begun: Instant,
        now: Instant,
        absolute: Option<Duration>,
        idle: Option<Duration>,
    ) -> Deadline {
        let at = |from: Instant, it: Duration| from.checked_add(it).map(|at| (at, it));
        Deadline {
            absolute: absolute.and_then(|it| at(begun, it)),
            idle: idle.and_then(|it| at(now, it)),
            asked: 0,
            since: None,
            patience: Duration::ZERO,
        }
    }

    /// The same, and questions of the peer that are with somebody here keep the absolute deadline from running, for this
    /// long in all.
    pub(crate) fn with_patience(self, patience: Duration) -> Deadline {
        Deadline { patience, ..self }
    }

    /// When the absolute deadline passes, as far as that is known: as long as somebody is asked, not before the patience is
    /// used up as well.
    fn absolute(&self) -> Option<(Instant, Duration)> {
        let (at, limit) = self.absolute?;
        match self.since {
            Some(_) => Some((at.checked_add(self.patience)?, limit)),
            None => Some((at, limit)),
        }
    }

    /// The next moment at which it has to be looked at.
    pub(crate) fn next(&self) -> Option<Instant> {
        match (self.absolute(), self.idle.filter(|_| self.asked == 0)) {
            (Some(absolute), Some(idle)) => Some(absolute.0.min(idle.0)),
            (absolute, idle) => absolute.or(idle).map(|it| it.0),
        }
    }

    /// Something was heard of the call.
    pub(crate) fn heard(&mut self, now: Instant) {
        if let Some((at, idle)) = &mut self.idle {
            *at = now.checked_add(*idle).unwrap_or(*at);
        }
    }

    /// The peer asks somebody here something because of the call: until that is over, it is not the peer that is silent.
    pub(crate) fn ask(&mut self, now: Instant) {
        self.asked += 1;
        self.since.get_or_insert(now);
    }

    /// One of those questions is over.
    pub(crate) fn asked(&mut self, now: Instant) {
        self.asked = self.asked.saturating_sub(1);
        if let (0, Some(since)) = (self.asked, self.since) {
            let waited = now.saturating_duration_since(since).min(self.patience);
            self.since = None;
            self.patience -= waited;
            if let Some((at, _)) = &mut self.absolute {
                *at = at.checked_add(waited).unwrap_or(*at);
            }
        }
        self.heard(now);
    }

    /// Has one of them passed?
    pub(crate) fn expired(&self, now: Instant) -> Option<Expiry> {
        match (self.absolute(), self.idle.filter(|_| self.asked == 0)) {
            (Some((at, limit)), _) if now >= at => Some(Expiry::Absolute(limit)),
            (_, Some((at, limit))) if now >= at => Some(Expiry::Idle(limit)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds: absolute, idle, when something was heard; then what has passed at each of the moments given.
    #[track_caller]
    fn check(absolute: Option<u64>, idle: Option<u64>, heard: &[u64], moments: &[(u64, Option<Expiry>)]) {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut deadline =
            Deadline::new(start, start, absolute.map(Duration::from_secs), idle.map(Duration::from_secs));
        for moment in heard {
            deadline.heard(after(*moment));
        }
        for (moment, want) in moments {
            assert_eq!(deadline.expired(after(*moment)), *want, "after {moment} s");
        }
    }

    #[test]
    fn hd_119_the_absolute_deadline_holds_whatever_is_heard() {
        let passed = Some(Expiry::Absolute(Duration::from_secs(10)));
        check(Some(10), None, &[9], &[(9, None), (10, passed)]);
        check(Some(10), Some(3), &[2, 4, 6, 8, 9], &[(9, None), (10, passed)]);
    }

    #[test]
    fn progress_moves_the_idle_deadline_only() {
        let idle = Some(Expiry::Idle(Duration::from_secs(3)));
        check(Some(10), Some(3), &[], &[(2, None), (3, idle)]);
        check(Some(10), Some(3), &[2], &[(4, None), (5, idle)]);
        check(None, None, &[], &[(1 << 30, None)]);
    }

    #[test]
    fn while_somebody_here_is_asked_only_the_absolute_deadline_runs() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let (absolute, idle) = (Duration::from_secs(100), Duration::from_secs(3));
        let mut deadline = Deadline::new(start, start, Some(absolute), Some(idle));
        deadline.ask(start);
        deadline.ask(after(1));
        assert_eq!((deadline.expired(after(50)), deadline.next()), (None, Some(after(100))));
        deadline.asked(after(50));
        assert_eq!(deadline.expired(after(60)), None, "there is another one");
        deadline.asked(after(60));
        assert_eq!((deadline.expired(after(62)), deadline.next()), (None, Some(after(63))));
        assert_eq!(deadline.expired(after(63)), Some(Expiry::Idle(idle)));
        deadline.ask(after(62));
        assert_eq!(deadline.expired(after(100)), Some(Expiry::Absolute(absolute)));
    }

    #[test]
    fn a_caller_with_patience_gives_somebody_who_is_asked_time() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let limit = Duration::from_secs(60);
        let passed = Some(Expiry::Absolute(limit));
        let mut deadline =
            Deadline::new(start, start, Some(limit), None).with_patience(Duration::from_secs(100));
        deadline.ask(after(50));
        assert_eq!((deadline.expired(after(61)), deadline.next()), (None, Some(after(160))));
        deadline.ask(after(55));
        deadline.asked(after(70));
        assert_eq!(deadline.expired(after(90)), None, "there is another one");
        deadline.asked(after(90));
        // Forty seconds were somebody's here.
        assert_eq!((deadline.expired(after(99)), deadline.next()), (None, Some(after(100))));
        assert_eq!(deadline.expired(after(100)), passed);
        deadline.ask(after(99));
        assert_eq!((deadline.expired(after(159)), deadline.expired(after(160))), (None, passed));
        // The patience is for all of them together.
        deadline.asked(after(300));
        deadline.ask(after(301));
        assert_eq!(deadline.next(), Some(after(160)));
    }

    #[test]
    fn a_duration_past_the_end_of_time_is_none() {
        assert_eq!(Deadline::new(Instant::now(), Instant::now(), Some(Duration::MAX), None).next(), None);
    }
}
