//! Pacing of reads of a server's lists. Does no I/O and reads no clock.
//!
//! An announcement is a `list_changed` notification. It causes a read after a delay that doubles while
//! announcements continue. A failed read is retried, also with a growing delay.

use std::time::Duration;

use tokio::time::Instant;

/// The delay between the first two reads of a burst.
const INITIAL_DELAY: Duration = Duration::from_millis(100);

/// The maximum delay. After this time without a read, the delay is reset.
const MAX_DELAY: Duration = Duration::from_secs(30);

/// The first and the maximum delay before a retry.
const INITIAL_RETRY: Duration = Duration::from_secs(1);
const MAX_RETRY: Duration = Duration::from_secs(60);

/// The pacing state of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListPacing {
    /// The end of the last read that an announcement caused.
    last: Option<Instant>,
    /// The minimum delay between that read and the next one.
    delay: Duration,
    /// The time of the next retry, and the delay of the retry after it. `None`: no list needs a retry.
    retry: Option<(Instant, Duration)>,
}

impl ListPacing {
    /// Creates the state before the first read.
    pub(crate) fn new() -> ListPacing {
        ListPacing { last: None, delay: INITIAL_DELAY, retry: None }
    }

    /// Returns the earliest time for a read that was announced at `now`.
    pub(crate) fn earliest_read(&self, now: Instant) -> Instant {
        match self.recent_read(now) {
            Some(last) => now.max(last + self.delay),
            None => now,
        }
    }

    /// Records a read that an announcement at `requested` caused, and that ended at `now`, with or without success.
    /// Doubles the delay if the read before was recent.
    pub(crate) fn record_announced_read(self, requested: Instant, now: Instant) -> ListPacing {
        let delay = match self.recent_read(requested) {
            Some(_) => (self.delay * 2).min(MAX_DELAY),
            None => INITIAL_DELAY,
        };
        ListPacing { last: Some(now), delay, ..self }
    }

    /// Returns the time of the next retry, if one is scheduled.
    pub(crate) fn retry_at(&self) -> Option<Instant> {
        self.retry.map(|(at, _)| at)
    }

    /// Records that a read failed at `now`, and schedules a retry.
    pub(crate) fn record_failure(self, now: Instant) -> ListPacing {
        let delay = self.retry.map_or(INITIAL_RETRY, |(_, delay)| delay);
        ListPacing { retry: Some((now + delay, (delay * 2).min(MAX_RETRY))), ..self }
    }

    /// Records that no list needs a retry any more.
    pub(crate) fn record_success(self) -> ListPacing {
        ListPacing { retry: None, ..self }
    }

    /// Returns the end of the last announced read, if it was recent at `now`.
    fn recent_read(&self, now: Instant) -> Option<Instant> {
        self.last.filter(|it| now < *it + MAX_DELAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milliseconds(text: &str) -> Duration {
        Duration::from_millis(text.parse().unwrap())
    }

    /// `announced` has the times of announcements and `want` those of their reads, each in milliseconds after the
    /// previous read.
    #[track_caller]
    fn check_pauses(announced: &str, want: &str) {
        let mut pacing = ListPacing::new();
        let mut last = Instant::now();
        let mut got = Vec::new();
        for after in announced.split_whitespace() {
            let requested_at = last + milliseconds(after);
            let begin = pacing.earliest_read(requested_at);
            got.push((begin - last).as_millis().to_string());
            pacing = pacing.record_announced_read(requested_at, begin);
            last = begin;
        }
        assert_eq!(got.join(" "), want);
    }

    #[test]
    fn hd_115_frequent_reads_are_delayed_until_it_is_quiet() {
        check_pauses("0 0 0 0 0", "0 100 200 400 800");
        check_pauses("0 0 0 0 0 0 0 0 0 0 0 0", "0 100 200 400 800 1600 3200 6400 12800 25600 30000 30000");
        check_pauses("0 0 0 500 0", "0 100 200 500 800");
        check_pauses("0 0 0 30000 0 0", "0 100 200 30000 100 200");
    }

    /// `readings` has `!` for a failed read and `.` for a successful one; `want` has the seconds until the next
    /// retry.
    #[track_caller]
    fn check_retries(readings: &str, want: &str) {
        let mut pacing = ListPacing::new();
        let mut got = Vec::new();
        let mut now = Instant::now();
        for it in readings.chars() {
            pacing = if it == '!' { pacing.record_failure(now) } else { pacing.record_success() };
            got.push(pacing.retry_at().map_or("-".to_owned(), |it| (it - now).as_secs().to_string()));
            now = pacing.retry_at().unwrap_or(now);
        }
        assert_eq!(got.join(" "), want);
    }

    #[test]
    fn hd_115_failed_reads_are_retried_with_growing_delay() {
        check_retries(".", "-");
        check_retries("!!!!!!!!!", "1 2 4 8 16 32 60 60 60");
        check_retries("!!.!", "1 2 - 1");
    }
}
