//! JSON-RPC error codes of an ACP agent. No other file of this crate contains such a number.

pub use mcp_host_model::code::{
    INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR,
};

/// The client must authenticate first.
pub const AUTHENTICATION_REQUIRED: i64 = -32000;
/// The session or file does not exist.
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// Version 2: no common protocol version.
pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
/// The request was cancelled.
pub const REQUEST_CANCELLED: i64 = -32800;

/// MCP over ACP: too many requests, or too large ones, for the client (ACPX-12).
pub const OVER_ACP_LIMIT: i64 = -33000;
/// MCP over ACP: the client no longer has the server.
pub const OVER_ACP_UNAVAILABLE: i64 = -33001;
/// MCP over ACP: the server behind the client failed.
pub const OVER_ACP_BACKEND_FAILURE: i64 = -33002;
