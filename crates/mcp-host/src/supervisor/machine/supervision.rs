//! The restart policy for failed servers. Reads no clock and uses no random numbers.
//!
//! Delays grow with each failure and are spread by a seed, so that many hosts do not restart at once. Only sustained
//! uptime resets the failures. After repeated failures restarts are suspended, and then attempted once.

use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::time::Duration;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{Endpoint, ErrorKind, SseFallback};
use tokio::time::Instant;

use crate::error::HostError;

/// The policy for failed servers.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Supervision {
    /// They remain failed until they are configured again or restarted. For one-shot programs.
    Off,
    /// They are restarted.
    Restart(RestartPolicy),
}

/// The policy for restarts of failed servers, including those that never started.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestartPolicy {
    /// The delay before the first restart. It doubles with each failure; the actual delay is between half of it and
    /// all of it.
    pub initial_backoff: Duration,
    /// The maximum delay.
    pub max_backoff: Duration,
    /// The uptime after which failures are reset.
    pub stable_after: Duration,
    /// The number of consecutive failures after which restarts are suspended.
    pub max_failures: u32,
    /// The time for which restarts are suspended.
    pub cooldown: Duration,
    /// The policy for probes of running servers.
    pub probe: ProbePolicy,
    /// The seed that spreads delays.
    pub seed: u64,
}

/// The policy for probes of running servers with `ping`, which only legacy servers support.
///
/// A busy server is not probed. A server that does not respond to two probes in a row counts as lost. After the
/// computer was suspended, all servers are probed. A server on an event stream with a read timeout (HD-026) is probed
/// three times per timeout, because the response keeps the stream open.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProbePolicy {
    /// The time between probes. `None`: servers are probed only after a suspend, and to keep a stream open.
    pub interval: Option<Duration>,
    /// The timeout of a response.
    pub timeout: Duration,
}

impl Default for ProbePolicy {
    /// A probe every 60 s, with a timeout of 10 s.
    fn default() -> ProbePolicy {
        ProbePolicy { interval: Some(Duration::from_secs(60)), timeout: Duration::from_secs(10) }
    }
}

impl Default for RestartPolicy {
    /// Delays from 500 ms to 60 s, reset after 60 s of uptime; suspended for 5 minutes after 8 failures; probed every
    /// 60 s with a timeout of 10 s; a random seed.
    fn default() -> RestartPolicy {
        RestartPolicy {
            initial_backoff: Duration::from_millis(500),
            max_backoff: Duration::from_secs(60),
            stable_after: Duration::from_secs(60),
            max_failures: 8,
            cooldown: Duration::from_secs(300),
            probe: ProbePolicy::default(),
            seed: RandomState::new().hash_one(0),
        }
    }
}

impl Default for Supervision {
    /// Restarts are on.
    fn default() -> Supervision {
        Supervision::Restart(RestartPolicy::default())
    }
}

/// The failures and the next restart of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RestartState {
    /// The number of consecutive failures.
    pub(super) failures: u32,
    /// The time of the next restart.
    pub(super) next_attempt: Option<Instant>,
    pub(super) is_suspended: bool,
}

/// The reaction to a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RestartDecision {
    /// Restart after this delay.
    Retry(Duration),
    /// Suspend for this time, then restart.
    Suspend(Duration),
    /// Do not restart: it would fail again in the same way.
    GiveUp,
}

impl RestartState {
    /// Records a failure at `now` and schedules a restart. `server` spreads the delays of different servers.
    pub(crate) fn record_failure(
        &mut self,
        policy: &RestartPolicy,
        server: &str,
        outage: Outage,
        now: Instant,
    ) -> RestartDecision {
        let Outage { kind, uptime, requested_wait } = outage;
        self.clear_schedule();
        if uptime.is_some_and(|it| it >= policy.stable_after) {
            self.failures = 0;
        }
        self.failures = self.failures.saturating_add(1);
        if kind.is_a(ErrorKind::Config) || kind == ErrorKind::Validation {
            return RestartDecision::GiveUp;
        }
        let fraction = jitter_fraction(policy.seed, server, self.failures);
        let decision = if self.failures >= policy.max_failures.max(1) {
            RestartDecision::Suspend(with_jitter(policy.cooldown, fraction).max(requested_wait))
        } else {
            let doubled = 2_u32.saturating_pow(self.failures - 1);
            let delay = policy.initial_backoff.saturating_mul(doubled).min(policy.max_backoff);
            RestartDecision::Retry(with_jitter(delay, fraction).max(requested_wait))
        };
        self.next_attempt = match decision {
            RestartDecision::Retry(after) | RestartDecision::Suspend(after) => {
                Some(saturating_after(now, after))
            }
            RestartDecision::GiveUp => None,
        };
        self.is_suspended = matches!(decision, RestartDecision::Suspend(_));
        decision
    }

    /// Clears the scheduled restart, because one begins now.
    pub(crate) fn clear_schedule(&mut self) {
        self.next_attempt = None;
        self.is_suspended = false;
    }
}

