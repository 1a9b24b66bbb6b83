//! Backoff between requests for a stream.
//!
//! The delays double until a stream is stable. A server can set the first delay (`retry`) within bounds.

use std::time::Duration;

/// Minimum first delay that a server can set.
const MIN_DELAY: Duration = Duration::from_millis(500);

/// First delay unless the server sets one.
const DEFAULT_DELAY: Duration = Duration::from_secs(1);

/// Maximum delay.
const MAX_DELAY: Duration = Duration::from_secs(60);

/// The delays of one stream.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    /// The first delay that the server has set.
    retry: Option<Duration>,
    /// Number of delays since the last reset.
    pub(super) attempts: u32,
}

impl Backoff {
    /// Sets the first delay.
    pub(super) fn set_retry(&mut self, retry: Duration) {
        self.retry = Some(retry.clamp(MIN_DELAY, MAX_DELAY));
    }

    /// Makes the next delay the first one again, because the stream was stable.
    pub(super) fn reset(&mut self) {
        self.attempts = 0;
    }

    /// The delay before the next attempt.
    pub(super) fn next_delay(&mut self) -> Duration {
        let first = self.retry.unwrap_or(DEFAULT_DELAY);
        let delay = first.saturating_mul(1 << self.attempts.min(16)).min(MAX_DELAY);
        self.attempts += 1;
        delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the delays after a server has set the first one (milliseconds).
    #[track_caller]
    fn check(retry: Option<u64>, want: &[u64]) {
        let mut backoff = Backoff::default();
        if let Some(retry) = retry {
            backoff.set_retry(Duration::from_millis(retry));
        }
        let delays: Vec<u64> = want.iter().map(|_| backoff.next_delay().as_millis() as u64).collect();
        assert_eq!(delays, want, "retry {retry:?}");
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
        assert_eq!((backoff.attempts, backoff.next_delay()), (0, DEFAULT_DELAY));
    }

    #[test]
    fn attempts_do_not_overflow() {
        let mut backoff = Backoff { retry: Some(MAX_DELAY), attempts: u32::MAX - 1 };
        assert_eq!(backoff.next_delay(), MAX_DELAY);
    }
}
