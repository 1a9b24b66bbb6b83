//! How the host's failures are told to a client: the server's own error as it came, else the host's words under a number.

use mcp_host::{Failure, Unanswered};
use mcp_model::{Kind, RpcError, code};

/// A failure of the host's as JSON-RPC has it: what the client did wrong is told as such.
pub(crate) fn rpc_error(failure: &Failure) -> RpcError {
    let code = match failure.kind {
        Kind::ToolNotFound | Kind::Validation => code::INVALID_PARAMS,
        Kind::Config
        | Kind::McpConfig
        | Kind::MissingTransportField
        | Kind::Connection
        | Kind::Timeout
        | Kind::Protocol
        | Kind::Tool
        | Kind::OutcomeUnknown => code::INTERNAL_ERROR,
    };
    let message = match &failure.help {
        Some(help) => format!("{failure} ({help})"),
        None => failure.to_string(),
    };
    RpcError::new(code, message)
}

/// What the client is told where there is no result.
pub(crate) fn refused(unanswered: Unanswered) -> RpcError {
    let Unanswered { failure, rpc, server: _ } = unanswered;
    let Some(error) = rpc else { return rpc_error(&failure) };
    match error.code {
        // What one server says of its own wire is nothing that the client should think of this one.
        code::PARSE_ERROR
        | code::INVALID_REQUEST
        | code::METHOD_NOT_FOUND
        | code::HEADER_MISMATCH
        | code::UNSUPPORTED_PROTOCOL_VERSION => RpcError { code: code::INTERNAL_ERROR, ..*error },
        _ => *error,
    }
}
