//! The crate as its users see it.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

mod callers;
#[cfg(all(feature = "stdio", feature = "http", feature = "sse", feature = "websocket"))]
mod conformance;
mod handlers;
#[cfg(feature = "http")]
mod http;
#[cfg(all(feature = "http", feature = "websocket"))]
mod http2;
mod input;
mod kept;
mod memory;
mod reads;
mod remembered;
mod replay;
#[cfg(all(feature = "stdio", feature = "http", feature = "sse", feature = "websocket"))]
mod rmcp;
mod semantic_kernel;
mod session;
#[cfg(feature = "sse")]
mod sse;
#[cfg(feature = "stdio")]
mod stdio;
#[cfg(all(feature = "http", feature = "websocket"))]
mod tls;
#[cfg(feature = "websocket")]
mod websocket;
