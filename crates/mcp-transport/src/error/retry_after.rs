//! The time at which a server accepts another request (`Retry-After`).

use std::fmt;
use std::time::Duration;

/// Maximum wait. A server may not stop us for longer.
const MAX_WAIT: Duration = Duration::from_secs(10 * 60);

/// Maximum wait of a request that is being sent: its caller waits too.
const MAX_REQUEST_WAIT: Duration = Duration::from_secs(10);

/// When a server accepts another request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryAfter {
    /// How long it asks to wait, from the receipt of its response.
    pub delay: Duration,
    /// The date in its response, if it is not a number of seconds.
    pub date: Option<String>,
}

impl RetryAfter {
    /// After this delay.
    pub fn new(delay: Duration) -> RetryAfter {
        RetryAfter { delay, date: None }
    }

    /// How long to wait: at most ten minutes.
    pub fn wait(&self) -> Duration {
        self.delay.min(MAX_WAIT)
    }

    /// How long to wait before a request is sent again. `None` if that is more than ten seconds: the caller of the
    /// request then gets the error instead.
    pub fn request_wait(&self) -> Option<Duration> {
        Some(self.delay).filter(|delay| *delay <= MAX_REQUEST_WAIT)
    }
}

impl fmt::Display for RetryAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.date {
            Some(date) => write!(f, "after {date}"),
            None => write!(f, "in {} s", self.delay.as_secs()),
        }
    }
}
