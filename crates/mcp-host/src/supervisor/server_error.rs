//! Errors of requests to a server, with its name and label.

use mcp_host_config::ResolvedServer;
use mcp_host_model::ErrorKind;
use mcp_host_transport::CallError;

use crate::error::HostError;
use crate::error::excerpt::excerpt;

/// Creates the error of a failed request.
pub(crate) fn call_error(server: &ResolvedServer, error: &CallError) -> HostError {
    let is_unauthorized = matches!(error, CallError::Refused(refused) if refused.status() == Some(401));
    let has_own_help = is_unauthorized && server.endpoint.is_per_user();
    let help = if has_own_help { None } else { error.help() };
    HostError { help, ..server_error(server, error.kind(), error).with_opening(error.message_opening()) }
}

/// Creates an error with the server's name and label. Text from the server is shortened.
pub(crate) fn server_error(
    server: &ResolvedServer,
    kind: ErrorKind,
    message: impl std::fmt::Display,
) -> HostError {
    let context = format!("server '{}' ({}): ", server.spec.id, server.endpoint.label());
    HostError::in_context(kind, &context, &excerpt(message.to_string()))
}
