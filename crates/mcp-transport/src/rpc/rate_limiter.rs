//! A token-bucket rate limiter for unsolicited messages. Reads no clock: the current time is an argument.
//!
//! Without a limit, a flood of notifications or noise would keep a CPU core busy. Above the rate the reader
//! pauses, the buffers fill, and the server blocks in its own write. Invariants: solicited messages cost nothing.
//! A pause is at most [`MAX_PAUSE`], so a response behind a flood is delayed but arrives. The caller need not read
//! the clock while only solicited messages arrive.

use std::time::Duration;

use tokio::time::Instant;

use crate::transport::MessageClass;

/// The cost of one unsolicited message: 8,000 messages per second.
const COST_PER_MESSAGE: Duration = Duration::from_micros(125);

/// This number of bytes in unsolicited messages costs as much as one message.
pub(crate) const BYTES_PER_MESSAGE: usize = 4 << 10;

/// The burst: 8,000 messages, or 32 MiB.
const BURST: Duration = Duration::from_secs(1);

/// Shorter pauses are postponed, because the runtime's timer has a resolution of milliseconds.
const MIN_PAUSE: Duration = Duration::from_millis(10);

/// The longest pause after one read.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Free messages for each response: a server may log during a call.
const FREE_PER_RESPONSE: i64 = 4;

/// The maximum number of free messages that can accumulate.
const MAX_FREE: i64 = 1024;

/// The rate limiter of one connection.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    /// When the bucket is full again.
    refilled_at: Instant,
    /// Unsolicited messages since the clock was last read; negative while free messages remain.
    charged: i64,
}

impl RateLimiter {
    /// A full bucket at `now`.
    pub(crate) fn new(now: Instant) -> RateLimiter {
        RateLimiter { refilled_at: now, charged: 0 }
    }

    /// Records a frame of this size.
    pub(crate) fn record(&mut self, class: MessageClass, bytes: usize) {
        match class {
            MessageClass::Solicited => self.credit(1),
            MessageClass::Unsolicited(messages) => self.charge(messages, bytes),
        }
    }

    /// Records this number of solicited messages.
    pub(crate) fn credit(&mut self, messages: u64) {
        let free = FREE_PER_RESPONSE.saturating_mul(i64::try_from(messages).unwrap_or(i64::MAX));
        self.charged = self.charged.saturating_sub(free).max(-MAX_FREE);
    }

    /// Records this number of unsolicited messages with this total size.
    pub(crate) fn charge(&mut self, messages: usize, bytes: usize) {
        let weight = messages.saturating_add(bytes / BYTES_PER_MESSAGE);
        self.charged = self.charged.saturating_add(i64::try_from(weight).unwrap_or(i64::MAX));
    }

    /// Whether [`RateLimiter::pause_until`] must be called.
    pub(crate) fn is_charged(&self) -> bool {
        self.charged > 0
    }

    /// Returns the time until which the reader must pause, if any.
    pub(crate) fn pause_until(&mut self, now: Instant) -> Option<Instant> {
        // The debt is capped at the longest pause.
        let unsolicited = u32::try_from(std::mem::take(&mut self.charged).max(0)).unwrap_or(u32::MAX);
        let spent = self
            .refilled_at
            .saturating_duration_since(now)
            .saturating_add(COST_PER_MESSAGE.saturating_mul(unsolicited));
        let spent = spent.min(BURST + MAX_PAUSE);
        self.refilled_at = now + spent;
        let pause = spent.saturating_sub(BURST);
        (pause >= MIN_PAUSE).then(|| now + pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row is a read, given in milliseconds after the end of the previous pause: `8000` is a number of small
    /// unsolicited messages, `+3` of solicited ones, `3*65536` of unsolicited ones of that size. The result lists the
    /// pause after each read.
    #[track_caller]
    fn check(reads: &[(u64, &str)], want: &str) {
        let mut now = Instant::now();
        let mut rate_limiter = RateLimiter::new(now);
        let mut got = Vec::new();
        for (after, what) in reads {
            now += Duration::from_millis(*after);
            for what in what.split_whitespace() {
                match (what.strip_prefix('+'), what.split_once('*')) {
                    (Some(solicited), _) => {
                        (0..solicited.parse().unwrap())
                            .for_each(|_| rate_limiter.record(MessageClass::Solicited, 1 << 20));
                    }
                    (None, Some((count, bytes))) => {
                        let bytes = bytes.parse().unwrap();
                        (0..count.parse().unwrap())
                            .for_each(|_| rate_limiter.record(MessageClass::Unsolicited(1), bytes));
                    }
                    (None, None) => rate_limiter.record(MessageClass::Unsolicited(what.parse().unwrap()), 0),
                }
            }
            let until = if rate_limiter.is_charged() { rate_limiter.pause_until(now) } else { None };
            got.push(until.map_or("-".to_owned(), |it| (it - now).as_millis().to_string()));
            now = until.unwrap_or(now);
        }
        assert_eq!(got.join(" "), want);
    }

    #[test]
    fn burst_is_free_and_a_flood_is_limited() {
        check(&[(0, "1"), (0, "1000"), (0, "6999")], "- - -");
        check(&[(0, "8000"), (0, "1000"), (0, "1000"), (0, "8000")], "- 125 125 1000");
        // Below the rate there is no pause.
        check(&[(0, "8000"), (100, "800"), (100, "800"), (1000, "8000")], "- - - -");
        // The bucket is full again after a quiet second.
        check(&[(0, "16000"), (0, "80"), (1000, "8000"), (0, "80")], "1000 10 - 10");
    }

    #[test]
    fn short_pauses_are_postponed() {
        check(&[(0, "8000"), (0, "40"), (0, "40"), (0, "40"), (0, "40")], "- - 10 - 10");
    }

    #[test]
    fn pause_is_capped() {
        check(&[(0, "1000000000"), (0, "8000000000000"), (0, "80")], "1000 1000 10");
        check(&[(0, "8000"), (0, "1*9000000000000000000"), (0, "80")], "- 1000 10");
    }

    #[test]
    fn bytes_count_as_messages() {
        check(&[(0, "8000"), (0, "100*4095")], "- 12");
        check(&[(0, "8000"), (0, "100*4096")], "- 25");
        check(&[(0, "8000"), (0, "4*65536"), (0, "10*65536")], "- - 29");
    }

    #[test]
    fn solicited_messages_are_free_and_allow_a_few_unsolicited_ones() {
        check(&[(0, "8000"), (0, "+1000000"), (0, "+1")], "- - -");
        // Four log messages per response are free.
        check(&[(0, "8000"), (0, "4000 +1000"), (0, "400 +100"), (0, "4080 +1000")], "- - - 10");
        // Free messages do not accumulate without limit.
        check(&[(0, "8000"), (0, "+1000000"), (0, "2024")], "- - 125");
    }
}
