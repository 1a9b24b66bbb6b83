//! The secrets of an endpoint.

use mcp_model::{Endpoint, Secret};

use crate::redact::{argument_secrets, json_secrets, secret_parts};

/// The secrets of an endpoint that a server may repeat: the values of its environment, its arguments except flags and the
/// first name, its headers, its session id, and the user, password and query of its URL, also in parts. Values shorter than
/// six bytes are not redacted.
pub fn endpoint_secrets(endpoint: &Endpoint) -> Vec<Secret> {
    match endpoint {
        Endpoint::Stdio(it) => {
            let environment = it.env.iter().map(|(_, value)| value);
            let values: Vec<&Secret> = environment.chain(argument_secrets(&it.args)).collect();
            let parts = values.iter().flat_map(|it| secret_parts(it));
            parts.chain(values.iter().flat_map(|it| json_secrets(it))).collect()
        }
        #[cfg(any(feature = "http", feature = "sse", feature = "websocket"))]
        Endpoint::Sse(it) | Endpoint::WebSocket(it) | Endpoint::Http(it) => crate::net::secrets(it),
        #[cfg(not(any(feature = "http", feature = "sse", feature = "websocket")))]
        Endpoint::Sse(it) | Endpoint::WebSocket(it) | Endpoint::Http(it) => {
            it.headers.iter().map(|(_, value)| value).chain(&it.session_id).flat_map(secret_parts).collect()
        }
    }
}
