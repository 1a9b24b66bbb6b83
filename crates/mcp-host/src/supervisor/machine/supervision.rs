//! When a server that failed is started again: values in, moments out. Nothing here waits, asks the time or draws lots.
//!
//! Pauses grow with each setback, spread by a seed that is passed in, so that many hosts do not knock at one door
//! together. Only sustained uptime makes a server's past forgotten, not that it could be started: one that comes up
//! and falls over again and again is left alone for long, and then tried once.

use std::time::Duration;

use mcp_config::ResolvedServer;
use mcp_model::{Endpoint, ErrorKind, SseFallback};
use tokio::time::Instant;

/// What a host does about servers that fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Supervision {
    /// Nothing: a server that failed stays so until it is applied or restarted. For one-shot programs.
    Off,
    /// It starts them again.
    Restart(RestartPolicy),
}

/// How servers that failed are started again, those included that never were there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestartPolicy {
    /// The pause before the first attempt. The pause doubles with each setback, and what is waited is between half of
    /// it and all of it.
    pub initial_backoff: Duration,
    /// The longest pause.
    pub max_backoff: Duration,
    /// How long a server must have run for its setbacks to be forgotten.
    pub stable_after: Duration,
    /// After so many setbacks in a row a server is left alone.
    pub max_failures: u32,
    /// For how long, before it is tried once more.
    pub cooldown: Duration,
    /// How servers are asked whether they still live.
    pub probe: ProbePolicy,
    /// What spreads the pauses.
    pub seed: u64,
}

/// How servers are asked whether they still live, in the era that has a `ping`. One that is busy with a call is not
/// asked; one that misses two in a row is taken for lost. After this machine has slept, all are asked at once. A server
/// that is reached by an event stream with a limit of silence (HD-026) is asked three times within that, for its
/// answer is what keeps the stream: it is none that has merely nothing to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbePolicy {
    /// How often; `None` for only after a sleep, and where a stream has to be kept.
    pub interval: Option<Duration>,
    /// How long an answer may take.
    pub timeout: Duration,
}

impl Default for RestartPolicy {
    /// Pauses from 500 ms to 60 s; forgotten after 60 s; after 8 setbacks 5 minutes of rest; asked every 60 s, to
    /// answer within 10 s; another seed each time.
    fn default() -> RestartPolicy {
        use std::hash::{BuildHasher, RandomState};
        RestartPolicy {
            initial_backoff: Duration::from_millis(500),
            max_backoff: Duration::from_secs(60),
            stable_after: Duration::from_secs(60),
            max_failures: 8,
            cooldown: Duration::from_secs(300),
            probe: ProbePolicy { interval: Some(Duration::from_secs(60)), timeout: Duration::from_secs(10) },
            seed: RandomState::new().hash_one(0),
        }
    }
}

impl Default for Supervision {
    /// Servers are started again.
    fn default() -> Supervision {
        Supervision::Restart(RestartPolicy::default())
    }
}

/// What one server has been through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Trouble {
    setbacks: u32,
    next: Option<Instant>,
    rests: bool,
}

/// What is done about a setback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is tried again after this long.
    Again(Duration),
    /// It is left alone for this long.
    Rest(Duration),
    /// Nothing: it would fail again in the same way.
    Nothing,
}

impl Trouble {
    /// A server is down at `now`, for a reason of this kind, after having run for `uptime`, if it ran at all. `server`
    /// spreads the pauses of different servers.
    pub(crate) fn setback(
        &mut self,
        policy: &RestartPolicy,
        server: &str,
        down: Down,
        now: Instant,
    ) -> Verdict {
        let Down { kind, uptime } = down;
        self.tried();
        if uptime.is_some_and(|it| it >= policy.stable_after) {
            self.setbacks = 0;
        }
        self.setbacks = self.setbacks.saturating_add(1);
        if kind.is_a(ErrorKind::Config) || kind == ErrorKind::Validation {
            return Verdict::Nothing;
        }
        let fraction = fraction(policy.seed, server, self.setbacks);
        let verdict = if self.setbacks >= policy.max_failures.max(1) {
            Verdict::Rest(spread(policy.cooldown, fraction))
        } else {
            let doubled = 2_u32.saturating_pow(self.setbacks - 1);
            let pause = policy.initial_backoff.saturating_mul(doubled).min(policy.max_backoff);
            Verdict::Again(spread(pause, fraction))
        };
        self.next = match verdict {
            Verdict::Again(after) | Verdict::Rest(after) => Some(later(now, after)),
            Verdict::Nothing => None,
        };
        self.rests = matches!(verdict, Verdict::Rest(_));
        verdict
    }

