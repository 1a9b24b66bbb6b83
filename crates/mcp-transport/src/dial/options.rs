//! Options for dialing.

#[cfg(any(feature = "http", feature = "sse"))]
use std::sync::Arc;

use mcp_host_model::{Limits, Secret};

#[cfg(any(feature = "http", feature = "sse", feature = "websocket"))]
use crate::net::url_endpoint::UrlOptions;
#[cfg(any(feature = "stdio", feature = "http", feature = "sse", feature = "websocket"))]
use crate::redact::json_secrets;
#[cfg(feature = "stdio")]
use crate::stdio::StdioOptions;
use crate::transport::process_id::ProcessIdCell;

/// Options for all transports, besides the endpoint.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct DialOptions {
    /// The limits that a transport enforces: connecting, message sizes, silence on streams.
    pub limits: Limits,
    /// The directory for receipts of process groups. Without it, a process group that survives a crash of the
    /// host is not found again.
    #[cfg(feature = "stdio")]
    pub receipts: Option<crate::stdio::ReceiptDirectory>,
    /// The cache of URLs that support only HTTP with SSE.
    #[cfg(all(feature = "http", feature = "sse"))]
    pub sse_servers: crate::dial::sse_servers::SseServerCache,
    /// The certificate authorities that are trusted in addition to the system's.
    #[cfg(any(feature = "http", feature = "sse", feature = "websocket"))]
    pub authorities: crate::net::tls::Authorities,
    /// Provides the token of HTTP requests. Not used for an endpoint with an `Authorization` header, or with
    /// credentials in its URL.
    #[cfg(any(feature = "http", feature = "sse"))]
    pub authorization: Option<Arc<dyn crate::net::authorization::Authorization>>,
    /// Receives the id of the started process.
    pub process: ProcessIdCell,
    /// Secrets that the server receives besides its endpoint's, such as its configuration in the handshake. They are
    /// redacted in the same way.
    pub extra_secrets: Vec<Secret>,
}

impl DialOptions {
    /// The extra secrets, and the strings in those that are JSON.
    #[cfg(any(feature = "stdio", feature = "http", feature = "sse", feature = "websocket"))]
    fn all_extra_secrets(&self) -> Vec<Secret> {
        let secrets = self.extra_secrets.iter();
        secrets.flat_map(|secret| std::iter::once(secret.clone()).chain(json_secrets(secret))).collect()
    }

    /// The options of the stdio transport.
    #[cfg(feature = "stdio")]
    pub(crate) fn for_stdio(&self) -> StdioOptions {
        StdioOptions {
            limits: self.limits.clone(),
            receipts: self.receipts.clone(),
            process: self.process.clone(),
            extra_secrets: self.all_extra_secrets(),
        }
    }

    /// The options of a transport with a URL.
    #[cfg(any(feature = "http", feature = "sse", feature = "websocket"))]
    pub(crate) fn for_url(&self) -> UrlOptions {
        UrlOptions {
            limits: self.limits.clone(),
            authorities: self.authorities.clone(),
            #[cfg(any(feature = "http", feature = "sse"))]
            authorization: self.authorization.clone(),
            extra_secrets: self.all_extra_secrets(),
        }
    }
}
