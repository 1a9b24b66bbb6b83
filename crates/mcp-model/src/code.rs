//! Every number that JSON-RPC and MCP give a meaning to. No other file of the workspace writes one.

/// JSON-RPC: the text is no JSON.
pub const PARSE_ERROR: i64 = -32700;
/// JSON-RPC: the JSON is no request.
pub const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC: there is no such method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC: the parameters are wrong. MCP also answers a call of an unknown tool with it.
pub const INVALID_PARAMS: i64 = -32602;
/// JSON-RPC: the peer failed. We answer a sampling request that nobody handles with it.
pub const INTERNAL_ERROR: i64 = -32603;

/// What servers commonly answer when a request comes before, or without, a session.
pub const SERVER_ERROR: i64 = -32000;
/// MCP before 2026-07-28: a resource that does not exist. Later revisions use [`INVALID_PARAMS`].
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// MCP 2026-07-28: a header and the body disagree.
pub const HEADER_MISMATCH: i64 = -32020;
/// MCP 2026-07-28: the request needs a client capability that it did not declare.
pub const MISSING_CLIENT_CAPABILITY: i64 = -32021;
/// MCP 2026-07-28: the server does not speak the version that the request names.
pub const UNSUPPORTED_PROTOCOL_VERSION: i64 = -32022;
/// MCP 2025-11-25: the server wants the user to open a URL first.
pub const URL_ELICITATION_REQUIRED: i64 = -32042;

/// Is `code` one that only a server of the stateless era sends? Such an answer to a probe means that the server
/// speaks the era, and that only the request was wrong.
pub fn is_modern(code: i64) -> bool {
    matches!(code, HEADER_MISMATCH | MISSING_CLIENT_CAPABILITY | UNSUPPORTED_PROTOCOL_VERSION)
}
