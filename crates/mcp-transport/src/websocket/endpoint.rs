//! A WebSocket endpoint, which all connections to it share.

use std::time::Duration;

use http::{HeaderMap, Uri};
use url::Url;

use crate::net::tls::Authorities;
use crate::redact::Redactor;

/// The URL of a WebSocket server with its headers and limits.
pub(super) struct WebSocketEndpoint {
    pub(super) url: Url,
    pub(super) label: String,
    /// The request's path and query.
    pub(super) target: Uri,
    /// The headers of the upgrade, without its key.
    pub(super) headers: HeaderMap,
    pub(super) authorities: Authorities,
    pub(super) connect_timeout: Duration,
    /// Maximum time without progress in writing.
    pub(super) write_timeout: Duration,
    /// Maximum silence after a ping.
    pub(super) pong_timeout: Duration,
    pub(super) max_message_bytes: usize,
    pub(super) redactor: Redactor,
}
