//! How long to wait before a stream is asked for again: a pure value.
//!
//! A server may say how long (`retry`), but neither it nor a stream that breaks at once can make us ask in a storm:
//! the waits double until a stream has proved good.

use std::time::Duration;

/// The shortest wait that a server may ask for.
const SHORTEST: Duration = Duration::from_millis(500);

/// The first wait where the server does not say.
const USUAL: Duration = Duration::from_secs(1);

/// The longest wait.
const LONGEST: Duration = Duration::from_secs(60);

/// The waits of one stream.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    asked: Option<Duration>,
    streak: u32,
}

impl Backoff {
    /// The server said how long to wait.
    pub(super) fn asked(&mut self, retry: Duration) {
        self.asked = Some(retry.clamp(SHORTEST, LONGEST));
    }

    /// The stream was good: the next wait is a first one.
    pub(super) fn reset(&mut self) {
        self.streak = 0;
    }

    /// How long to wait now.
    pub(super) fn next(&mut self) -> Duration {
        let first = self.asked.unwrap_or(USUAL);
        let wait = first.saturating_mul(1 << self.streak.min(16)).min(LONGEST);
        self.streak += 1;
        wait
    }

    /// How many waits there have been since the stream was good.
    pub(super) fn streak(&self) -> u32 {
        self.streak
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a server asked for (milliseconds), and the waits that follow.
    #[track_caller]
    fn check(asked: Option<u64>, want: &[u64]) {
        let mut backoff = Backoff::default();
        if let Some(asked) = asked {
            backoff.asked(Duration::from_millis(asked));
        }
        let waits: Vec<u64> = want.iter().map(|_| backoff.next().as_millis() as u64).collect();
        assert_eq!(waits, want, "asked for {asked:?}");
    }

    #[test]
    fn waits_double_and_stay_within_bounds() {
        check(None, &[1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000]);
        check(Some(0), &[500, 1000, 2000, 4000]);
        check(Some(3000), &[3000, 6000, 12000]);
        check(Some(u64::MAX), &[60000, 60000]);
    }

    #[test]
    fn a_good_stream_begins_anew() {
        let mut backoff = Backoff::default();
        backoff.next();
        backoff.next();
        backoff.reset();
        assert_eq!((backoff.streak(), backoff.next()), (0, USUAL));
    }

    #[test]
    fn a_streak_has_no_end_that_overflows() {
        let mut backoff = Backoff { asked: Some(LONGEST), streak: u32::MAX - 1 };
        assert_eq!(backoff.next(), LONGEST);
    }
}
