//! What the wires over HTTP share: the way to a server, the client with the connections it keeps, one request with its
//! redirects, headers, event streams, and what errors say. What a message means to a wire, and what becomes of its
//! request, is the wire's own.

pub(crate) mod address_policy;
#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) mod authorization;
#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) mod client;
pub(crate) mod configured;
pub(crate) mod connect;
#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) mod endpoint;
pub(crate) mod error_body;
#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) mod event_stream;
#[cfg(any(feature = "http", feature = "sse"))]
mod exchange;
pub(crate) mod framing;
#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) mod headers;
pub(crate) mod http1;
pub(crate) mod loopback;
#[cfg(any(feature = "http", feature = "sse"))]
mod pool;
pub(crate) mod proxy;
pub(crate) mod proxy_diagnosis;
#[cfg(any(feature = "http", feature = "sse"))]
mod response;
mod socks;
#[cfg(any(feature = "http", feature = "sse"))]
mod target;
#[cfg(test)]
pub(crate) mod tests;
pub mod tls;

pub(crate) use configured::secrets;

#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) use client::{Client, Failed};
#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) use endpoint::Place;
#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) use response::Response;
#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) use target::Target;

/// The notice that a request is given up.
#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) const CANCELLED: &str = "notifications/cancelled";

/// The notice that the opening is over. Nothing of its session may overtake it: servers refuse what comes earlier.
#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) const INITIALIZED: &str = "notifications/initialized";
