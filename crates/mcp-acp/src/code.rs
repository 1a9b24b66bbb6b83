//! The JSON-RPC numbers that an ACP agent answers with. No other file of this crate writes one.

pub use mcp_model::code::{INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR};

/// The client has to authenticate first.
pub const AUTHENTICATION_REQUIRED: i64 = -32000;
/// There is no such session, or file.
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// Version 2: no version that both sides speak.
pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
/// The request was cancelled.
pub const REQUEST_CANCELLED: i64 = -32800;

/// MCP over ACP: more requests, or larger ones, than the client takes (ACPX-12).
pub const OVER_ACP_LIMIT: i64 = -33000;
/// MCP over ACP: the client has no such server any more.
pub const OVER_ACP_UNAVAILABLE: i64 = -33001;
/// MCP over ACP: the server behind the client failed.
pub const OVER_ACP_BACKEND_FAILURE: i64 = -33002;
