//! Timeouts of the transports over HTTP.

use std::time::Duration;

/// Timeout of `notifications/cancelled`.
pub(crate) const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout of any other message without a response.
pub(crate) const NOTIFICATION_TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout of the body of an error response. The status alone suffices.
pub(crate) const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout of what is ignored: a body, or with the SSE transport an HTTP response after the JSON-RPC response.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_millis(250);

/// Maximum timeout. A longer one might overflow the clock.
pub(crate) const MAX_TIMEOUT: Duration = Duration::from_secs(60 * 60 * 24);