/// A failure of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outage {
    /// The kind of its error.
    pub(crate) kind: ErrorKind,
    /// The time for which it ran; `None` for a failed start.
    pub(crate) uptime: Option<Duration>,
    /// The time for which the server asks to wait; zero if it does not ask.
    pub(crate) requested_wait: Duration,
}

impl Outage {
    /// The outage with this error, after a run of `uptime`; `None` for a failed start.
    pub(crate) fn new(error: &HostError, uptime: Option<Duration>) -> Outage {
        let requested_wait = error.connect_error.as_ref().map(|error| error.retry_wait()).unwrap_or_default();
        Outage { kind: error.kind, uptime, requested_wait }
    }
}

/// Returns the time of the next probe of a server that is running at `now`, if it is probed regularly.
pub(super) fn next_probe_time(
    supervision: &Supervision,
    server: &ResolvedServer,
    now: Instant,
) -> Option<Instant> {
    /// The minimum time between probes, however short the stream's timeout is.
    const MIN_INTERVAL: Duration = Duration::from_millis(500);
    let Supervision::Restart(RestartPolicy { probe, .. }) = supervision else { return None };
    let is_stream = match &server.endpoint {
        Endpoint::Sse(_) => true,
        Endpoint::Http(endpoint) => endpoint.sse_fallback == SseFallback::Allowed,
        Endpoint::Stdio(_) | Endpoint::WebSocket(_) => false,
    };
    let stream_interval = is_stream.then(|| (server.spec.limits.sse_read / 3).max(MIN_INTERVAL));
    Some(saturating_after(now, probe.interval.into_iter().chain(stream_interval).min()?))
}

/// A duration that means "never", and with which time arithmetic does not overflow.
const YEAR: Duration = Duration::from_secs(60 * 60 * 24 * 365);

/// Returns the time `after` from `now`, or a year from now if that overflows.
pub(crate) fn saturating_after(now: Instant, after: Duration) -> Instant {
    now.checked_add(after).unwrap_or(now + YEAR)
}

/// Returns a delay between half of `delay` and all of it; `fraction` is from 0 to 1.
fn with_jitter(delay: Duration, fraction: f64) -> Duration {
    delay.min(YEAR).mul_f64(0.5 + fraction / 2.0)
}

/// Returns a pseudo-random number from 0 to 1.
fn jitter_fraction(seed: u64, server: &str, failures: u32) -> f64 {
    let mut hasher = DefaultHasher::new();
    (seed, server, failures).hash(&mut hasher);
    f64::from((hasher.finish() >> 32) as u32) / f64::from(u32::MAX)
}