    /// How often in a row it went wrong.
    pub(crate) fn setbacks(&self) -> u32 {
        self.setbacks
    }

    /// When it is tried again.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// It is being tried now.
    pub(crate) fn tried(&mut self) {
        self.next = None;
        self.rests = false;
    }

    /// Has it gone wrong so often that it is left alone for now?
    pub(crate) fn rests(&self) -> bool {
        self.rests
    }
}

/// Why a server is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Down {
    /// The kind of its failure.
    pub(crate) kind: ErrorKind,
    /// How long it ran; `None` where it could not be started.
    pub(crate) uptime: Option<Duration>,
}

/// When a server that is well at `now` is asked next.
pub(super) fn next_probe(
    supervision: &Supervision,
    server: &ResolvedServer,
    now: Instant,
) -> Option<Instant> {
    /// However short a stream's limit is, it is not asked more often.
    const LEAST: Duration = Duration::from_millis(500);
    let Supervision::Restart(RestartPolicy { probe, .. }) = supervision else { return None };
    let is_stream = match &server.endpoint {
        Endpoint::Sse(_) => true,
        Endpoint::Http(endpoint) => endpoint.sse_fallback == SseFallback::Allowed,
        Endpoint::Stdio(_) | Endpoint::WebSocket(_) => false,
    };
    let stream = is_stream.then(|| (server.spec.limits.sse_read / 3).max(LEAST));
    Some(later(now, probe.interval.into_iter().chain(stream).min()?))
}

/// The moment `after` from `now`; one that the clock cannot count to is as good as a year.
pub(crate) fn later(now: Instant, after: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(60 * 60 * 24 * 365);
    now.checked_add(after).unwrap_or(now + YEAR)
}

/// Between half of `pause` and all of it.
fn spread(pause: Duration, fraction: f64) -> Duration {
    pause.min(Duration::from_secs(60 * 60 * 24 * 365)).mul_f64(0.5 + fraction / 2.0)
}

