//! The demo server as a client sees it: raw JSON lines, in both eras, over memory and over both kinds of HTTP.

#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

mod client;
mod http;
mod lists;
mod sse;
mod tools;
mod websocket;
