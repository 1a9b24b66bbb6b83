//! Whether a quiet connection is asked for a sign of life, or given up: a pure value.
//!
//! Anything that arrives is a sign of life, not only the pong: a peer that is in the middle of a large message has no
//! place for one. So what counts is how often something was read, which the caller says.

use std::time::Duration;

use tokio::time::Instant;

/// What is to be done for a connection now.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeepAliveAction {
    /// Nothing until then.
    Wait(Instant),
    /// Send a ping.
    Ping,
    /// The peer has not shown a sign of life for this long after a ping.
    Dead(Duration),
}

/// The signs of life of one connection.
#[derive(Debug)]
pub(super) struct KeepAlive {
    /// How long nothing may come before we ask.
    ping_after: Duration,
    /// How long an answer may take.
    pong_timeout: Duration,
    /// When we last asked, and how many reads there had been.
    asked: Option<(Instant, u64)>,
}

/// When something was last read, and how many reads there have been.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastRead {
    pub(super) at: Instant,
    pub(super) reads: u64,
}

impl KeepAlive {
    pub(super) fn new(quiet: Duration, patience: Duration) -> KeepAlive {
        KeepAlive { ping_after: quiet, pong_timeout: patience, asked: None }
    }

    /// What to do `now`. Durations are those of [`super::Place`], which the clock can count.
    pub(super) fn next_action(&self, heard: LastRead, now: Instant) -> KeepAliveAction {
        match self.asked {
            Some((at, reads)) if reads == heard.reads => match at + self.pong_timeout {
                until if now >= until => KeepAliveAction::Dead(self.pong_timeout),
                // What comes meanwhile is seen no later than it matters: it makes the next ping due in so long.
                until => KeepAliveAction::Wait(until.min(now + self.ping_after)),
            },
            Some(_) | None => match heard.at + self.ping_after {
                until if now >= until => KeepAliveAction::Ping,
                until => KeepAliveAction::Wait(until),
            },
        }
    }

    /// A ping has left us `now`; there were this many reads before it.
    pub(super) fn ping_sent(&mut self, now: Instant, reads: u64) {
        self.asked = Some((now, reads));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection that is asked after 30 s and given up 60 s later. Steps: `r` reads, `p` pings, `?` looks, each at
    /// a second.
    #[track_caller]
    fn check(steps: &[(char, u64)], want: &str) {
        let start = Instant::now();
        let mut pulse = KeepAlive::new(Duration::from_secs(30), Duration::from_secs(60));
        let mut heard = LastRead { at: start, reads: 0 };
        let mut got = Vec::new();
        for (step, second) in steps {
            let now = start + Duration::from_secs(*second);
            match step {
                'r' => heard = LastRead { at: now, reads: heard.reads + 1 },
                'p' => pulse.ping_sent(now, heard.reads),
                _ => got.push(match pulse.next_action(heard, now) {
                    KeepAliveAction::Wait(until) => format!("rest until {}", (until - start).as_secs()),
                    KeepAliveAction::Ping => "ask".to_owned(),
                    KeepAliveAction::Dead(after) => format!("dead after {}", after.as_secs()),
                }),
            }
        }
        assert_eq!(got.join(", "), want);
    }

    #[test]
    fn a_quiet_peer_is_asked_and_a_silent_one_given_up() {
        check(&[('?', 0), ('?', 29), ('?', 30)], "rest until 30, rest until 30, ask");
        check(&[('r', 20), ('?', 30), ('?', 50)], "rest until 50, ask");
        check(&[('p', 30), ('?', 30), ('?', 89), ('?', 90)], "rest until 60, rest until 90, dead after 60");
    }

    #[test]
    fn anything_that_comes_after_the_ping_is_a_sign_of_life() {
        check(&[('p', 30), ('r', 30), ('?', 31), ('?', 60)], "rest until 60, ask");
        check(&[('p', 30), ('r', 89), ('?', 90), ('?', 119)], "rest until 119, ask");
        check(&[('p', 30), ('r', 31), ('p', 61), ('?', 62)], "rest until 92");
    }
}
