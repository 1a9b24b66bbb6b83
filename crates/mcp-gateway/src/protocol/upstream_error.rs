//! How the host's failures are told to a client: the server's own error as it came, else the host's words under a number.

use mcp_host::{HostError, RequestError};
use mcp_model::{ErrorKind, RawJson, RpcError, code};

use crate::protocol::json_splice;

/// A failure of the host's as JSON-RPC has it: what the client did wrong is told as such.
pub(crate) fn rpc_error(failure: &HostError) -> RpcError {
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

/// What a client that can do this is told where there is no result.
pub(crate) fn refused(unanswered: RequestError, capabilities: &RawJson) -> RpcError {
    let RequestError { error: failure, rpc, server: _ } = unanswered;
    let Some(error) = rpc else { return rpc_error(&failure) };
    match error.code {
        // What one server says of its own wire is nothing that the client should think of this one.
        code::PARSE_ERROR
        | code::INVALID_REQUEST
        | code::METHOD_NOT_FOUND
        | code::HEADER_MISMATCH
        | code::UNSUPPORTED_PROTOCOL_VERSION => RpcError { code: code::INTERNAL_ERROR, ..*error },
        // Who can do what is missed would look for the fault in vain.
        code::MISSING_CLIENT_CAPABILITY if !lacks(capabilities, error.data.as_ref()) => {
            RpcError { code: code::INTERNAL_ERROR, ..*error }
        }
        _ => *error,
    }
}

/// Is there one that is required, by the `data` of an error, and not among these?
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
