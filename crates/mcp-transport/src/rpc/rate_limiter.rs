//! A token-bucket rate limiter for unsolicited messages. Reads no clock: the current time is an argument.
//!
//! Without a limit, a flood of notifications or noise would keep a CPU core busy. Above the rate the reader
//! pauses, the buffers fill, and the server blocks in its own write. Invariants: solicited messages cost nothing.
//! A pause is at most [`MAX_PAUSE`], so a response behind a flood is delayed but arrives. The transport need not read
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

/// This number of progress messages that a caller asked for costs as much as one unsolicited message.
const PROGRESS_PER_MESSAGE: u32 = 16;

/// The maximum number of free messages that can accumulate.
const MAX_FREE: i64 = 1024;

/// The rate limiter of one connection.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    /// The time at which the bucket is full, if nothing more is charged.
    full_at: Instant,
    /// Unsolicited messages that are not yet charged to the bucket; negative while free messages remain.
    uncharged: i64,
    /// Progress messages that do not yet cost a message.
    progress: u32,
}

impl RateLimiter {
    /// A full bucket at `now`.
    pub(crate) fn new(now: Instant) -> RateLimiter {
        RateLimiter { full_at: now, uncharged: 0, progress: 0 }
    }

    /// Records a frame of this class with this number of bytes.
    pub(crate) fn record(&mut self, class: MessageClass, bytes: usize) {
        match class {
            MessageClass::Solicited => self.credit(1),
            MessageClass::Progress => {
                self.progress = (self.progress + 1) % PROGRESS_PER_MESSAGE;
                self.charge(usize::from(self.progress == 0), bytes);
            }
            MessageClass::Unsolicited(messages) => self.charge(messages, bytes),
        }
    }

    /// Records this number of solicited messages.
    pub(crate) fn credit(&mut self, messages: u64) {
        let free = FREE_PER_RESPONSE.saturating_mul(i64::try_from(messages).unwrap_or(i64::MAX));
        self.uncharged = self.uncharged.saturating_sub(free).max(-MAX_FREE);
    }

    /// Records this number of unsolicited messages with this total size.
    pub(crate) fn charge(&mut self, messages: usize, bytes: usize) {
        let weight = messages.saturating_add(bytes / BYTES_PER_MESSAGE);
        self.uncharged = self.uncharged.saturating_add(i64::try_from(weight).unwrap_or(i64::MAX));
    }

    /// Whether unsolicited messages are not yet charged, so that [`RateLimiter::pause_until`] must be called.
    pub(crate) fn has_uncharged(&self) -> bool {
        self.uncharged > 0
    }

    /// Charges the recorded messages. Returns the time until which the reader must pause, if any.
    pub(crate) fn pause_until(&mut self, now: Instant) -> Option<Instant> {
        let messages = u32::try_from(std::mem::take(&mut self.uncharged).max(0)).unwrap_or(u32::MAX);
        let used = self
            .full_at
            .saturating_duration_since(now)
            .saturating_add(COST_PER_MESSAGE.saturating_mul(messages))
            // The debt is capped at the longest pause.
            .min(BURST + MAX_PAUSE);
        self.full_at = now + used;
        let pause = used.saturating_sub(BURST);
        (pause >= MIN_PAUSE).then(|| now + pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row is a read: the milliseconds since the end of the previous pause, and the messages. `8000` is a number
    /// of unsolicited messages without bytes, `+3` of solicited ones, `3*65536` of unsolicited ones of that size.
    /// `want` lists the milliseconds of the pause after each read, or `-`.
    #[track_caller]
    fn check(reads: &[(u64, &str)], want: &str) {
        let mut now = Instant::now();
        let mut rate_limiter = RateLimiter::new(now);
        let mut got = Vec::new();
        for (after, messages) in reads {
            now += Duration::from_millis(*after);
            for message in messages.split_whitespace() {
                match (message.strip_prefix('+'), message.split_once('*')) {
                    (Some(solicited), _) => {
                        (0..solicited.parse().unwrap())
                            .for_each(|_| rate_limiter.record(MessageClass::Solicited, 1 << 20));
                    }
                    (None, Some((count, bytes))) => {
                        let bytes = bytes.parse().unwrap();
                        (0..count.parse().unwrap())
                            .for_each(|_| rate_limiter.record(MessageClass::Unsolicited(1), bytes));
                    }
                    (None, None) => {
                        rate_limiter.record(MessageClass::Unsolicited(message.parse().unwrap()), 0)
                    }
                }
            }
            let until = if rate_limiter.has_uncharged() { rate_limiter.pause_until(now) } else { None };
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

    // RPT-476
    #[test]
    fn progress_that_a_caller_asked_for_costs_a_sixteenth() {
        let begin = Instant::now();
        let mut rate_limiter = RateLimiter::new(begin);
        let mut record = |count: usize| {
            (0..count).for_each(|_| rate_limiter.record(MessageClass::Progress, 100));
            rate_limiter.pause_until(begin).map(|until| (until - begin).as_millis())
        };
        assert_eq!([record(5_000), record(123_000), record(16_000)], [None, None, Some(125)]);
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
