//! Pacing of list reads. Pure: times in, times out.
//!
//! An announcement is followed by a read after a delay that doubles while announcements continue. A failed read is
//! retried with a growing delay as well.

use std::time::Duration;

use tokio::time::Instant;

/// The delay between the first two reads in a row.
const INITIAL_DELAY: Duration = Duration::from_millis(100);

/// The maximum delay, and the time without reads after which the delay is reset.
const MAX_DELAY: Duration = Duration::from_secs(30);

/// The first and the maximum delay of a retry.
const INITIAL_RETRY: Duration = Duration::from_secs(1);
const MAX_RETRY: Duration = Duration::from_secs(60);

/// The read history of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListPacing {
    /// The last read after an announcement.
    last: Option<Instant>,
    /// The delay until the next one.
    delay: Duration,
    /// The time of the next retry, and the delay of the following one.
    retry: Option<(Instant, Duration)>,
}

impl ListPacing {
    /// Without reads.
    pub(crate) fn new() -> ListPacing {
        ListPacing { last: None, delay: INITIAL_DELAY, retry: None }
    }

    /// The earliest time for a read announced at `now`.
    pub(crate) fn earliest_read(&self, now: Instant) -> Instant {
        match self.recent_read(now) {
            Some(last) => now.max(last + self.delay),
            None => now,
        }
    }

    /// After a read that was requested at `asked` and finished at `now`.
    pub(crate) fn read_done(self, asked: Instant, now: Instant) -> ListPacing {
        let delay = match self.recent_read(asked) {
            Some(_) => (self.delay * 2).min(MAX_DELAY),
            None => INITIAL_DELAY,
        };
        ListPacing { last: Some(now), delay, ..self }
    }

    /// The time of the next retry.
    pub(crate) fn retry_at(&self) -> Option<Instant> {
        self.retry.map(|(at, _)| at)
    }

    /// After a read failed at `now`.
    pub(crate) fn read_failed(self, now: Instant) -> ListPacing {
        let delay = self.retry.map_or(INITIAL_RETRY, |(_, delay)| delay);
        ListPacing { retry: Some((now + delay, (delay * 2).min(MAX_RETRY))), ..self }
    }

    /// After all lists were read.
    pub(crate) fn read_succeeded(self) -> ListPacing {
        ListPacing { retry: None, ..self }
    }

    /// The last read, if it was recent.
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

    /// Announcements in milliseconds after the previous read; expects the delays of their reads.
    #[track_caller]
    fn check_pauses(announced: &str, want: &str) {
        let mut pacing = ListPacing::new();
        let mut last = Instant::now();
        let mut got = Vec::new();
        for after in announced.split_whitespace() {
            let asked = last + milliseconds(after);
            let begin = pacing.earliest_read(asked);
            got.push((begin - last).as_millis().to_string());
            pacing = pacing.read_done(asked, begin);
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

    /// `!` is a failed read, `.` a successful one; expects the seconds until the next retry.
    #[track_caller]
    fn check_retries(readings: &str, want: &str) {
        let mut pacing = ListPacing::new();
        let mut got = Vec::new();
        let mut now = Instant::now();
        for it in readings.chars() {
            pacing = if it == '!' { pacing.read_failed(now) } else { pacing.read_succeeded() };
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
