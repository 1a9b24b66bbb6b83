//! Rate limits of calls: for each client, and for each server.

use std::fmt;
use std::hash::Hash;
use std::num::{NonZeroU32, NonZeroUsize};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use lru::LruCache;
use mcp_host_model::{RawJson, RpcError, ServerId, code};
use parking_lot::Mutex;
use serde_json::json;

use crate::access::principal::Principal;

/// Maximum number of clients, and of servers, with a limiter of their own. Beyond it, the limiter that was used least
/// recently is dropped.
const MAX_KEYS: NonZeroUsize = NonZeroUsize::new(4096).expect("it is not zero");

/// A maximum number of calls per second or minute. So many calls may be made at once; then one more call is possible
/// each time that the second or minute divided by this number has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    calls: NonZeroU32,
    period: Period,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Period {
    Second,
    Minute,
}

/// A text that is not a [`Rate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a rate is a number from 1 to {} and /s or /min, such as 10/s", Rate::MAX_CALLS)]
#[non_exhaustive]
pub struct InvalidRate;

impl Rate {
    /// Maximum number of calls per second or minute.
    pub const MAX_CALLS: u32 = 1_000_000;

    fn quota(self) -> Quota {
        match self.period {
            Period::Second => Quota::per_second(self.calls),
            Period::Minute => Quota::per_minute(self.calls),
        }
    }
}

impl FromStr for Rate {
    type Err = InvalidRate;

    fn from_str(text: &str) -> Result<Rate, InvalidRate> {
        let (calls, period) = text.split_once('/').ok_or(InvalidRate)?;
        let calls: NonZeroU32 = calls.parse().map_err(|_| InvalidRate)?;
        let period = match period {
            "s" => Period::Second,
            "min" => Period::Minute,
            _ => return Err(InvalidRate),
        };
        if calls.get() > Rate::MAX_CALLS {
            return Err(InvalidRate);
        }
        Ok(Rate { calls, period })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let period = match self.period {
            Period::Second => "s",
            Period::Minute => "min",
        };
        write!(f, "{}/{period}", self.calls)
    }
}

/// The rate limits of a gateway. A call is a request that reaches a server: of a tool, prompt, resource, completion or
/// task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct RateLimits {
    /// The limit of each token. Without tokens, all clients share one.
    pub per_token: Option<Rate>,
    /// The limit of each server, which all clients share. A read of a resource that is searched on several servers
    /// counts for the server that has it, and is not refused.
    pub per_server: Option<Rate>,
}

/// The state of the rate limits.
pub(crate) struct RateLimiters<C: Clock = DefaultClock> {
    clients: Option<KeyedLimiters<Principal, C>>,
    servers: Option<KeyedLimiters<ServerId, C>>,
}

/// A call over a rate limit.
#[derive(Debug)]
pub(crate) struct RateLimited {
    /// The error for the client.
    pub(crate) error: RpcError,
    /// The seconds after which the call can be tried again.
    pub(crate) retry_after: u64,
}

/// One limiter for each key.
struct KeyedLimiters<K, C: Clock> {
    rate: Rate,
    clock: C,
    by_key: Mutex<LruCache<K, Arc<Limiter<C>>>>,
}

type Limiter<C> = RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<<C as Clock>::Instant>>;

impl<C: Clock + Clone> RateLimiters<C> {
    pub(crate) fn new(limits: RateLimits, clock: C) -> RateLimiters<C> {
        let RateLimits { per_token, per_server } = limits;
        RateLimiters {
            clients: per_token.map(|rate| KeyedLimiters::new(rate, clock.clone())),
            servers: per_server.map(|rate| KeyedLimiters::new(rate, clock)),
        }
    }

    /// Counts a call of a client. Fails if its limit is reached.
    pub(crate) fn admit_client(&self, client: &Principal) -> Result<(), RateLimited> {
        let Some(limiters) = &self.clients else { return Ok(()) };
        let owner = match client.is_anonymous() {
            true => "all clients without a token together have".to_owned(),
            false => format!("the token `{client}` has"),
        };
        limiters.admit(client).map_err(|wait| RateLimited::new("token", &owner, limiters.rate, wait))
    }

    /// Counts a call to a server. Fails if its limit is reached.
    pub(crate) fn admit_server(&self, server: &ServerId) -> Result<(), RateLimited> {
        let Some(limiters) = &self.servers else { return Ok(()) };
        let owner = format!("all clients together have, for the server `{server}`,");
        limiters.admit(server).map_err(|wait| RateLimited::new("server", &owner, limiters.rate, wait))
    }
}

impl<K: Hash + Eq + Clone, C: Clock + Clone> KeyedLimiters<K, C> {
    fn new(rate: Rate, clock: C) -> KeyedLimiters<K, C> {
        KeyedLimiters { rate, clock, by_key: Mutex::new(LruCache::new(MAX_KEYS)) }
    }

