//! What kind of mistake or failure something is: the word before the colon, which is a contract.

use std::fmt;

use serde::{Serialize, Serializer};

/// The kind of an error. A rendered error is `<kind>: <message>`, and the words are those of the sources'
/// contracts (HD-060 to HD-065, HD-090, HD-092), followed by our own two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
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

impl Kind {
    /// The kind as it is printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Config => "ConfigError",
            Kind::McpConfig | Kind::MissingTransportField => "MCPConfigError",
            Kind::Validation => "ValidationError",
            Kind::Connection => "MCPConnectionError",
            Kind::Timeout => "MCPTimeoutError",
            Kind::Protocol => "MCPProtocolError",
            Kind::ToolNotFound => "MCPToolNotFoundError",
            Kind::Tool => "MCPToolError",
            Kind::OutcomeUnknown => "MCPOutcomeUnknownError",
        }
    }

    /// The kind that this one is a special case of (HD-090, HD-092).
    pub fn parent(self) -> Option<Kind> {
        match self {
            Kind::McpConfig => Some(Kind::Config),
            Kind::MissingTransportField => Some(Kind::McpConfig),
            Kind::Timeout => Some(Kind::Connection),
            Kind::Config
            | Kind::Validation
            | Kind::Connection
            | Kind::Protocol
            | Kind::ToolNotFound
            | Kind::Tool
            | Kind::OutcomeUnknown => None,
        }
    }

    /// Is this kind `other`, or a special case of it?
    pub fn is_a(self, other: Kind) -> bool {
        self == other || self.parent().is_some_and(|it| it.is_a(other))
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Kind {
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
        assert!(Kind::Timeout.is_a(Kind::Connection));
        assert!(Kind::MissingTransportField.is_a(Kind::McpConfig));
        assert!(Kind::MissingTransportField.is_a(Kind::Config));
        assert!(!Kind::Connection.is_a(Kind::Timeout));
        assert!(!Kind::Protocol.is_a(Kind::Connection));
        assert_eq!(Kind::MissingTransportField.as_str(), "MCPConfigError");
    }
}
