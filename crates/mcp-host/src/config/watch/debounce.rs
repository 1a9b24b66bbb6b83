//! Debouncing of file changes. Does no I/O and reads no clock.
//!
//! A save causes several events. Therefore files are read after a time without events (DM-093), and at the latest
//! after a maximum delay.

use std::time::Duration;

use tokio::time::Instant;

/// The debounce state: the time window of the changes since the last read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Debounce {
    /// The time without changes after which the files are read.
    quiet: Duration,
    /// The maximum time from the first change to the read.
    max_delay: Duration,
    window: Option<DebounceWindow>,
}

/// The times of the first and the last change since the last read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DebounceWindow {
    first: Instant,
    last: Instant,
}

impl Debounce {
    /// Creates a state without changes. A read is due after `quiet` without changes, and at the latest after
    /// `max_delay`.
    pub(crate) fn new(quiet: Duration, max_delay: Duration) -> Debounce {
        Debounce { quiet, max_delay: max_delay.max(quiet), window: None }
    }

    /// Returns the state with a change at `now`.
    pub(crate) fn record(self, now: Instant) -> Debounce {
        let first = self.window.map_or(now, |it| it.first);
        Debounce { window: Some(DebounceWindow { first, last: now }), ..self }
    }

    /// Returns the time of the read; `None` without changes.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.window.map(|it| (it.last + self.quiet).min(it.first + self.max_delay))
    }

    /// Returns the state after the begin of a read, which includes all changes so far.
    pub(crate) fn reset(self) -> Debounce {
        Debounce { window: None, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events in milliseconds; expects the times of the reads. An event at the time of a read precedes it.
    #[track_caller]
    fn check(quiet: u64, max_delay: u64, events: &str, want: &str) {
        let begun = Instant::now();
        let at = |it: u64| begun + Duration::from_millis(it);
        let mut debounce = Debounce::new(Duration::from_millis(quiet), Duration::from_millis(max_delay));
        let mut looks = Vec::new();
        let mut look = |debounce: Debounce, until: Option<Instant>| match debounce.due() {
            Some(due) if until.is_none_or(|it| due < it) => {
                looks.push((due - begun).as_millis().to_string());
                debounce.reset()
            }
            Some(_) | None => debounce,
        };
        for event in events.split_whitespace() {
            let now = at(event.parse().unwrap());
            debounce = look(debounce, Some(now)).record(now);
        }
        debounce = look(debounce, None);
        assert_eq!(debounce.due(), None);
        assert_eq!(looks.join(" "), want);
    }

    #[test]
    fn dm_093_save_with_many_events_is_one_read() {
        check(200, 1000, "", "");
        check(200, 1000, "0", "200");
        check(200, 1000, "0 10 20 150", "350");
        check(200, 1000, "0 199", "399");
        check(200, 1000, "0 200", "400");
        check(200, 1000, "0 201", "200 401");
        check(100, 1000, "0 150 300", "100 250 400");
    }

    #[test]
    fn dm_093_busy_file_is_read_after_max_delay() {
        check(200, 1000, "0 150 300 450 600 750 900 1050 1200", "1000 1400");
        check(200, 300, "0 100 200 300 400 500 600 700", "300 700");
        // A maximum delay below the quiet time is raised to it.
        check(200, 0, "0 100 300", "200 500");
    }
}
