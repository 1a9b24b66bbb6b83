//! The secrets of an endpoint.

use mcp_host_model::{Endpoint, Secret};

#[cfg(not(any(feature = "http", feature = "sse", feature = "websocket")))]
use crate::redact::secret_parts;
use crate::redact::stdio_secrets;

/// The secrets of an endpoint that a server may repeat: the values of its environment, its arguments except names of
/// options and packages, its headers, its session id, and the user, password and query of its URL, also in
/// parts. Values shorter than six bytes are not redacted.
pub fn endpoint_secrets(endpoint: &Endpoint) -> Vec<Secret> {
    match endpoint {
        Endpoint::Stdio(it) => stdio_secrets(it),
        #[cfg(any(feature = "http", feature = "sse", feature = "websocket"))]
        Endpoint::Sse(it) | Endpoint::WebSocket(it) | Endpoint::Http(it) => crate::net::secrets(it),
        #[cfg(not(any(feature = "http", feature = "sse", feature = "websocket")))]
        Endpoint::Sse(it) | Endpoint::WebSocket(it) | Endpoint::Http(it) => {
            it.headers.iter().map(|(_, value)| value).chain(&it.session_id).flat_map(secret_parts).collect()
        }
    }
}
