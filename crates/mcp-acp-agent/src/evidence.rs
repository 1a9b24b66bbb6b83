//! What was seen of a server that is not there, in the words of ACP (ACPX-03, ACPX-04).
//!
//! A pure translation: a connection's error says what happened, and where there is none, a host's failure does.

use std::sync::Arc;
use std::time::Duration;

use mcp_acp::{Failure, FailureKind};
use mcp_host::ConnectFailure;
use mcp_model::{ErrorKind, ProtocolVersion};
use mcp_transport::{ConnectError, Disconnect, DisconnectReason, RequestError, StartError};

use crate::wanted::Described;

/// A connection that did not come about, kept until its server's status is asked for.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) failure: mcp_host::HostError,
    pub(crate) error: ConnectError,
}

impl Seen {
    pub(crate) fn of(seen: ConnectFailure<'_>) -> Seen {
        Seen { failure: seen.error.clone(), error: seen.cause.clone() }
    }
}

/// Why a server is not there. `seen` is its last connection that did not come about, which may be an older one.
pub(crate) fn failure(
    server: &Described,
    failure: &mcp_host::HostError,
    seen: Option<&Seen>,
    limit: Duration,
) -> Failure {
    let kind = match seen.filter(|it| it.failure == *failure) {
        Some(seen) => of_error(&seen.error, server),
        None if failure.kind == ErrorKind::Timeout => FailureKind::TimedOut { limit, stderr: String::new() },
        None => FailureKind::ConnectionFailed { error: words(failure) },
    };
    acp_failure(server, kind)
}

/// One that has not answered when all of them should have.
pub(crate) fn late(server: &Described, limit: Duration) -> Failure {
    acp_failure(server, FailureKind::TimedOut { limit, stderr: String::new() })
}

fn acp_failure(server: &Described, kind: FailureKind) -> Failure {
    let secrets: Vec<_> = server.secrets.iter().collect();
    Failure::new(server.name.as_str(), server.transport.clone(), kind, &secrets)
}

fn words(failure: &mcp_host::HostError) -> String {
    match &failure.help {
        Some(help) => format!("{} ({help})", failure.message),
        None => failure.message.clone(),
    }
}

fn of_error(error: &ConnectError, server: &Described) -> FailureKind {
    match error {
        ConnectError::Disconnected(ended) => of_end(ended, server),
        ConnectError::TimedOut { after, disconnect: ended }
        | ConnectError::Silent { after, disconnect: ended } => {
            FailureKind::TimedOut { limit: *after, stderr: ended.evidence.stderr.join("\n") }
        }
        ConnectError::Refused(fault) => of_fault(fault),
        ConnectError::UnsupportedVersion { offered } => FailureKind::NoCommonVersion {
            expected: ProtocolVersion::LATEST.as_str().to_owned(),
            actual: offered.clone(),
        },
        // `ConnectError` may grow; what it says is told as it is.
        other => FailureKind::ConnectionFailed { error: other.to_string() },
    }
}

fn of_end(ended: &Arc<Disconnect>, server: &Described) -> FailureKind {
    let Some(command) = server.command.clone() else {
        return FailureKind::ConnectionFailed { error: ended.to_string() };
    };
    match &ended.reason {
        DisconnectReason::NotStarted(StartError::CommandNotFound) => {
            FailureKind::ExecutableNotFound { command }
        }
        DisconnectReason::NotStarted(failure) => {
            FailureKind::SpawnFailed { command, error: failure.to_string() }
        }
        DisconnectReason::PeerClosed if ended.evidence.exit.is_some() => FailureKind::Exited {
            command,
            exit_code: ended.evidence.exit.as_deref().and_then(exit_code),
            stderr: ended.evidence.stderr.join("\n"),
        },
        _ => FailureKind::ConnectionFailed { error: ended.to_string() },
    }
}

/// The number of an exit that is told in words; a signal has none.
fn exit_code(words: &str) -> Option<i32> {
    words.strip_prefix("exit status ")?.parse().ok()
}

fn of_fault(fault: &RequestError) -> FailureKind {
    let error = fault.to_string();
    match fault.status {
        Some(401 | 403) => FailureKind::AuthenticationFailed { error },
        Some(_) | None => FailureKind::ConnectionFailed { error },
    }
}