/// Returns how long the computer was suspended between two checks of both clocks: the difference of the elapsed times,
/// because only the wall clock advances during a suspend. `None` if it may be a correction of the wall clock.
pub(crate) fn suspend_duration(wall: Duration, monotonic: Duration) -> Option<Duration> {
    const MIN_SUSPEND: Duration = Duration::from_secs(30);
    wall.checked_sub(monotonic).filter(|difference| *difference >= MIN_SUSPEND)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use mcp_host_transport::{ConnectError, ErrorResponse, RetryAfter};

    use super::*;

    fn outage(kind: ErrorKind, uptime: Option<Duration>) -> Outage {
        Outage::new(&HostError::new(kind, "down"), uptime)
    }

    // RPT-063
    #[test]
    fn server_that_asks_to_wait_is_not_started_before() {
        let mut response = ErrorResponse::new(503);
        response.retry_after = Some(RetryAfter::new(Duration::from_secs(90)));
        let mut error = HostError::new(ErrorKind::Connection, "busy");
        error.connect_error = Some(Arc::new(ConnectError::Refused(response.into())));
        let (mut state, now) = (RestartState::default(), Instant::now());
        state.record_failure(&policy(), "a", Outage::new(&error, None), now);
        assert_eq!(state.next_attempt, Some(now + Duration::from_secs(90)));
    }

    fn policy() -> RestartPolicy {
        RestartPolicy { max_failures: 6, seed: 7, ..RestartPolicy::default() }
    }

    /// Failures: `x` a failed start, `c` an invalid configuration, a number a loss after this many seconds. Expects
    /// the decisions with their delays before jitter.
    #[track_caller]
    fn check(failures: &str, want: &str) {
        let policy = policy();
        let mut state = RestartState::default();
        let mut now = Instant::now();
        let mut got = Vec::new();
        for word in failures.split_whitespace() {
            let outage = match word {
                "x" => outage(ErrorKind::Connection, None),
                "c" => outage(ErrorKind::McpConfig, None),
                ran => outage(ErrorKind::Connection, Some(Duration::from_secs(ran.parse().unwrap()))),
            };
            let decision = state.record_failure(&policy, "a", outage, now);
            let after = state.next_attempt.map(|it| it - now);
            // Finds the delay from the jittered one.
            let pauses = [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 300_000];
            let pause = |after: Duration| {
                let fits = |it: &&u64| after <= Duration::from_millis(**it);
                *pauses.iter().find(fits).unwrap() as f64 / 1000.0
            };
            got.push(match decision {
                RestartDecision::Retry(it) | RestartDecision::Suspend(it) if Some(it) != after => {
                    "another moment".to_owned()
                }
                RestartDecision::Retry(it) => format!("{}", pause(it)),
                RestartDecision::Suspend(it) => format!("rest {}", pause(it)),
                RestartDecision::GiveUp => "-".to_owned(),
            });
            now = state.next_attempt.unwrap_or(now);
            state.clear_schedule();
            assert_eq!(state.next_attempt, None);
        }
        assert_eq!(got.join(", "), want);
    }

    #[test]
    fn hd_084_delays_grow_and_end_in_suspension() {
        check("x x x x x x x", "0.5, 1, 2, 4, 8, rest 300, rest 300");
    }

    #[test]
    fn hd_084_only_sustained_uptime_resets_failures() {
        check("0 1 59 0 1 59 0", "0.5, 1, 2, 4, 8, rest 300, rest 300");
        check("x x x 60 x", "0.5, 1, 2, 0.5, 1");
        check("x x x x x x 61 0", "0.5, 1, 2, 4, 8, rest 300, 0.5, 1");
    }

    #[test]
    fn invalid_configuration_is_not_retried() {
        check("c x", "-, 1");
    }

    #[test]
    fn delays_are_spread_by_seed_and_server() {
        let now = Instant::now();
        let pause = |seed, server: &str| {
            let policy = RestartPolicy { seed, ..policy() };
            RestartState::default().record_failure(&policy, server, outage(ErrorKind::Timeout, None), now)
        };
        assert_eq!(pause(1, "a"), pause(1, "a"));
        assert_ne!(pause(1, "a"), pause(2, "a"));
        assert_ne!(pause(1, "a"), pause(1, "b"));
        let mut quarters = [0; 4];
        for seed in 0..400 {
            let RestartDecision::Retry(after) = pause(seed, "a") else { panic!("it is the first failure") };
            assert!(after >= Duration::from_millis(250) && after <= Duration::from_millis(500), "{after:?}");
            quarters[((after.as_millis() as usize - 250) * 4 / 251).min(3)] += 1;
        }
        assert!(quarters.iter().all(|it| *it > 50), "{quarters:?}");
    }

    /// A probe interval (`-` for never), a URL and a read timeout in seconds; expects the milliseconds until the next
    /// probe.
    #[track_caller]
    fn check_probe(every: Option<u64>, url: Option<&str>, silence: f64, want: Option<u128>) {
        let mut server = crate::supervisor::machine::tests::fixture::server("a=1.1");
        if let Some(url) = url {
            server.endpoint = Endpoint::Sse(mcp_host_model::UrlEndpoint::new(url.parse().unwrap()));
        }
        server.spec.limits.sse_read = Duration::from_secs_f64(silence);
        let probe =
            ProbePolicy { interval: every.map(Duration::from_secs), timeout: Duration::from_secs(10) };
        let supervision = Supervision::Restart(RestartPolicy { probe, ..policy() });
        let now = Instant::now();
        let got = next_probe_time(&supervision, &server, now).map(|it| (it - now).as_millis());
        assert_eq!(got, want);
        assert_eq!(next_probe_time(&Supervision::Off, &server, now), None);
    }

    #[test]
    fn hd_026_probes_keep_stream_with_read_timeout_open() {
        let sse = Some("https://x/sse");
        check_probe(Some(60), None, 5.0, Some(60_000));
        check_probe(None, None, 5.0, None);
        check_probe(Some(60), sse, 300.0, Some(60_000));
        check_probe(Some(60), sse, 60.0, Some(20_000));
        check_probe(None, sse, 300.0, Some(100_000));
        check_probe(Some(60), sse, 0.001, Some(500));
    }

    #[test]
    fn extreme_policies_do_not_overflow() {
        let policy = RestartPolicy {
            initial_backoff: Duration::MAX,
            max_backoff: Duration::MAX,
            cooldown: Duration::MAX,
            max_failures: 0,
            ..policy()
        };
        let mut state = RestartState::default();
        let lost = outage(ErrorKind::Connection, Some(Duration::MAX));
        assert!(matches!(
            state.record_failure(&policy, "a", lost, Instant::now()),
            RestartDecision::Suspend(_)
        ));
        let mut many = RestartState { failures: u32::MAX, ..RestartState::default() };
        let policy = RestartPolicy { max_failures: u32::MAX, ..policy };
        many.record_failure(&policy, "a", outage(ErrorKind::Connection, None), Instant::now());
        assert_eq!(many.failures, u32::MAX);
    }

    #[test]
    fn suspend_is_detected_from_both_clocks() {
        let seconds = Duration::from_secs;
        for (wall, monotonic, want) in
            [(10, 10, None), (39, 10, None), (40, 10, Some(30)), (3610, 10, Some(3600)), (0, 10, None)]
        {
            assert_eq!(
                suspend_duration(seconds(wall), seconds(monotonic)),
                want.map(seconds),
                "{wall} {monotonic}"
            );
        }
    }
}