/// A number from 0 to 1 that depends on all of these and looks like chance (splitmix64 over FNV-1a).
fn fraction(seed: u64, server: &str, setbacks: u32) -> f64 {
    let text = server.bytes().chain(setbacks.to_le_bytes());
    let hash = text.fold(0xcbf2_9ce4_8422_2325_u64 ^ seed, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut mixed = hash.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    f64::from((mixed >> 32) as u32) / f64::from(u32::MAX)
}

/// How long this machine has slept between two looks at both of its clocks: the wall's goes on in its sleep, the
/// other one does not. `None` for less than what a correction of the wall's clock is like.
pub(crate) fn slept(wall: Duration, monotonic: Duration) -> Option<Duration> {
    const LEAST: Duration = Duration::from_secs(30);
    wall.checked_sub(monotonic).filter(|it| *it >= LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> RestartPolicy {
        RestartPolicy { max_failures: 6, seed: 7, ..RestartPolicy::default() }
    }

    /// Setbacks as words: `x` a start that failed, `c` one that would fail again, a number an end after so many
    /// seconds. What is done about each, with the pause as it is before it is spread.
    #[track_caller]
    fn check(setbacks: &str, want: &str) {
        let policy = policy();
        let mut trouble = Trouble::default();
        let mut now = Instant::now();
        let mut got = Vec::new();
        for word in setbacks.split_whitespace() {
            let down = match word {
                "x" => Down { kind: ErrorKind::Connection, uptime: None },
                "c" => Down { kind: ErrorKind::McpConfig, uptime: None },
                ran => Down {
                    kind: ErrorKind::Connection,
                    uptime: Some(Duration::from_secs(ran.parse().unwrap())),
                },
            };
            let verdict = trouble.setback(&policy, "a", down, now);
            let after = trouble.next().map(|it| it - now);
            // Which pause is it, if what is waited is between half of it and all of it?
            let pauses = [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 300_000];
            let pause = |after: Duration| {
                let fits = |it: &&u64| after <= Duration::from_millis(**it);
                *pauses.iter().find(fits).unwrap() as f64 / 1000.0
            };
            got.push(match verdict {
                Verdict::Again(it) | Verdict::Rest(it) if Some(it) != after => "another moment".to_owned(),
                Verdict::Again(it) => format!("{}", pause(it)),
                Verdict::Rest(it) => format!("rest {}", pause(it)),
                Verdict::Nothing => "-".to_owned(),
            });
            now = trouble.next().unwrap_or(now);
            trouble.tried();
            assert_eq!(trouble.next(), None);
        }
        assert_eq!(got.join(", "), want);
    }

    #[test]
    fn hd_084_pauses_grow_and_end_in_a_rest() {
        check("x x x x x x x", "0.5, 1, 2, 4, 8, rest 300, rest 300");
    }

    #[test]
    fn hd_084_only_sustained_uptime_is_a_new_beginning() {
        check("0 1 59 0 1 59 0", "0.5, 1, 2, 4, 8, rest 300, rest 300");
        check("x x x 60 x", "0.5, 1, 2, 0.5, 1");
        check("x x x x x x 61 0", "0.5, 1, 2, 4, 8, rest 300, 0.5, 1");
    }

    #[test]
    fn what_is_written_wrongly_is_not_tried_again() {
        check("c x", "-, 1");
    }

    #[test]
    fn pauses_are_spread_by_seed_and_server_and_otherwise_the_same() {
        let now = Instant::now();
        let pause = |seed, server: &str| {
            let policy = RestartPolicy { seed, ..policy() };
            Trouble::default().setback(&policy, server, Down { kind: ErrorKind::Timeout, uptime: None }, now)
        };
        assert_eq!(pause(1, "a"), pause(1, "a"));
        assert_ne!(pause(1, "a"), pause(2, "a"));
        assert_ne!(pause(1, "a"), pause(1, "b"));
        let mut quarters = [0; 4];
        for seed in 0..400 {
            let Verdict::Again(after) = pause(seed, "a") else { panic!("it is the first setback") };
            assert!(after >= Duration::from_millis(250) && after <= Duration::from_millis(500), "{after:?}");
            quarters[((after.as_millis() as usize - 250) * 4 / 251).min(3)] += 1;
        }
        assert!(quarters.iter().all(|it| *it > 50), "{quarters:?}");
    }

    /// Asked every so often (`-` for never), a server that is reached like this, with a limit of silence in seconds, is
    /// asked after these milliseconds.
    #[track_caller]
    fn check_probe(every: Option<u64>, url: Option<&str>, silence: f64, want: Option<u128>) {
        let mut server = crate::fixture::server("a=1.1");
        if let Some(url) = url {
            server.endpoint = Endpoint::Sse(mcp_model::UrlEndpoint::new(url.parse().unwrap()));
        }
        server.spec.limits.sse_read = Duration::from_secs_f64(silence);
        let probe =
            ProbePolicy { interval: every.map(Duration::from_secs), timeout: Duration::from_secs(10) };
        let supervision = Supervision::Restart(RestartPolicy { probe, ..policy() });
        let now = Instant::now();
        let got = next_probe(&supervision, &server, now).map(|it| (it - now).as_millis());
        assert_eq!(got, want);
        assert_eq!(next_probe(&Supervision::Off, &server, now), None);
    }

    #[test]
    fn hd_026_a_stream_that_may_not_be_silent_for_long_is_kept_by_asking() {
        let sse = Some("https://x/sse");
        check_probe(Some(60), None, 5.0, Some(60_000));
        check_probe(None, None, 5.0, None);
        check_probe(Some(60), sse, 300.0, Some(60_000));
        check_probe(Some(60), sse, 60.0, Some(20_000));
        check_probe(None, sse, 300.0, Some(100_000));
        check_probe(Some(60), sse, 0.001, Some(500));
    }

    #[test]
    fn no_policy_is_more_than_the_clock_can_count_to() {
        let policy = RestartPolicy {
            initial_backoff: Duration::MAX,
            max_backoff: Duration::MAX,
            cooldown: Duration::MAX,
            max_failures: 0,
            ..policy()
        };
        let mut trouble = Trouble::default();
        let down = Down { kind: ErrorKind::Connection, uptime: Some(Duration::MAX) };
        assert!(matches!(trouble.setback(&policy, "a", down, Instant::now()), Verdict::Rest(_)));
        let mut many = Trouble { setbacks: u32::MAX, ..Trouble::default() };
        let policy = RestartPolicy { max_failures: u32::MAX, ..policy };
        many.setback(&policy, "a", Down { kind: ErrorKind::Connection, uptime: None }, Instant::now());
        assert_eq!(many.setbacks(), u32::MAX);
    }

    #[test]
    fn a_sleep_is_what_only_one_clock_has_seen() {
        let seconds = Duration::from_secs;
        for (wall, monotonic, want) in
            [(10, 10, None), (39, 10, None), (40, 10, Some(30)), (3610, 10, Some(3600)), (0, 10, None)]
        {
            assert_eq!(slept(seconds(wall), seconds(monotonic)), want.map(seconds), "{wall} {monotonic}");
        }
    }
}
