//! The error type of host operations.

pub(crate) mod excerpt;

use mcp_host_model::{CallFailure, ErrorKind};
use serde::Serialize;

/// Why a server is not available or an operation failed. The message names the server and the operation, and contains
/// no secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{kind}: {message}")]
#[non_exhaustive]
pub struct HostError {
    /// The kind of error.
    pub kind: ErrorKind,
    /// What happened.
    pub message: String,
    /// What to do, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl HostError {
    /// Creates an error without help.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> HostError {
        HostError { kind, message: message.into(), help: None }
    }

    /// The error after a shutdown.
    pub(crate) fn shut_down() -> HostError {
        HostError::new(ErrorKind::Connection, "the host was shut down")
    }

    /// Appends the help to the message, because a call result has no field for it.
    pub(crate) fn into_call_failure(self) -> CallFailure {
        let HostError { kind, message, help } = self;
        let message = match help {
            Some(help) => format!("{message} ({help})"),
            None => message,
        };
        CallFailure::new(kind, message)
    }
}
