//! How long to wait before a stream is asked for again: a pure value.
//!
//! A server may say how long (`retry`), but neither it nor a stream that breaks at once can make us ask in a storm:
//! the waits double until a stream has proved good.

use std::time::Duration;

/// The shortest wait that a server may ask for.
const MIN_DELAY: Duration = Duration::from_millis(500);

/// The first wait where the server does not say.
const DEFAULT_DELAY: Duration = Duration::from_secs(1);

/// The longest wait.
const MAX_DELAY: Duration = Duration::from_secs(60);

/// The waits of one stream.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    asked: Option<Duration>,
    streak: u32,
}

impl Backoff {
    /// The server said how long to wait.
    pub(super) fn set_retry(&mut self, retry: Duration) {
        self.asked = Some(retry.clamp(MIN_DELAY, MAX_DELAY));
    }

    /// The stream was good: the next wait is a first one.
    pub(super) fn reset(&mut self) {
        self.streak = 0;
    }

    /// How long to wait now.
    pub(super) fn next_delay(&mut self) -> Duration {
        let first = self.asked.unwrap_or(DEFAULT_DELAY);
        let wait = first.saturating_mul(1 << self.streak.min(16)).min(MAX_DELAY);
        self.streak += 1;
        wait
    }

    /// How many waits there have been since the stream was good.
    pub(super) fn attempts(&self) -> u32 {
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
            backoff.set_retry(Duration::from_millis(asked));
        }
        let waits: Vec<u64> = want.iter().map(|_| backoff.next_delay().as_millis() as u64).collect();
        assert_eq!(waits, want, "asked for {asked:?}");
    }

    #[test]
    fn delays_double_within_bounds() {
        check(None, &[1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000]);
        check(Some(0), &[500, 1000, 2000, 4000]);
        check(Some(3000), &[3000, 6000, 12000]);
        check(Some(u64::MAX), &[60000, 60000]);
    }

    #[test]
    fn reset_starts_with_the_first_delay() {
        let mut backoff = Backoff::default();
        backoff.next_delay();
        backoff.next_delay();
        backoff.reset();
        assert_eq!((backoff.attempts(), backoff.next_delay()), (0, DEFAULT_DELAY));
    }

    #[test]
    fn attempts_do_not_overflow() {
        let mut backoff = Backoff { asked: Some(MAX_DELAY), streak: u32::MAX - 1 };
        assert_eq!(backoff.next_delay(), MAX_DELAY);
    }
}
