//! The choice of the transport for an endpoint.

use std::sync::Arc;

#[cfg(feature = "endpoint")]
use mcp_host_model::Endpoint;
#[cfg(feature = "stdio")]
use mcp_host_model::StdioEndpoint;

use crate::dial::options::DialOptions;
use crate::error::ConnectError;
use crate::transport::Dial;

/// Creates the dialer for a server that is started as a child process. Fails if the encoding of the endpoint is unknown
/// or cannot be used for lines. It needs fewer dependencies than [`dialer`], which also takes URLs.
#[cfg(feature = "stdio")]
pub fn stdio_dialer(endpoint: &StdioEndpoint, options: &DialOptions) -> Result<Arc<dyn Dial>, ConnectError> {
    Ok(Arc::new(crate::stdio::StdioDial::new(endpoint, &options.for_stdio())?))
}

/// Creates the dialer for an endpoint. Fails if this build does not include its transport, or the endpoint is invalid.
///
/// Transports with a URL use the HTTP or SOCKS proxy of the environment (`HTTPS_PROXY`, `HTTP_PROXY`,
/// `ALL_PROXY`), except for loopback hosts and the hosts of `NO_PROXY`. A WebSocket uses a tunnel through the
/// proxy.
#[cfg(feature = "endpoint")]
pub fn dialer(endpoint: &Endpoint, options: &DialOptions) -> Result<Arc<dyn Dial>, ConnectError> {
    // Unused in a build without transports.
    let _ = options;
    match endpoint {
        #[cfg(feature = "stdio")]
        Endpoint::Stdio(it) => stdio_dialer(it, options),
        #[cfg(all(feature = "http", feature = "sse"))]
        Endpoint::Http(it) => Ok(Arc::new(crate::dial::sse_fallback::HttpOrSseDial::new(it, options)?)),
        #[cfg(all(feature = "http", not(feature = "sse")))]
        Endpoint::Http(it) => Ok(Arc::new(crate::http::HttpDial::new(it, &options.for_url())?)),
        #[cfg(all(feature = "http", feature = "sse"))]
        Endpoint::Sse(it) => Ok(Arc::new(crate::dial::sse_fallback::SseOrHttpDial::new(it, options)?)),
        #[cfg(all(feature = "sse", not(feature = "http")))]
        Endpoint::Sse(it) => Ok(Arc::new(crate::sse::SseDial::new(it, &options.for_url())?)),
        #[cfg(feature = "websocket")]
        Endpoint::WebSocket(it) => {
            Ok(Arc::new(crate::websocket::WebSocketDial::new(it, &options.for_url())?))
        }
        // A build with all transports has no other endpoints.
        #[cfg(not(all(feature = "stdio", feature = "http", feature = "sse", feature = "websocket")))]
        other => Err(ConnectError::Unsupported(other.kind())),
    }
}
