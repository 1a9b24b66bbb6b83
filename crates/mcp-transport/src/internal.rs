//! Interfaces for mcp-gateway, mcp-oauth, mcp-recording and mcp-rmcp, for mcp-testkit and for the benchmarks.
//!
//! Not part of the public API; may change in any release.

#[cfg(any(feature = "http", feature = "sse", feature = "websocket"))]
pub use crate::net::error_body;
#[cfg(any(feature = "http", feature = "sse"))]
pub use crate::net::event_stream::{Event, EventStreamParser};
#[cfg(any(feature = "http", feature = "sse"))]
pub use crate::net::fetch::fetch_json;
#[cfg(any(feature = "http", feature = "sse", feature = "websocket"))]
pub use crate::net::tls;
pub use crate::redact::{Redactor, argument_secrets, map_json_strings};
pub use crate::rpc::frame;
#[cfg(feature = "stdio")]
pub use crate::stdio::{Line, LineBuffer};
pub use crate::transport::{force_time, scan};
