//! The keep-alive of a WebSocket: decides when to ping and when the peer is dead. It does no I/O and reads no
//! clock.
//!
//! Any read counts as activity, not only a pong, because a peer cannot send a pong in the middle of a large
//! message. The caller counts the reads.

use std::time::Duration;

use tokio::time::Instant;

/// Silence after which a ping is sent. Proxies close a connection after a minute of silence.
pub(super) const PING_AFTER: Duration = Duration::from_secs(30);

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeepAliveAction {
    /// Wait until this time, then ask again.
    Wait(Instant),
    /// Send a ping.
    Ping,
    /// Close the connection: nothing was read for this long after a ping.
    Dead(Duration),
}

/// The keep-alive state of one connection.
#[derive(Debug)]
pub(super) struct KeepAlive {
    /// Silence after which a ping is sent.
    ping_after: Duration,
    /// Maximum time until something is read after a ping.
    read_timeout: Duration,
    /// Time of the last ping, and the number of reads at that time.
    last_ping: Option<(Instant, u64)>,
}

/// Time of the last read, and the number of reads so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastRead {
    pub(super) at: Instant,
    pub(super) reads: u64,
}

impl KeepAlive {
    pub(super) fn new(ping_after: Duration, read_timeout: Duration) -> KeepAlive {
        KeepAlive { ping_after, read_timeout, last_ping: None }
    }

    /// Returns what to do at `now`. The additions cannot overflow, because
    /// [`super::endpoint::WebSocketEndpoint`] bounds its durations.
    pub(super) fn next_action(&self, last_read: LastRead, now: Instant) -> KeepAliveAction {
        match self.last_ping {
            Some((pinged_at, reads)) if reads == last_read.reads => {
                let deadline = pinged_at + self.read_timeout;
                if now >= deadline {
                    return KeepAliveAction::Dead(self.read_timeout);
                }
                // If something is read meanwhile, the next ping may be due before `deadline`, but not before `now +
                // ping_after`.
                KeepAliveAction::Wait(deadline.min(now + self.ping_after))
            }
            Some(_) | None => {
                let ping_at = last_read.at + self.ping_after;
                if now >= ping_at { KeepAliveAction::Ping } else { KeepAliveAction::Wait(ping_at) }
            }
        }
    }

    /// Records that a ping was sent at `now`, after `reads` reads.
    pub(super) fn record_ping(&mut self, now: Instant, reads: u64) {
        self.last_ping = Some((now, reads));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the actions of a keep-alive that pings after 30 s and times out 60 s later. Steps with their second: `r`
    /// reads, `p` pings, `?` asks for the next action.
    #[track_caller]
    fn check(steps: &[(char, u64)], expected: &str) {
        let start = Instant::now();
        let mut keep_alive = KeepAlive::new(Duration::from_secs(30), Duration::from_secs(60));
        let mut last_read = LastRead { at: start, reads: 0 };
        let mut actions = Vec::new();
        for (step, second) in steps {
            let now = start + Duration::from_secs(*second);
            match step {
                'r' => last_read = LastRead { at: now, reads: last_read.reads + 1 },
                'p' => keep_alive.record_ping(now, last_read.reads),
                _ => actions.push(match keep_alive.next_action(last_read, now) {
                    KeepAliveAction::Wait(until) => format!("wait until {}", (until - start).as_secs()),
                    KeepAliveAction::Ping => "ping".to_owned(),
                    KeepAliveAction::Dead(after) => format!("dead after {}", after.as_secs()),
                }),
            }
        }
        assert_eq!(actions.join(", "), expected);
    }

    #[test]
    fn idle_connection_is_pinged_and_dies_without_a_read() {
        check(&[('?', 0), ('?', 29), ('?', 30)], "wait until 30, wait until 30, ping");
        check(&[('r', 20), ('?', 30), ('?', 50)], "wait until 50, ping");
        check(&[('p', 30), ('?', 30), ('?', 89), ('?', 90)], "wait until 60, wait until 90, dead after 60");
    }

    #[test]
    fn any_read_after_the_ping_counts_as_activity() {
        check(&[('p', 30), ('r', 30), ('?', 31), ('?', 60)], "wait until 60, ping");
        check(&[('p', 30), ('r', 89), ('?', 90), ('?', 119)], "wait until 119, ping");
        check(&[('p', 30), ('r', 31), ('p', 61), ('?', 62)], "wait until 92");
    }
}
