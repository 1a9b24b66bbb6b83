//! A limit on what a stream contains without a message, such as comments and empty lines. Reads no clock: the
//! current time is an argument.
//!
//! The rate limiter only slows such a stream down. This limit ends it. Keep-alives may be sent for days.

use std::time::Duration;

use tokio::time::Instant;

use crate::rpc::rate_limiter::BYTES_PER_MESSAGE;

/// Maximum number of lines without a message: a minute at the rate limit.
pub(crate) const MAX_IDLE_LINES: usize = 480_000;

/// The number of such lines per second that do not count.
const FREE_LINES_PER_SECOND: u64 = 100;

/// The lines without a message on one stream.
#[derive(Debug)]
pub(crate) struct IdleData {
    lines: usize,
    /// The time until which free lines were subtracted.
    reduced_at: Instant,
}

impl IdleData {
    /// Nothing at `now`.
    pub(crate) fn new(now: Instant) -> IdleData {
        IdleData { lines: 0, reduced_at: now }
    }

    /// Records lines without a message. Returns whether there are too many.
    pub(crate) fn record(&mut self, lines: usize, now: Instant) -> bool {
        let seconds = now.saturating_duration_since(self.reduced_at).as_secs();
        if seconds > 0 {
            let free = usize::try_from(seconds.saturating_mul(FREE_LINES_PER_SECOND)).unwrap_or(usize::MAX);
            self.lines = self.lines.saturating_sub(free);
            self.reduced_at += Duration::from_secs(seconds);
        }
        self.lines = self.lines.saturating_add(lines);
        self.lines > MAX_IDLE_LINES
    }

    /// Forgets the lines, because a message was received.
    pub(crate) fn reset(&mut self) {
        self.lines = 0;
    }
}

/// The error for a stream with too many lines without a message.
pub(crate) fn idle_data_message() -> String {
    format!(
        "the server floods the stream: {MAX_IDLE_LINES} comments, empty lines or units of {BYTES_PER_MESSAGE} bytes \
         without a message"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flood_ends_and_keep_alives_do_not() {
        let mut now = Instant::now();
        let mut idle = IdleData::new(now);
        // Ten lines each second for a month.
        for _ in 0..30 * 24 * 3600 {
            now += Duration::from_secs(1);
            assert!(!idle.record(10, now));
        }
        assert!(!idle.record(MAX_IDLE_LINES - 10, now));
        assert!(idle.record(1, now));
        idle.reset();
        assert!(!idle.record(MAX_IDLE_LINES, now));
        assert!(!idle.record(100, now + Duration::from_secs(1)));
        assert!(idle.record(1, now + Duration::from_secs(1)));
    }
}
