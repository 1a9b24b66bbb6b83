//! From an endpoint to its wire.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use mcp_model::{Endpoint, Limits, Secret};

use crate::error::ConnectError;
#[cfg(any(feature = "stdio", feature = "http", feature = "sse", feature = "websocket"))]
use crate::redact::json_secrets;
use crate::transport::Dial;

/// What a wire needs to know besides its endpoint.
#[derive(Debug, Clone, Default)]
pub struct DialOptions {
    /// The limits that a wire keeps itself: connecting, message sizes, silence on streams.
    pub limits: Limits,
    /// Where receipts for process groups are kept; without, a group that our sudden death leaves behind is not found
    /// again.
    #[cfg(feature = "stdio")]
    pub receipts: Option<crate::stdio::ReceiptDirectory>,
    /// What is known of URLs that may be spoken to in either of the two ways over HTTP.
    #[cfg(all(feature = "http", feature = "sse"))]
    pub sse_servers: crate::dial::sse_fallback::SseServerCache,
    /// Certificate authorities that are trusted besides the system's.
    #[cfg(any(feature = "http", feature = "sse", feature = "websocket"))]
    pub authorities: crate::net::tls::Authorities,
    /// Who gives the requests of the wires over HTTP their token. An endpoint with an `Authorization` header of its own,
    /// or with a user in its URL, does without.
    #[cfg(any(feature = "http", feature = "sse"))]
    pub authorization: Option<Arc<dyn crate::net::authorization::Authorization>>,
    /// Where a wire that starts a process tells its id.
    pub process: ProcessIdCell,
    /// What the server is given besides what its endpoint says, and may repeat: its configuration, which goes with the
    /// handshake. Taken out of its words like what the endpoint says.
    pub extra_secrets: Vec<Secret>,
}

impl DialOptions {
    /// The secrets in what the server is given besides: each whole, and the texts in it.
    #[cfg(any(feature = "stdio", feature = "http", feature = "sse", feature = "websocket"))]
    pub(crate) fn all_extra_secrets(&self) -> impl Iterator<Item = Secret> {
        self.extra_secrets.iter().flat_map(|it| std::iter::once(it.clone()).chain(json_secrets(it)))
    }
}

/// The id of a wire's process, once there is one. All clones show the same; of several processes, the last.
#[derive(Debug, Clone, Default)]
pub struct ProcessIdCell(Arc<AtomicU32>);

impl ProcessIdCell {
    /// The id; `None` before the process is started, and for a wire without one.
    pub fn id(&self) -> Option<u32> {
        Some(self.0.load(Ordering::Relaxed)).filter(|it| *it != 0)
    }

    /// A process was started.
    pub fn set(&self, id: u32) {
        self.0.store(id, Ordering::Relaxed);
    }
}

/// The wire for an endpoint. Fails where this build does not have it, or the endpoint cannot be used.
///
/// Wires that take a URL go through the proxy that the environment names (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, but
/// for the hosts of `NO_PROXY` and for this machine), be it one for HTTP or SOCKS. WebSocket goes through a tunnel.
pub fn dialer(endpoint: &Endpoint, options: &DialOptions) -> Result<Arc<dyn Dial>, ConnectError> {
    // Named here because a build without wires uses neither.
    let _ = options;
    match endpoint {
        #[cfg(feature = "stdio")]
        Endpoint::Stdio(it) => Ok(Arc::new(crate::stdio::StdioDial::new(it, options)?)),
        #[cfg(all(feature = "http", feature = "sse"))]
        Endpoint::Http(it) if it.sse_fallback == mcp_model::SseFallback::Allowed => {
            Ok(Arc::new(crate::dial::sse_fallback::HttpOrSseDial::new(it, options)?))
        }
        #[cfg(all(feature = "http", feature = "sse"))]
        Endpoint::Http(it) => Ok(Arc::new(crate::dial::sse_fallback::HttpOnlyDial::new(it, options)?)),
        #[cfg(all(feature = "http", not(feature = "sse")))]
        Endpoint::Http(it) => Ok(Arc::new(crate::http::HttpDial::new(it, options)?)),
        #[cfg(feature = "sse")]
        Endpoint::Sse(it) => Ok(Arc::new(crate::sse::SseDial::new(it, options)?)),
        #[cfg(feature = "websocket")]
        Endpoint::WebSocket(it) => Ok(Arc::new(crate::websocket::WebSocketDial::new(it, options)?)),
        // In a build with every wire there is no other.
        #[cfg(not(all(feature = "stdio", feature = "http", feature = "sse", feature = "websocket")))]
        other => Err(ConnectError::Unsupported(other.kind())),
    }
}
