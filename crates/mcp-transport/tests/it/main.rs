//! The crate as its users see it.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

#[cfg(feature = "oauth")]
mod authority;
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
#[cfg(feature = "oauth")]
mod oauth;
mod reads;
#[cfg(all(feature = "stdio", feature = "http"))]
mod recording;
mod remembered;
mod replay;
#[cfg(feature = "rmcp")]
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
