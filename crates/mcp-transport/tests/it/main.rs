//! The crate as its users see it.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

#[cfg(all(feature = "stdio", feature = "http", feature = "sse", feature = "websocket"))]
mod conformance;
#[cfg(feature = "http")]
mod http;
mod memory;
#[cfg(feature = "rmcp")]
mod rmcp;
mod session;
#[cfg(feature = "sse")]
mod sse;
#[cfg(feature = "stdio")]
mod stdio;
#[cfg(all(feature = "http", feature = "websocket"))]
mod tls;
#[cfg(feature = "websocket")]
mod websocket;
