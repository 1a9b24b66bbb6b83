//! Error kinds and severities. Their printed names are part of the public contract.

use std::fmt;

use serde::{Serialize, Serializer};

/// The kind of an error. A rendered error is `<kind>: <message>`. The printed names are those of the configuration
/// contract of HoloDeck, a program for agents (HD-060 to HD-065, HD-090, HD-092).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// `ConfigError`: the configuration as a whole, or its environment, is invalid.
    Config,
    /// `MCPConfigError`: the entry of an MCP server is invalid.
    McpConfig,
    /// A field that the transport requires is missing; printed as `MCPConfigError`.
    MissingTransportField,
    /// `ValidationError`: a key is missing, unknown or duplicated, or a value is empty or of the wrong type.
    Validation,
    /// `MCPConnectionError`: the server could not be reached, or the connection was lost.
    Connection,
    /// The server was replaced or stopped after the pinned generation of the call; printed as `MCPConnectionError`.
    Replaced,
    /// `MCPTimeoutError`: the server did not respond in time.
    Timeout,
    /// `MCPProtocolError`: the server responded with an error, or with something that is not MCP.
    Protocol,
    /// `MCPToolNotFoundError`: the tool does not exist.
    ToolNotFound,
    /// `MCPToolError`: the tool ran and reported a failure (`isError`).
    Tool,
    /// `MCPOutcomeUnknownError`: the response was lost; the call may or may not have run.
    OutcomeUnknown,
    /// `MCPCallRefusedError`: a rule for calls, or the user who was asked, refused the call; nothing was sent.
    CallRefused,
}

impl ErrorKind {
    /// Returns the printed name.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::Config => "ConfigError",
            ErrorKind::McpConfig | ErrorKind::MissingTransportField => "MCPConfigError",
            ErrorKind::Validation => "ValidationError",
            ErrorKind::Connection | ErrorKind::Replaced => "MCPConnectionError",
            ErrorKind::Timeout => "MCPTimeoutError",
            ErrorKind::Protocol => "MCPProtocolError",
            ErrorKind::ToolNotFound => "MCPToolNotFoundError",
            ErrorKind::Tool => "MCPToolError",
            ErrorKind::OutcomeUnknown => "MCPOutcomeUnknownError",
            ErrorKind::CallRefused => "MCPCallRefusedError",
        }
    }

    /// Returns the more general kind, if there is one (HD-090, HD-092).
    pub fn parent(self) -> Option<ErrorKind> {
        match self {
            ErrorKind::McpConfig => Some(ErrorKind::Config),
            ErrorKind::MissingTransportField => Some(ErrorKind::McpConfig),
            ErrorKind::Timeout | ErrorKind::Replaced => Some(ErrorKind::Connection),
            ErrorKind::Config
            | ErrorKind::Validation
            | ErrorKind::Connection
            | ErrorKind::Protocol
            | ErrorKind::ToolNotFound
            | ErrorKind::Tool
            | ErrorKind::OutcomeUnknown
            | ErrorKind::CallRefused => None,
        }
    }

    /// Returns whether this kind is `other` or a special case of it.
    pub fn is_a(self, other: ErrorKind) -> bool {
        self == other || self.parent().is_some_and(|parent| parent.is_a(other))
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for ErrorKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The severity of a diagnostic or a problem, worst first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, strum::IntoStaticStr, strum::Display,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[expect(
    clippy::exhaustive_enums,
    reason = "renderers and exit codes decide on each, so that none is forgotten"
)]
pub enum Severity {
    /// Something does not work.
    Error,
    /// Something works, but perhaps not as intended.
    Warning,
    /// Information.
    Info,
}

impl Severity {
    /// Returns `error`, `warning` or `info`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hd_090_hd_092_error_kinds_form_a_tree() {
        assert!(ErrorKind::Timeout.is_a(ErrorKind::Connection));
        assert!(ErrorKind::MissingTransportField.is_a(ErrorKind::McpConfig));
        assert!(ErrorKind::MissingTransportField.is_a(ErrorKind::Config));
        assert!(!ErrorKind::Connection.is_a(ErrorKind::Timeout));
        assert!(!ErrorKind::Protocol.is_a(ErrorKind::Connection));
        assert_eq!(ErrorKind::MissingTransportField.as_str(), "MCPConfigError");
    }
}
