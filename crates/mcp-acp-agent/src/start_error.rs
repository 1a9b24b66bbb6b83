//! Conversion of a host's connection errors into ACP's start errors (ACPX-03, ACPX-04).
//!
//! Pure. A connection error has the evidence; without one, the host's error is used.

use std::time::Duration;

use mcp_host_acp::{ServerStartError, ServerStartErrorKind};
use mcp_host_model::{ErrorKind, ProtocolVersion};
use mcp_host_runtime::HostError;
use mcp_host_transport::{ConnectError, Disconnect, DisconnectReason, StartError};

use crate::servers::ServerDescription;

/// Facts about a failed server besides its current error.
pub(crate) struct FailureContext {
    /// The reason why the last login failed, if it failed.
    pub(crate) login_failure: Option<String>,
    /// Its startup timeout.
    pub(crate) timeout: Duration,
}

/// Converts the host's error of a server.
pub(crate) fn start_error(
    server: &ServerDescription,
    error: &HostError,
    context: FailureContext,
) -> ServerStartError {
    let FailureContext { login_failure, timeout } = context;
    let kind = match &error.connect_error {
        Some(cause) => connect_error_kind(cause, server),
        None if error.kind == ErrorKind::Timeout => timed_out_kind(timeout),
        None => {
            let help = error.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
            ServerStartErrorKind::ConnectionFailed { error: format!("{}{help}", error.detail()) }
        }
    };
    let kind = match (kind, login_failure) {
        // Connections time out while they wait for a login.
        (
            ServerStartErrorKind::AuthenticationFailed { .. } | ServerStartErrorKind::TimedOut { .. },
            Some(error),
        ) => ServerStartErrorKind::LoginFailed { error },
        (kind, _) => kind,
    };
    redacted_error(server, kind)
}

/// The error of a server that has not connected within the total timeout.
pub(crate) fn startup_timeout(server: &ServerDescription, timeout: Duration) -> ServerStartError {
    redacted_error(server, timed_out_kind(timeout))
}

fn timed_out_kind(limit: Duration) -> ServerStartErrorKind {
    ServerStartErrorKind::TimedOut { limit, stderr: String::new() }
}

/// Creates an error without the secrets of the server.
fn redacted_error(server: &ServerDescription, kind: ServerStartErrorKind) -> ServerStartError {
    let secrets: Vec<_> = server.secrets.iter().collect();
    ServerStartError::new(server.name.as_str(), server.transport.clone(), kind, &secrets)
}

/// Converts a failed connection.
fn connect_error_kind(error: &ConnectError, server: &ServerDescription) -> ServerStartErrorKind {
    match error {
        ConnectError::Disconnected(disconnect) => disconnect_kind(disconnect, server),
        ConnectError::TimedOut { after, disconnect } | ConnectError::Silent { after, disconnect } => {
            ServerStartErrorKind::TimedOut { limit: *after, stderr: disconnect.evidence.stderr.join("\n") }
        }
        ConnectError::Refused(refused) => match refused.status() {
            Some(401 | 403) => ServerStartErrorKind::AuthenticationFailed { error: refused.to_string() },
            Some(_) | None => ServerStartErrorKind::ConnectionFailed { error: refused.to_string() },
        },
        ConnectError::UnsupportedVersion { offered } => ServerStartErrorKind::NoCommonVersion {
            expected: ProtocolVersion::LATEST.as_str().to_owned(),
            actual: offered.clone(),
        },
        // `ConnectError` is non-exhaustive; other variants use their message.
        other => ServerStartErrorKind::ConnectionFailed { error: other.to_string() },
    }
}

/// Converts a connection that ended before its handshake was done.
fn disconnect_kind(disconnect: &Disconnect, server: &ServerDescription) -> ServerStartErrorKind {
    let Disconnect { reason, evidence, .. } = disconnect;
    match (reason, evidence.exit, server.command.clone()) {
        (DisconnectReason::NotStarted(StartError::CommandNotFound), _, Some(command)) => {
            ServerStartErrorKind::ExecutableNotFound { command }
        }
        (DisconnectReason::NotStarted(error), _, Some(command)) => {
            ServerStartErrorKind::SpawnFailed { command, error: error.to_string() }
        }
        (DisconnectReason::PeerClosed, Some(exit), Some(command)) => ServerStartErrorKind::Exited {
            command,
            exit_code: exit.code(),
            stderr: evidence.stderr.join("\n"),
        },
        _ => ServerStartErrorKind::ConnectionFailed { error: disconnect.to_string() },
    }
}
