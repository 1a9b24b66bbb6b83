//! What was seen of a server that is not there, in the words of ACP (ACPX-03, ACPX-04).
//!
//! A pure translation: a connection's error says what happened, and where there is none, a host's failure does.

use std::sync::Arc;
use std::time::Duration;

use mcp_acp::{ServerStartError, ServerStartErrorKind};
use mcp_host::ConnectFailure;
use mcp_model::{ErrorKind, ProtocolVersion};
use mcp_transport::{ConnectError, Disconnect, DisconnectReason, RequestError, StartError};

use crate::servers::ServerDescription;

/// A connection that did not come about, kept until its server's status is asked for.
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

/// Why a server is not there. `seen` is its last connection that did not come about, which may be an older one.
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

/// One that has not answered when all of them should have.
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
        // `ConnectError` may grow; what it says is told as it is.
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

/// The number of an exit that is told in words; a signal has none.
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
