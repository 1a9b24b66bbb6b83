//! Converts failed calls into JSON-RPC errors for the client: the server's own error, or the host's message with a
//! code.

use mcp_host_model::{ErrorKind, RawJson, RpcError, code};
use mcp_host_runtime::{HostError, RequestFailure};

use crate::protocol::json_splice;

/// Converts an error of the host. Mistakes of the client have a code of their own.
fn convert_host_error(error: &HostError) -> RpcError {
    let code = match error.kind {
        ErrorKind::ToolNotFound | ErrorKind::Validation => code::INVALID_PARAMS,
        _ => code::INTERNAL_ERROR,
    };
    let help = error.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
    RpcError::new(code, format!("{error}{help}"))
}

/// Converts a failed call into the error for a client with these capabilities.
pub(crate) fn convert_failure(failure: RequestFailure, capabilities: &RawJson) -> RpcError {
    let Some(error) = failure.rpc else { return convert_host_error(&failure.error) };
    match error.code {
        // This error of a server concerns its connection to the host, not the client's connection to the gateway.
        code::PARSE_ERROR
        | code::INVALID_REQUEST
        | code::METHOD_NOT_FOUND
        | code::HEADER_MISMATCH
        | code::UNSUPPORTED_PROTOCOL_VERSION => RpcError { code: code::INTERNAL_ERROR, ..*error },
        // A client that has the capability could not act on this error.
        code::MISSING_CLIENT_CAPABILITY if !lacks_capability(capabilities, error.data.as_ref()) => {
            RpcError { code: code::INTERNAL_ERROR, ..*error }
        }
        _ => *error,
    }
}

/// Whether the client lacks a capability that the error's `data` requires.
fn lacks_capability(capabilities: &RawJson, data: Option<&RawJson>) -> bool {
    let Some(required) = data.and_then(|data| json_splice::member(data, "requiredCapabilities")) else {
        return false;
    };
    json_splice::members(&required).iter().any(|(name, required)| {
        let Some(declared) = json_splice::member(capabilities, name) else { return true };
        json_splice::members(required).iter().any(|(name, _)| json_splice::member(&declared, name).is_none())
    })
}
