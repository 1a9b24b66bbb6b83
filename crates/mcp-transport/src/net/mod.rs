//! Networking for the transports with a URL: connections, TLS, proxies, the HTTP client with its pool, redirects,
//! headers, event streams and error messages.
//!
//! Interprets no JSON-RPC message; that belongs to the transports.

#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) mod authorization;
#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) mod client;
pub(crate) mod connect;
#[cfg(any(feature = "http", feature = "sse"))]
mod content_coding;
#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) mod endpoint;
pub mod error_body;
#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) mod event_stream;
#[cfg(any(feature = "http", feature = "sse"))]
mod exchange;
#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) mod fetch;
#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) mod headers;
pub(crate) mod http1;
#[cfg(any(feature = "http", feature = "sse"))]
mod inline_connection;
#[cfg(any(feature = "http", feature = "sse"))]
mod pool;
pub(crate) mod proxy;
pub(crate) mod proxy_diagnosis;
#[cfg(any(feature = "http", feature = "sse"))]
mod request_target;
#[cfg(any(feature = "http", feature = "sse"))]
mod response;
mod socks;
pub(crate) mod stream;
pub(crate) mod tcp;
#[cfg(test)]
pub(crate) mod tests;
#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) mod timeouts;
pub mod tls;
pub(crate) mod url_endpoint;

pub(crate) use url_endpoint::secrets;

#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) use client::{Client, ExchangeError};
#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) use endpoint::HttpEndpoint;
#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) use request_target::{RequestParts, RequestTarget};
#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) use response::Response;
