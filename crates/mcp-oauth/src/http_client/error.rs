//! Why a request of a login failed, and the limits of a request.

use std::time::Duration;

/// Timeout of one request.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum size of a response. Metadata has a few kilobytes.
pub(super) const MAX_RESPONSE_BYTES: usize = 256 << 10;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpClientError {
    /// The URL policy forbids it.
    #[error("this request is not allowed: {0}")]
    Forbidden(String),
    #[error("{0}")]
    Failed(String),
    #[error("its response exceeds {} KiB", MAX_RESPONSE_BYTES >> 10)]
    TooLarge,
    #[error("it did not answer within {} s", REQUEST_TIMEOUT.as_secs())]
    TimedOut,
}
