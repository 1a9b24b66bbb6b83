//! Tests of the crate's public API.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

#[cfg(feature = "stdio")]
mod beside_rmcp;
#[cfg(feature = "testing")]
mod broken_transports;
mod cache;
mod callers;
mod closing;
#[cfg(all(feature = "stdio", feature = "http", feature = "sse", feature = "websocket", feature = "testing"))]
mod conformance;
mod features;
mod handlers;
#[cfg(feature = "http")]
mod http;
#[cfg(all(feature = "http", feature = "websocket"))]
mod http2;
mod in_memory;
mod input_required;
mod known_era;
#[cfg(feature = "testing")]
mod odd_lists;
#[cfg(feature = "stdio")]
mod odd_output;
mod own_transport;
mod retry;
#[cfg(all(feature = "stdio", feature = "http", feature = "sse", feature = "websocket"))]
mod rmcp;
#[cfg(all(target_os = "linux", feature = "stdio"))]
mod sandbox;
mod semantic_kernel;
mod session;
#[cfg(feature = "sse")]
mod sse;
#[cfg(feature = "stdio")]
mod stdio;
mod tasks;
#[cfg(all(feature = "http", feature = "websocket"))]
mod tls;
#[cfg(feature = "websocket")]
mod websocket;