    /// Counts a call; an error is the time until the next one is possible.
    fn admit(&self, key: &K) -> Result<(), Duration> {
        let limiter = {
            let mut by_key = self.by_key.lock();
            let new = || Arc::new(RateLimiter::direct_with_clock(self.rate.quota(), self.clock.clone()));
            Arc::clone(by_key.get_or_insert_ref(key, new))
        };
        limiter.check().map_err(|until| until.wait_time_from(self.clock.now()))
    }
}

impl RateLimited {
    fn new(limit: &str, owner: &str, rate: Rate, wait: Duration) -> RateLimited {
        let milliseconds = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
        let seconds = milliseconds as f64 / 1000.0;
        let message =
            format!("{owner} a limit of {rate} calls (the rate limit per {limit}): try again in {seconds} s");
        let data = json!({"limit": limit, "rate": rate.to_string(), "retryAfterMs": milliseconds});
        let error = RpcError::new(code::RATE_LIMITED, message);
        RateLimited {
            error: RpcError { data: RawJson::from_value(&data).ok(), ..error },
            retry_after: milliseconds.div_ceil(1000),
        }
    }
}

#[cfg(test)]
mod tests {
    use governor::clock::FakeRelativeClock;

    use super::*;

    #[test]
    fn rate_is_a_number_per_second_or_minute() {
        #[track_caller]
        fn check(text: &str, want: Option<&str>) {
            let got = text.parse::<Rate>().ok().map(|rate| rate.to_string());
            assert_eq!(got.as_deref(), want);
        }
        check("10/s", Some("10/s"));
        check("1/min", Some("1/min"));
        check("1000000/s", Some("1000000/s"));
        for wrong in
            ["", "10", "0/s", "-1/s", "1.5/s", "10/h", "10/", "/s", "10 /s", "1000001/s", "99999999999/s"]
        {
            check(wrong, None);
        }
    }

    fn limiters(clock: &FakeRelativeClock, token: &str, server: &str) -> RateLimiters<FakeRelativeClock> {
        let limits = RateLimits { per_token: token.parse().ok(), per_server: server.parse().ok() };
        RateLimiters::new(limits, clock.clone())
    }

    #[test]
    fn token_is_refused_beyond_its_rate_until_time_has_passed() {
        let clock = FakeRelativeClock::default();
        let limiters = limiters(&clock, "2/s", "");
        let (ann, bob) = (Principal::named("ann"), Principal::named("bob"));
        assert!(limiters.admit_client(&ann).is_ok() && limiters.admit_client(&ann).is_ok());
        let RateLimited { error: refused, retry_after } = limiters.admit_client(&ann).unwrap_err();
        assert_eq!(
            refused.message,
            "the token `ann` has a limit of 2/s calls (the rate limit per token): try again in 0.5 s"
        );
        let data = refused.data.as_ref().unwrap().as_str();
        assert_eq!(data, r#"{"limit":"token","rate":"2/s","retryAfterMs":500}"#);
        assert_eq!((refused.code, retry_after), (code::RATE_LIMITED, 1));
        assert!(limiters.admit_client(&bob).is_ok(), "another token has a limit of its own");
        clock.advance(Duration::from_millis(499));
        assert!(limiters.admit_client(&ann).is_err());
        clock.advance(Duration::from_millis(1));
        assert!(limiters.admit_client(&ann).is_ok() && limiters.admit_client(&ann).is_err());
        // Unused time adds up to the rate only.
        clock.advance(Duration::from_secs(60));
        let admitted = (0..10).filter(|_| limiters.admit_client(&ann).is_ok()).count();
        assert_eq!(admitted, 2);
    }

    #[test]
    fn clients_share_the_rate_of_a_server() {
        let clock = FakeRelativeClock::default();
        let limiters = limiters(&clock, "", "3/min");
        let [docs, search] = ["docs", "search"].map(|id| ServerId::parse(id).unwrap());
        assert_eq!((0..5).filter(|_| limiters.admit_server(&docs).is_ok()).count(), 3);
        assert!(limiters.admit_server(&search).is_ok());
        let RateLimited { error: refused, retry_after } = limiters.admit_server(&docs).unwrap_err();
        assert!(refused.message.contains("for the server `docs`, a limit of 3/min"), "{}", refused.message);
        assert_eq!(retry_after, 20);
        // Without a limit, no client is refused.
        assert!((0..1000).all(|_| limiters.admit_client(&Principal::anonymous()).is_ok()));
    }

    #[test]
    fn number_of_remembered_clients_is_bounded() {
        let clock = FakeRelativeClock::default();
        let limiters = limiters(&clock, "1/min", "");
        for number in 0..MAX_KEYS.get() + 10 {
            limiters.admit_client(&Principal::named(&number.to_string())).unwrap();
        }
        assert_eq!(limiters.clients.as_ref().unwrap().by_key.lock().len(), MAX_KEYS.get());
        assert!(limiters.admit_client(&Principal::named("4000")).is_err());
    }
}
