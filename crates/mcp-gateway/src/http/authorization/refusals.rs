//! Logs requests whose token, host or origin is refused, at a limited rate: a flood must not fill the log.

use std::borrow::Cow;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

/// Interval after which one more line is allowed.
const PERIOD: Duration = Duration::from_secs(10);
/// Maximum number of lines at once.
const BURST: NonZeroU32 = NonZeroU32::new(5).expect("it is not zero");

/// An extension of a response that refuses a request: why the operator should know of it. It does not repeat a token.
#[derive(Debug, Clone)]
pub(crate) struct RefusalReason(pub(crate) Cow<'static, str>);

/// The log of refused tokens, hosts and origins.
pub(crate) struct RefusalLog<C: Clock = DefaultClock> {
    limiter: RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<C::Instant>>,
    /// The refusals since the last line.
    unreported: AtomicU64,
}

impl<C: Clock> RefusalLog<C> {
    pub(crate) fn new(clock: C) -> RefusalLog<C> {
        let quota = Quota::with_period(PERIOD).expect("the period is not zero").allow_burst(BURST);
        RefusalLog { limiter: RateLimiter::direct_with_clock(quota, clock), unreported: AtomicU64::new(0) }
    }

    /// Logs a refusal. Over the rate limit, counts it instead.
    pub(crate) fn log(&self, address: IpAddr, RefusalReason(reason): &RefusalReason) {
        if let Some(line) = self.next_line(address, reason) {
            tracing::warn!("{line}");
        }
    }

    /// Logs the number of refusals that were only counted.
    pub(crate) fn log_unreported(&self) {
        let rest = self.unreported.swap(0, Ordering::Relaxed);
        if rest > 0 {
            tracing::warn!("refused {rest} more requests, because of their tokens, hosts or origins");
        }
    }

    /// Returns the line to log. Over the limit, counts the refusal instead.
    fn next_line(&self, address: IpAddr, reason: &str) -> Option<String> {
        if self.limiter.check().is_err() {
            self.unreported.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let more = match self.unreported.swap(0, Ordering::Relaxed) {
            0 => String::new(),
            more => format!(" ({more} more requests were refused before)"),
        };
        Some(format!("refused a request from {address}: {reason}{more}"))
    }
}

#[cfg(test)]
mod tests {
    use governor::clock::FakeRelativeClock;

    use super::*;

    #[test]
    fn flood_of_refused_tokens_writes_few_lines() {
        let clock = FakeRelativeClock::default();
        let log = RefusalLog::new(clock.clone());
        let address = "127.0.0.1".parse().unwrap();
        let lines: Vec<String> = (0..1000).filter_map(|_| log.next_line(address, "no")).collect();
        assert_eq!(lines, vec!["refused a request from 127.0.0.1: no"; 5]);
        clock.advance(PERIOD);
        let line = "refused a request from 127.0.0.1: no (995 more requests were refused before)";
        assert_eq!(log.next_line(address, "no").as_deref(), Some(line));
        assert_eq!(log.next_line(address, "no"), None);
    }
}
