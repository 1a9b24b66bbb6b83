//! The error type of host operations.

pub(crate) mod excerpt;

use std::fmt;
use std::sync::Arc;

use mcp_host_model::{CallFailure, ErrorKind};
use mcp_host_transport::ConnectError;
use serde::Serialize;

/// The error of a host operation, or of a server that is not available. The message names the server and the operation,
/// and contains no secret.
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
    /// The error of the connection attempt, if that has failed.
    #[serde(skip)]
    pub connect_error: Option<Arc<ConnectError>>,
    /// The length of the beginning of the message that names the server and the operation.
    #[serde(skip)]
    pub(crate) context_len: usize,
}

impl HostError {
    /// Creates an error without help.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> HostError {
        let message = message.into();
        HostError { kind, message, help: None, connect_error: None, context_len: 0 }
    }

    /// Creates an error of the server with this name. The message begins with the name.
    pub fn of_server(kind: ErrorKind, server: &str, detail: impl fmt::Display) -> HostError {
        HostError::in_context(kind, &format!("server '{server}': "), &detail.to_string())
    }

    /// Creates an error whose message begins with `context`, which names the server and the operation.
    pub(crate) fn in_context(kind: ErrorKind, context: &str, detail: &str) -> HostError {
        HostError { context_len: context.len(), ..HostError::new(kind, format!("{context}{detail}")) }
    }

    /// Returns the error with `opening` counted as part of the context: the words after the name of the server, which
    /// only say what failed.
    pub(crate) fn with_opening(self, opening: &str) -> HostError {
        HostError { context_len: self.context_len + opening.len(), ..self }
    }

    /// Returns what happened, without the name of the server and the operation.
    pub fn detail(&self) -> &str {
        self.message.get(self.context_len..).unwrap_or(&self.message)
    }

    /// Returns whether the message begins with a context, which names the server.
    pub(crate) fn has_context(&self) -> bool {
        self.context_len > 0
    }

    /// Creates the error of an operation after a shutdown.
    pub(crate) fn shut_down() -> HostError {
        HostError::new(ErrorKind::Connection, "the host was shut down")
    }

    /// Converts the error. The help is appended to the message, because a call result has no field for it.
    pub(crate) fn into_call_failure(self) -> CallFailure {
        let HostError { kind, message, help, .. } = self;
        let message = match help {
            Some(help) => format!("{message} ({help})"),
            None => message,
        };
        CallFailure::new(kind, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: &HostError, message: &str, detail: &str) {
        assert_eq!((error.message.as_str(), error.detail()), (message, detail));
    }

    #[test]
    fn detail_omits_the_server_and_the_operation() {
        let kind = ErrorKind::Connection;
        let context = "server 'a' (npx): ";
        let message = "server 'a' (npx): it could not be started: no such file";
        let started = HostError::in_context(kind, context, "it could not be started: no such file");
        check(&started, message, "it could not be started: no such file");
        let mut started = started.with_opening("it could not be started: ");
        check(&started, message, "no such file");
        started.message.push_str("; it is restarted");
        check(&started, &format!("{message}; it is restarted"), "no such file; it is restarted");
        check(&HostError::of_server(kind, "a", "x"), "server 'a': x", "x");
        check(
            &HostError::new(kind, "the host was shut down"),
            "the host was shut down",
            "the host was shut down",
        );
    }
}
