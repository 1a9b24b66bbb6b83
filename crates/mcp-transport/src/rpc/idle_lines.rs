//! A limit on lines without a message on a stream, such as comments and empty lines. Reads no clock: the current time
//! is an argument.
//!
//! The rate limiter only slows down a stream that is flooded with such lines. This limit ends it. Keep-alives, which
//! are few per second, may be sent for days.

use std::time::Duration;

use tokio::time::Instant;

use crate::rpc::rate_limiter::BYTES_PER_MESSAGE;

/// Maximum number of lines without a message. The rate limiter lets this many pass in a minute.
pub(crate) const MAX_IDLE_LINES: usize = 480_000;

/// The number of lines per second that do not count.
const FREE_LINES_PER_SECOND: u64 = 100;

/// Counts the lines without a message on one stream.
#[derive(Debug)]
pub(crate) struct IdleLineCounter {
    lines: usize,
    /// The end of the last second whose free lines were subtracted.
    reduced_at: Instant,
}

impl IdleLineCounter {
    /// A counter at zero.
    pub(crate) fn new(now: Instant) -> IdleLineCounter {
        IdleLineCounter { lines: 0, reduced_at: now }
    }

    /// Counts lines without a message. Returns true when they are too many and the stream must be ended.
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

    /// Sets the counter to zero, because a message was received.
    pub(crate) fn reset(&mut self) {
        self.lines = 0;
    }
}

/// The error for a stream with too many lines without a message.
pub(crate) fn idle_lines_message() -> String {
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
        let mut counter = IdleLineCounter::new(now);
        // Ten lines each second for a month.
        for _ in 0..30 * 24 * 3600 {
            now += Duration::from_secs(1);
            assert!(!counter.record(10, now));
        }
        assert!(!counter.record(MAX_IDLE_LINES - 10, now));
        assert!(counter.record(1, now));
        counter.reset();
        assert!(!counter.record(MAX_IDLE_LINES, now));
        assert!(!counter.record(100, now + Duration::from_secs(1)));
        assert!(counter.record(1, now + Duration::from_secs(1)));
    }
}
