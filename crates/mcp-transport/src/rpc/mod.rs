//! JSON-RPC over any transport: framing, callers and their handlers, the table of pending calls, the engine and its
//! limits.

pub(crate) mod caller;
pub(crate) mod deadline;
pub(crate) mod engine;
pub mod frame;
pub(crate) mod handlers;
#[cfg(any(feature = "http", feature = "sse"))]
pub(crate) mod idle_lines;
pub(crate) mod notification;
pub(crate) mod object_members;
pub(crate) mod outcome;
#[cfg(any(feature = "stdio", feature = "http", feature = "sse"))]
pub(crate) mod oversize;
pub(crate) mod pending;
pub(crate) mod progress;
#[cfg(any(feature = "stdio", feature = "http", feature = "sse", feature = "websocket"))]
pub(crate) mod rate_limiter;
pub(crate) mod request_owner;
pub(crate) mod server_request;
