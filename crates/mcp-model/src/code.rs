//! JSON-RPC and MCP error codes. No other file of the workspace contains these numbers.

/// JSON-RPC: the text is not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// JSON-RPC: the JSON is not a request.
pub const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC: the method does not exist.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC: the parameters are invalid. In MCP also: the tool of a call does not exist.
pub const INVALID_PARAMS: i64 = -32602;
/// JSON-RPC: the peer failed. Also our response to a sampling request without a handler.
pub const INTERNAL_ERROR: i64 = -32603;

/// The code that most servers send for a request that arrives before `initialize`, or without a session.
pub const SERVER_ERROR: i64 = -32000;
/// Our own: a call was refused because of a rate limit. `data` has `limit`, `rate` and `retryAfterMs`.
pub const RATE_LIMITED: i64 = -32005;
/// MCP before 2026-07-28: a resource that does not exist. Later revisions use [`INVALID_PARAMS`].
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// MCP 2026-07-28: a header and the body disagree.
pub const HEADER_MISMATCH: i64 = -32020;
/// MCP 2026-07-28: the request needs a client capability that it did not declare.
pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
/// MCP 2026-07-28: the server does not speak the version that the request names.
pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
/// MCP 2025-11-25: the server requires that the user opens a URL first.
pub const URL_ELICITATION_REQUIRED: i64 = -32042;

/// Returns whether `code` is one of those that JSON-RPC leaves to servers (-32000 to -32099).
pub fn is_server_error(code: i64) -> bool {
    (-32099..=SERVER_ERROR).contains(&code)
}

/// Returns whether only a server of the stateless era sends `code`. Such a response to a probe means that the server
/// supports the era and that only the request was wrong.
pub fn is_modern(code: i64) -> bool {
    matches!(code, HEADER_MISMATCH | MISSING_CLIENT_CAPABILITY | UNSUPPORTED_PROTOCOL_VERSION)
}
