//! When what was heard of is looked at: values in, moments out. Nothing here waits or asks the time.
//!
//! A save is several events, so that the look waits until it is quiet (DM-093). A file that is written without a pause
//! is looked at all the same once it has been waited for long enough.

use std::time::Duration;

use tokio::time::Instant;

/// What was heard since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Debounce {
    quiet: Duration,
    longest: Duration,
    waiting: Option<Waiting>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Waiting {
    first: Instant,
    last: Instant,
}

impl Debounce {
    /// Waits for `quiet` without news, and not longer than `longest` in all.
    pub(crate) fn new(quiet: Duration, longest: Duration) -> Debounce {
        Debounce { quiet, longest: longest.max(quiet), waiting: None }
    }

    /// Something was heard at `now`.
    pub(crate) fn heard(self, now: Instant) -> Debounce {
        let first = self.waiting.map_or(now, |it| it.first);
        Debounce { waiting: Some(Waiting { first, last: now }), ..self }
    }

    /// When to look; `None` where nothing was heard.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.waiting.map(|it| (it.last + self.quiet).min(it.first + self.longest))
    }

    /// A look has begun: what was heard until now belongs to it.
    pub(crate) fn taken(self) -> Debounce {
        Debounce { waiting: None, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events at these milliseconds, and at which ones is looked. An event at the moment of a look comes before it.
    #[track_caller]
    fn check(quiet: u64, longest: u64, events: &str, want: &str) {
        let begun = Instant::now();
        let at = |it: u64| begun + Duration::from_millis(it);
        let mut debounce = Debounce::new(Duration::from_millis(quiet), Duration::from_millis(longest));
        let mut looks = Vec::new();
        let mut look = |debounce: Debounce, until: Option<Instant>| match debounce.due() {
            Some(due) if until.is_none_or(|it| due < it) => {
                looks.push((due - begun).as_millis().to_string());
                debounce.taken()
            }
            Some(_) | None => debounce,
        };
        for event in events.split_whitespace() {
            let now = at(event.parse().unwrap());
            debounce = look(debounce, Some(now)).heard(now);
        }
        debounce = look(debounce, None);
        assert_eq!(debounce.due(), None);
        assert_eq!(looks.join(" "), want);
    }

    #[test]
    fn dm_093_a_save_of_many_events_is_one_look() {
        check(200, 1000, "", "");
        check(200, 1000, "0", "200");
        check(200, 1000, "0 10 20 150", "350");
        check(200, 1000, "0 199", "399");
        check(200, 1000, "0 200", "400");
        check(200, 1000, "0 201", "200 401");
        check(100, 1000, "0 150 300", "100 250 400");
    }

    #[test]
    fn dm_093_a_busy_file_is_looked_at_in_the_end() {
        check(200, 1000, "0 150 300 450 600 750 900 1050 1200", "1000 1400");
        check(200, 300, "0 100 200 300 400 500 600 700", "300 700");
        // A longest wait below the quiet one would leave no pause at all.
        check(200, 0, "0 100 300", "200 500");
    }
}
