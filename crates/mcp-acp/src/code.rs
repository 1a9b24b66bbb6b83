//! The JSON-RPC numbers that an ACP agent answers with. No other file of this crate writes one.

/// The parameters of a session request are wrong: a transport that was not declared, or a malformed server.
pub const INVALID_PARAMS: i64 = mcp_model::code::INVALID_PARAMS;
