//! How fast a wire is read whose peer says much that nobody waits for: values in, moments out.
//!
//! A reader that keeps up with a flood of announcements or of noise takes a processor away from everybody else. So
//! such messages have a rate: past it the reader pauses, what lies between fills, and the peer waits in its own write.
//! Invariants: what somebody waits for costs nothing, however much of it comes; a pause is never longer than
//! [`LONGEST`], so that an answer which stands behind a flood comes late, and comes; and as long as only awaited
//! messages arrive, nobody asks for the time.

use std::time::Duration;

use tokio::time::Instant;

use crate::transport::MessageClass;

/// What one idle message takes of the time: 8,000 of them a second.
const EACH: Duration = Duration::from_micros(125);

/// So many bytes of idle messages count as one more.
pub(crate) const BYTES: usize = 4 << 10;

/// How much may come at once after it was quiet: 8,000 messages, or 32 MiB.
const BURST: Duration = Duration::from_secs(1);

/// A pause shorter than this is put off: the timer of a runtime counts milliseconds.
const SHORTEST: Duration = Duration::from_millis(10);

/// The longest pause after one read, however much that brought.
const LONGEST: Duration = Duration::from_secs(1);

/// So many messages may come for nothing with each that was awaited: a server may log what it does for a call.
const WITH_EACH: i64 = 4;

/// And so many of them at once.
const MOST_FREE: i64 = 1024;

/// What one wire has heard that nobody waits for.
#[derive(Debug)]
pub(crate) struct Pace {
    /// When a whole burst may come again.
    whole: Instant,
    /// Idle messages since the time was last asked; less than none while awaited ones have made up for more.
    idle: i64,
}

impl Pace {
    /// Of a wire that has heard nothing, at `now`.
    pub(crate) fn new(now: Instant) -> Pace {
        Pace { whole: now, idle: 0 }
    }

    /// A frame of so many bytes came.
    pub(crate) fn took(&mut self, worth: MessageClass, bytes: usize) {
        match worth {
            MessageClass::Solicited => self.awaited(1),
            MessageClass::Unsolicited(messages) => self.wasted(messages, bytes),
        }
    }

    /// So many messages came that somebody waited for.
    pub(crate) fn awaited(&mut self, messages: u64) {
        let free = WITH_EACH.saturating_mul(i64::try_from(messages).unwrap_or(i64::MAX));
        self.idle = self.idle.saturating_sub(free).max(-MOST_FREE);
    }

    /// So many messages came that nobody waits for, with so many bytes together.
    pub(crate) fn wasted(&mut self, messages: usize, bytes: usize) {
        let weight = messages.saturating_add(bytes / BYTES);
        self.idle = self.idle.saturating_add(i64::try_from(weight).unwrap_or(i64::MAX));
    }

    /// Whether [`Pace::pause`] has anything to say.
    pub(crate) fn counts(&self) -> bool {
        self.idle > 0
    }

    /// Until when not to read, at `now`.
    pub(crate) fn pause(&mut self, now: Instant) -> Option<Instant> {
        // More than the longest pause allows is forgotten.
        let idle = u32::try_from(std::mem::take(&mut self.idle).max(0)).unwrap_or(u32::MAX);
        let spent = self.whole.saturating_duration_since(now).saturating_add(EACH.saturating_mul(idle));
        let spent = spent.min(BURST + LONGEST);
        self.whole = now + spent;
        let pause = spent.saturating_sub(BURST);
        (pause >= SHORTEST).then(|| now + pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads, each so many milliseconds after the end of the pause before it: `8000` brings so many small idle messages,
    /// `+3` so many awaited ones, `3*65536` so many idle ones of that size. After each read, how long the pause is.
    #[track_caller]
    fn check(reads: &[(u64, &str)], want: &str) {
        let mut now = Instant::now();
        let mut pace = Pace::new(now);
        let mut got = Vec::new();
        for (after, what) in reads {
            now += Duration::from_millis(*after);
            for what in what.split_whitespace() {
                match (what.strip_prefix('+'), what.split_once('*')) {
                    (Some(awaited), _) => {
                        (0..awaited.parse().unwrap())
                            .for_each(|_| pace.took(MessageClass::Solicited, 1 << 20));
                    }
                    (None, Some((count, bytes))) => {
                        let bytes = bytes.parse().unwrap();
                        (0..count.parse().unwrap())
                            .for_each(|_| pace.took(MessageClass::Unsolicited(1), bytes));
                    }
                    (None, None) => pace.took(MessageClass::Unsolicited(what.parse().unwrap()), 0),
                }
            }
            let until = if pace.counts() { pace.pause(now) } else { None };
            got.push(until.map_or("-".to_owned(), |it| (it - now).as_millis().to_string()));
            now = until.unwrap_or(now);
        }
        assert_eq!(got.join(" "), want);
    }

    #[test]
    fn a_burst_passes_and_a_flood_is_read_at_its_rate() {
        check(&[(0, "1"), (0, "1000"), (0, "6999")], "- - -");
        check(&[(0, "8000"), (0, "1000"), (0, "1000"), (0, "8000")], "- 125 125 1000");
        // Who stays below the rate never waits.
        check(&[(0, "8000"), (100, "800"), (100, "800"), (1000, "8000")], "- - - -");
        // A quiet second, and a whole burst may come again.
        check(&[(0, "16000"), (0, "80"), (1000, "8000"), (0, "80")], "1000 10 - 10");
    }

    #[test]
    fn short_pauses_are_put_off_and_not_forgotten() {
        check(&[(0, "8000"), (0, "40"), (0, "40"), (0, "40"), (0, "40")], "- - 10 - 10");
    }

    #[test]
    fn no_pause_is_longer_than_the_longest() {
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
    fn what_is_awaited_costs_nothing_and_makes_up_for_a_little_beside_it() {
        check(&[(0, "8000"), (0, "+1000000"), (0, "+1")], "- - -");
        // Four log messages with each answer, and no more.
        check(&[(0, "8000"), (0, "4000 +1000"), (0, "400 +100"), (0, "4080 +1000")], "- - - 10");
        // Answers are no store of floods to come.
        check(&[(0, "8000"), (0, "+1000000"), (0, "2024")], "- - 125");
    }
}
