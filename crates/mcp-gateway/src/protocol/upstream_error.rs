//! The JSON-RPC errors for failed calls: the server's own error, or the host's message with a code.

use mcp_host::{HostError, RequestError};
use mcp_model::{ErrorKind, RawJson, RpcError, code};

use crate::protocol::json_splice;

/// The error for a failure of the host. Mistakes of the client have a code of their own.
pub(crate) fn call_error(failure: &HostError) -> RpcError {
    let code = match failure.kind {
        ErrorKind::ToolNotFound | ErrorKind::Validation => code::INVALID_PARAMS,
        ErrorKind::Config
        | ErrorKind::McpConfig
        | ErrorKind::MissingTransportField
        | ErrorKind::Connection
        | ErrorKind::Timeout
        | ErrorKind::Protocol
        | ErrorKind::Tool
        | ErrorKind::OutcomeUnknown => code::INTERNAL_ERROR,
    };
    let message = match &failure.help {
        Some(help) => format!("{failure} ({help})"),
        None => failure.to_string(),
    };
    RpcError::new(code, message)
}

/// The error for a call that a server refused.
pub(crate) fn server_error(request_error: RequestError, capabilities: &RawJson) -> RpcError {
    let RequestError { error: host_error, rpc, server: _ } = request_error;
    let Some(error) = rpc else { return call_error(&host_error) };
    match error.code {
        // This error of a server concerns its connection to the host, not the client's connection to the gateway.
        code::PARSE_ERROR
        | code::INVALID_REQUEST
        | code::METHOD_NOT_FOUND
        | code::HEADER_MISMATCH
        | code::UNSUPPORTED_PROTOCOL_VERSION => RpcError { code: code::INTERNAL_ERROR, ..*error },
        // A client that has the capability could not act on this error.
        code::MISSING_CLIENT_CAPABILITY if !lacks(capabilities, error.data.as_ref()) => {
            RpcError { code: code::INTERNAL_ERROR, ..*error }
        }
        _ => *error,
    }
}

/// Whether the client lacks a capability that the error's `data` requires.
fn lacks(capabilities: &RawJson, data: Option<&RawJson>) -> bool {
    let required = data.map(json_splice::members).unwrap_or_default();
    let required = required.iter().find(|(key, _)| key == "requiredCapabilities");
    let Some((_, required)) = required else { return false };
    let (has, required) = (json_splice::members(capabilities), json_splice::members(required));
    required.iter().any(|(key, wanted)| match has.iter().find(|(name, _)| name == key) {
        None => true,
        Some((_, has)) => {
            let has = json_splice::members(has);
            json_splice::members(wanted).iter().any(|(key, _)| has.iter().all(|(name, _)| name != key))
        }
    })
}
