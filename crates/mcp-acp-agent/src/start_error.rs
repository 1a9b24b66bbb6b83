//! Conversion of a host's connection errors into ACP's start errors (ACPX-03, ACPX-04).
//!
//! Pure. A connection error has the evidence; without one, the host's error is used.

use std::sync::Arc;
use std::time::Duration;

use mcp_acp::{ServerStartError, ServerStartErrorKind};
use mcp_host::ConnectFailure;
use mcp_model::{ErrorKind, ProtocolVersion};
use mcp_transport::{ConnectError, Disconnect, DisconnectReason, RequestError, StartError};

use crate::servers::ServerDescription;

/// A recorded connection error, for the server's status.
#[derive(Clone)]
pub(crate) struct RecordedConnectError {
    pub(crate) failure: mcp_host::HostError,
    pub(crate) error: ConnectError,
}

impl RecordedConnectError {
    pub(crate) fn of(seen: ConnectFailure<'_>) -> RecordedConnectError {
        RecordedConnectError { failure: seen.error.clone(), error: seen.cause.clone() }
    }
}

/// Returns why a server is not connected. `seen` is its last recorded connection error, which may be older.
pub(crate) fn start_error(
    server: &ServerDescription,
    failure: &mcp_host::HostError,
    seen: Option<&RecordedConnectError>,
    limit: Duration,
) -> ServerStartError {
    let kind = match seen.filter(|it| it.failure == *failure) {
        Some(seen) => error_kind(&seen.error, server),
        None if failure.kind == ErrorKind::Timeout => {
            ServerStartErrorKind::TimedOut { limit, stderr: String::new() }
        }
        None => ServerStartErrorKind::ConnectionFailed { error: failure_text(failure) },
    };
    acp_failure(server, kind)
}

/// The error of a server that has not connected within the total timeout.
pub(crate) fn startup_timeout(server: &ServerDescription, limit: Duration) -> ServerStartError {
    acp_failure(server, ServerStartErrorKind::TimedOut { limit, stderr: String::new() })
}

fn acp_failure(server: &ServerDescription, kind: ServerStartErrorKind) -> ServerStartError {
    let secrets: Vec<_> = server.secrets.iter().collect();
    ServerStartError::new(server.name.as_str(), server.transport.clone(), kind, &secrets)
}

fn failure_text(failure: &mcp_host::HostError) -> String {
    match &failure.help {
        Some(help) => format!("{} ({help})", failure.message),
        None => failure.message.clone(),
    }
}

fn error_kind(error: &ConnectError, server: &ServerDescription) -> ServerStartErrorKind {
    match error {
        ConnectError::Disconnected(ended) => end_kind(ended, server),
        ConnectError::TimedOut { after, disconnect: ended }
        | ConnectError::Silent { after, disconnect: ended } => {
            ServerStartErrorKind::TimedOut { limit: *after, stderr: ended.evidence.stderr.join("\n") }
        }
        ConnectError::Refused(fault) => fault_kind(fault),
        ConnectError::UnsupportedVersion { offered } => ServerStartErrorKind::NoCommonVersion {
            expected: ProtocolVersion::LATEST.as_str().to_owned(),
            actual: offered.clone(),
        },
        // `ConnectError` is non-exhaustive; other variants use their message.
        other => ServerStartErrorKind::ConnectionFailed { error: other.to_string() },
    }
}

fn end_kind(ended: &Arc<Disconnect>, server: &ServerDescription) -> ServerStartErrorKind {
    let Some(command) = server.command.clone() else {
        return ServerStartErrorKind::ConnectionFailed { error: ended.to_string() };
    };
    match &ended.reason {
        DisconnectReason::NotStarted(StartError::CommandNotFound) => {
            ServerStartErrorKind::ExecutableNotFound { command }
        }
        DisconnectReason::NotStarted(failure) => {
            ServerStartErrorKind::SpawnFailed { command, error: failure.to_string() }
        }
        DisconnectReason::PeerClosed if ended.evidence.exit.is_some() => ServerStartErrorKind::Exited {
            command,
            exit_code: ended.evidence.exit.as_deref().and_then(exit_code),
            stderr: ended.evidence.stderr.join("\n"),
        },
        _ => ServerStartErrorKind::ConnectionFailed { error: ended.to_string() },
    }
}

/// Parses an exit code from its text; a signal has none.
fn exit_code(words: &str) -> Option<i32> {
    words.strip_prefix("exit status ")?.parse().ok()
}

fn fault_kind(fault: &RequestError) -> ServerStartErrorKind {
    let error = fault.to_string();
    match fault.status {
        Some(401 | 403) => ServerStartErrorKind::AuthenticationFailed { error },
        Some(_) | None => ServerStartErrorKind::ConnectionFailed { error },
    }
}
