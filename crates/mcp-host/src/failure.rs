//! What went wrong with a server, in words for a reader who was not there.

pub(crate) mod excerpt;

use std::fmt;

use mcp_model::{CallFailure, ErrorKind};
use serde::Serialize;

/// Why a server is not available, or a call did not succeed. Names the server and what was tried, never a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostError {
    /// The kind of failure.
    pub kind: ErrorKind,
    /// What happened.
    pub message: String,
    /// What to try, where there is something to try.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl HostError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> HostError {
        HostError { kind, message: message.into(), help: None }
    }

    /// The same, where a call's result has room for it: the help stands behind the message.
    pub(crate) fn into_call_failure(self) -> CallFailure {
        let HostError { kind, message, help } = self;
        let message = match help {
            Some(help) => format!("{message} ({help})"),
            None => message,
        };
        CallFailure { kind, message }
    }
}

impl fmt::Display for HostError {
    /// `<kind>: <message>`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

impl std::error::Error for HostError {}
