//! The deadlines of a call. Reads no clock: the current time is an argument.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::Expiry;

/// Returns `start + limit`, or a year after `start` if that overflows the clock.
pub(crate) fn time_after(start: Instant, limit: Duration) -> Instant {
    start.checked_add(limit).unwrap_or_else(|| start + Duration::from_secs(60 * 60 * 24 * 365))
}

/// The deadlines of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallDeadlines {
    /// When the call expires, and its timeout. The remaining pause is not included.
    absolute: Option<(Instant, Duration)>,
    /// When the call expires without progress, and its idle timeout.
    idle: Option<(Instant, Duration)>,
    /// Open server requests that belong to the call. While there are any, the idle deadline is paused.
    open_server_requests: u32,
    /// When the first of the open server requests arrived.
    paused_since: Option<Instant>,
    /// How much longer open server requests may pause the absolute deadline.
    max_pause: Duration,
}

impl CallDeadlines {
    /// Creates the deadlines of a call. The absolute deadline counts from `started_at`, the start of the call for
    /// its caller; the idle deadline counts from `now`, when the request is sent. A duration that overflows the
    /// clock means no deadline.
    pub(crate) fn new(
        started_at: Instant,
        now: Instant,
        absolute: Option<Duration>,
        idle: Option<Duration>,
    ) -> CallDeadlines {
        let deadline = |start: Instant, limit: Duration| start.checked_add(limit).map(|at| (at, limit));
        CallDeadlines {
            absolute: absolute.and_then(|limit| deadline(started_at, limit)),
            idle: idle.and_then(|limit| deadline(now, limit)),
            open_server_requests: 0,
            paused_since: None,
            max_pause: Duration::ZERO,
        }
    }

    /// Lets open server requests pause the absolute deadline, for at most this long in total.
    pub(crate) fn with_max_pause(self, max_pause: Duration) -> CallDeadlines {
        CallDeadlines { max_pause, ..self }
    }

    /// The absolute deadline and its timeout. While a server request is open, the remaining pause is added.
    fn absolute(&self) -> Option<(Instant, Duration)> {
        let (at, limit) = self.absolute?;
        match self.paused_since {
            Some(_) => Some((at.checked_add(self.max_pause)?, limit)),
            None => Some((at, limit)),
        }
    }

    /// The idle deadline and its timeout; `None` while a server request is open.
    fn idle(&self) -> Option<(Instant, Duration)> {
        self.idle.filter(|_| self.open_server_requests == 0)
    }

    /// The time of the earliest deadline.
    pub(crate) fn next(&self) -> Option<Instant> {
        [self.absolute(), self.idle()].into_iter().flatten().map(|(at, _)| at).min()
    }

    /// Restarts the idle deadline.
    pub(crate) fn reset_idle(&mut self, now: Instant) {
        if let Some((at, limit)) = &mut self.idle {
            *at = now.checked_add(*limit).unwrap_or(*at);
        }
    }

    /// Records that a server request was opened, which pauses the deadlines.
    pub(crate) fn pause(&mut self, now: Instant) {
        self.open_server_requests += 1;
        self.paused_since.get_or_insert(now);
    }

    /// Records that a server request has ended. After the last one, the deadlines continue.
    pub(crate) fn resume(&mut self, now: Instant) {
        self.open_server_requests = self.open_server_requests.saturating_sub(1);
        if let (0, Some(paused_since)) = (self.open_server_requests, self.paused_since) {
            let pause = now.saturating_duration_since(paused_since).min(self.max_pause);
            self.paused_since = None;
            self.max_pause -= pause;
            if let Some((at, _)) = &mut self.absolute {
                *at = at.checked_add(pause).unwrap_or(*at);
            }
        }
        self.reset_idle(now);
    }

    /// Returns the deadline that has passed, if any. If both have, that is the absolute one.
    pub(crate) fn expiry(&self, now: Instant) -> Option<Expiry> {
        match (self.absolute(), self.idle()) {
            (Some((at, limit)), _) if now >= at => Some(Expiry::Absolute(limit)),
            (_, Some((at, limit))) if now >= at => Some(Expiry::Idle(limit)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the expiry at several moments, for these timeouts and progress at these times. All times are in seconds.
    #[track_caller]
    fn check(absolute: Option<u64>, idle: Option<u64>, progress: &[u64], moments: &[(u64, Option<Expiry>)]) {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let mut deadline = CallDeadlines::new(
            start,
            start,
            absolute.map(Duration::from_secs),
            idle.map(Duration::from_secs),
        );
        for moment in progress {
            deadline.reset_idle(after(*moment));
        }
        for (moment, want) in moments {
            assert_eq!(deadline.expiry(after(*moment)), *want, "after {moment} s");
        }
    }

    #[test]
    fn hd_119_progress_does_not_move_the_absolute_deadline() {
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
    fn open_server_request_pauses_the_idle_deadline() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let (absolute, idle) = (Duration::from_secs(100), Duration::from_secs(3));
        let mut deadline = CallDeadlines::new(start, start, Some(absolute), Some(idle));
        deadline.pause(start);
        deadline.pause(after(1));
        assert_eq!((deadline.expiry(after(50)), deadline.next()), (None, Some(after(100))));
        deadline.resume(after(50));
        assert_eq!(deadline.expiry(after(60)), None, "another request is still open");
        deadline.resume(after(60));
        assert_eq!((deadline.expiry(after(62)), deadline.next()), (None, Some(after(63))));
        assert_eq!(deadline.expiry(after(63)), Some(Expiry::Idle(idle)));
        deadline.pause(after(62));
        assert_eq!(deadline.expiry(after(100)), Some(Expiry::Absolute(absolute)));
    }

    #[test]
    fn open_server_request_pauses_the_absolute_deadline_up_to_the_maximum() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let limit = Duration::from_secs(60);
        let passed = Some(Expiry::Absolute(limit));
        let mut deadline =
            CallDeadlines::new(start, start, Some(limit), None).with_max_pause(Duration::from_secs(100));
        deadline.pause(after(50));
        assert_eq!((deadline.expiry(after(61)), deadline.next()), (None, Some(after(160))));
        deadline.pause(after(55));
        deadline.resume(after(70));
        assert_eq!(deadline.expiry(after(90)), None, "another request is still open");
        deadline.resume(after(90));
        // The requests were open for 40 seconds.
        assert_eq!((deadline.expiry(after(99)), deadline.next()), (None, Some(after(100))));
        assert_eq!(deadline.expiry(after(100)), passed);
        deadline.pause(after(99));
        assert_eq!((deadline.expiry(after(159)), deadline.expiry(after(160))), (None, passed));
        // The maximum applies to all requests together.
        deadline.resume(after(300));
        deadline.pause(after(301));
        assert_eq!(deadline.next(), Some(after(160)));
    }

    #[test]
    fn overflowing_duration_is_no_deadline() {
        assert_eq!(
            CallDeadlines::new(Instant::now(), Instant::now(), Some(Duration::MAX), None).next(),
            None
        );
    }
}
