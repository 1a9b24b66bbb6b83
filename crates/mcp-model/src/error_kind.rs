//! What kind of mistake or failure something is: the word before the colon, which is a contract.

use std::fmt;

use serde::{Serialize, Serializer};

/// The kind of an error. A rendered error is `<kind>: <message>`, and the words are those of the sources'
/// contracts (HD-060 to HD-065, HD-090, HD-092), followed by our own two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// `ConfigError`: the configuration as a whole, or its environment, is wrong.
    Config,
    /// `MCPConfigError`: what was written about an MCP server is wrong.
    McpConfig,
    /// A field that the chosen transport needs is missing; renders as `MCPConfigError`.
    MissingTransportField,
    /// `ValidationError`: a key is missing, unknown or given twice, a value has the wrong type or is empty.
    Validation,
    /// `MCPConnectionError`: the server could not be reached, or was lost.
    Connection,
    /// `MCPTimeoutError`: the server did not answer in time.
    Timeout,
    /// `MCPProtocolError`: the server answered with an error, or with something that is no MCP.
    Protocol,
    /// `MCPToolNotFoundError`: there is no such tool.
    ToolNotFound,
    /// `MCPToolError`: the tool ran and said that it failed (`isError`).
    Tool,
    /// `MCPOutcomeUnknownError`: the answer was lost, and the call may or may not have run.
    OutcomeUnknown,
}

impl ErrorKind {
    /// The kind as it is printed.
    pub fn as_str(self) -> &'static str {
        match self {
            ErrorKind::Config => "ConfigError",
            ErrorKind::McpConfig | ErrorKind::MissingTransportField => "MCPConfigError",
            ErrorKind::Validation => "ValidationError",
            ErrorKind::Connection => "MCPConnectionError",
            ErrorKind::Timeout => "MCPTimeoutError",
            ErrorKind::Protocol => "MCPProtocolError",
            ErrorKind::ToolNotFound => "MCPToolNotFoundError",
            ErrorKind::Tool => "MCPToolError",
            ErrorKind::OutcomeUnknown => "MCPOutcomeUnknownError",
        }
    }

    /// The kind that this one is a special case of (HD-090, HD-092).
    pub fn parent(self) -> Option<ErrorKind> {
        match self {
            ErrorKind::McpConfig => Some(ErrorKind::Config),
            ErrorKind::MissingTransportField => Some(ErrorKind::McpConfig),
            ErrorKind::Timeout => Some(ErrorKind::Connection),
            ErrorKind::Config
            | ErrorKind::Validation
            | ErrorKind::Connection
            | ErrorKind::Protocol
            | ErrorKind::ToolNotFound
            | ErrorKind::Tool
            | ErrorKind::OutcomeUnknown => None,
        }
    }

    /// Is this kind `other`, or a special case of it?
    pub fn is_a(self, other: ErrorKind) -> bool {
        self == other || self.parent().is_some_and(|it| it.is_a(other))
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

/// How bad something is, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Something does not work.
    Error,
    /// Something works, but perhaps not as meant.
    Warning,
    /// Worth knowing.
    Info,
}

impl Severity {
    /// `error`, `warning` or `info`.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Severity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hd_090_hd_092_kinds_form_the_data_models_tree() {
        assert!(ErrorKind::Timeout.is_a(ErrorKind::Connection));
        assert!(ErrorKind::MissingTransportField.is_a(ErrorKind::McpConfig));
        assert!(ErrorKind::MissingTransportField.is_a(ErrorKind::Config));
        assert!(!ErrorKind::Connection.is_a(ErrorKind::Timeout));
        assert!(!ErrorKind::Protocol.is_a(ErrorKind::Connection));
        assert_eq!(ErrorKind::MissingTransportField.as_str(), "MCPConfigError");
    }
}
