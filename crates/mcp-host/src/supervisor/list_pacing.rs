//! When a server's lists may be read again: values in, moments out. Nothing here waits or asks the time.
//!
//! Two things ask for a reading. An announcement is answered soon, but a server that announces without end is read
//! less and less often. A list that could not be read is tried again by itself, also less and less often.

use std::time::Duration;

use tokio::time::Instant;

/// The pause between the first two readings that follow each other closely.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest such pause, and how long a server must not have been read for the next one to be the first again.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How long after a list could not be read it is tried again, for the first time and at the longest.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LONGEST_RETRY: Duration = Duration::from_secs(60);

/// What is remembered of one server's readings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    /// When an announcement was last answered.
    last: Option<Instant>,
    /// How long after that the next one is, if it is asked for soon.
    pause: Duration,
    /// When what could not be read is tried again, and how long after that once more.
    retry: Option<(Instant, Duration)>,
}

impl Pace {
    /// Of a server that was not read yet.
    pub(crate) fn new() -> Pace {
        Pace { last: None, pause: FIRST_PAUSE, retry: None }
    }

    /// When the reading that an announcement asks for at `now` may begin.
    pub(crate) fn begin(&self, now: Instant) -> Instant {
        match self.close(now) {
            Some(last) => now.max(last + self.pause),
            None => now,
        }
    }

    /// The pace after announcements up to `asked` were answered, at `now`.
    pub(crate) fn answered(self, asked: Instant, now: Instant) -> Pace {
        let pause = match self.close(asked) {
            Some(_) => (self.pause * 2).min(LONGEST_PAUSE),
            None => FIRST_PAUSE,
        };
        Pace { last: Some(now), pause, ..self }
    }

    /// When to try again what could not be read.
    pub(crate) fn retry(&self) -> Option<Instant> {
        self.retry.map(|(at, _)| at)
    }

    /// The pace after a reading failed at `now`.
    pub(crate) fn failed(self, now: Instant) -> Pace {
        let pause = self.retry.map_or(FIRST_RETRY, |(_, pause)| pause);
        Pace { retry: Some((now + pause, (pause * 2).min(LONGEST_RETRY))), ..self }
    }

    /// The pace once everything could be read.
    pub(crate) fn recovered(self) -> Pace {
        Pace { retry: None, ..self }
    }

    /// The last reading, where `now` is soon after it.
    fn close(&self, now: Instant) -> Option<Instant> {
        self.last.filter(|it| now < *it + LONGEST_PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milliseconds(text: &str) -> Duration {
        Duration::from_millis(text.parse().unwrap())
    }

    /// Announcements at these milliseconds after the reading before them, and how long after it each is answered.
    #[track_caller]
    fn check_pauses(announced: &str, want: &str) {
        let mut pace = Pace::new();
        let mut last = Instant::now();
        let mut got = Vec::new();
        for after in announced.split_whitespace() {
            let asked = last + milliseconds(after);
            let begin = pace.begin(asked);
            got.push((begin - last).as_millis().to_string());
            pace = pace.answered(asked, begin);
            last = begin;
        }
        assert_eq!(got.join(" "), want);
    }

    #[test]
    fn hd_115_readings_that_follow_closely_are_spaced_until_it_is_quiet() {
        check_pauses("0 0 0 0 0", "0 100 200 400 800");
        check_pauses("0 0 0 0 0 0 0 0 0 0 0 0", "0 100 200 400 800 1600 3200 6400 12800 25600 30000 30000");
        check_pauses("0 0 0 500 0", "0 100 200 500 800");
        check_pauses("0 0 0 30000 0 0", "0 100 200 30000 100 200");
    }

    /// `!` is a reading that fails, a dot one that does not; after each, in how many seconds there is another try.
    #[track_caller]
    fn check_retries(readings: &str, want: &str) {
        let mut pace = Pace::new();
        let mut got = Vec::new();
        let mut now = Instant::now();
        for it in readings.chars() {
            pace = if it == '!' { pace.failed(now) } else { pace.recovered() };
            got.push(pace.retry().map_or("-".to_owned(), |it| (it - now).as_secs().to_string()));
            now = pace.retry().unwrap_or(now);
        }
        assert_eq!(got.join(" "), want);
    }

    #[test]
    fn hd_115_a_list_that_cannot_be_read_is_tried_less_and_less_often() {
        check_retries(".", "-");
        check_retries("!!!!!!!!!", "1 2 4 8 16 32 60 60 60");
        check_retries("!!.!", "1 2 - 1");
    }
}
