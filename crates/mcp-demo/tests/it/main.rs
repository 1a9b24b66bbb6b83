//! The demo server over memory streams, HTTP and WebSocket, in both eras.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod client;
mod http;
mod lists;
mod sse;
mod tools;
mod websocket;
