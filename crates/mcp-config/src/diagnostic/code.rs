//! Diagnostic codes. A code never changes its meaning; a new kind of mistake gets a new number.

use mcp_host_model::{ErrorKind, Severity};
use serde::{Serialize, Serializer};

/// Defines [`Code`] by a table: the doc of a code, its name, its number, and its error kind.
macro_rules! codes {
    ($($(#[doc = $doc:literal])* $name:ident = $number:literal $kind:ident,)*) => {
        /// Identifies the kind of mistake.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, derive_more::Display)]
        #[display("{}", self.as_str())]
        #[non_exhaustive]
        pub enum Code { $($(#[doc = $doc])* $name,)* }

        impl Code {
            /// Every code, in order.
            pub const ALL: &'static [Code] = &[$(Code::$name),*];

            /// The printed form: `MCP0001`.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => concat!("MCP", $number),)* }
            }

            /// The error kind of diagnostics with this code.
            pub fn kind(self) -> ErrorKind {
                match self { $(Code::$name => ErrorKind::$kind,)* }
            }
        }
    };
}

codes! {
    /// The file is not well-formed YAML, JSON or TOML.
    Syntax = "0001" Config,
    /// A mapping has the same key twice.
    DuplicateKey = "0002" Validation,
    /// The file exceeds a size limit.
    TooLarge = "0003" Config,
    /// The file holds more than one document.
    ManyDocuments = "0004" Config,
    /// A YAML tag is not supported.
    UnknownTag = "0005" Config,
    /// A key is not a string.
    BadKey = "0006" Validation,
    /// A value has the wrong type.
    WrongType = "0007" Validation,
    /// A key is missing.
    MissingKey = "0008" Validation,
    /// A value is empty.
    EmptyValue = "0009" Validation,
    /// A key is unknown.
    UnknownKey = "0010" Validation,
    /// A value is not one of the allowed words.
    UnknownWord = "0011" McpConfig,
    /// A number is too small or too large.
    OutOfRange = "0012" Validation,
    /// Two keys exclude each other.
    Exclusive = "0013" Validation,
    /// A server's name is invalid.
    InvalidName = "0014" Validation,
    /// Two servers, or two tools of an agent, have the same name.
    DuplicateName = "0015" Validation,
    /// A command is not allowed.
    InvalidCommand = "0016" McpConfig,
    /// A stdio server has no command.
    MissingCommand = "0017" MissingTransportField,
    /// A server with a URL transport has no URL.
    MissingUrl = "0018" MissingTransportField,
    /// A URL has a scheme that its transport does not allow.
    UrlScheme = "0019" McpConfig,
    /// A URL is invalid.
    InvalidUrl = "0020" McpConfig,
    /// A field conflicts with the chosen transport.
    ForeignField = "0021" McpConfig,
    /// A field has no effect with the chosen transport.
    NoEffect = "0022" McpConfig,
    /// A variable is used in a field without variables.
    VariableNotAllowed = "0023" McpConfig,
    /// An encoding is unknown or not supported.
    UnknownEncoding = "0024" McpConfig,
    /// A header's name or value cannot be sent.
    InvalidHeader = "0025" McpConfig,
    /// A process cannot receive the name or value of an environment variable, or an argument.
    InvalidProcessText = "0026" McpConfig,
    /// `server` is empty.
    EmptyServer = "0027" Validation,
    /// An item uses a deprecated form.
    Legacy = "0028" McpConfig,
    /// A duration looks like milliseconds.
    SuspiciousUnit = "0029" McpConfig,
    /// A WebSocket URL to another machine is not encrypted.
    PlainWebSocket = "0030" McpConfig,
    /// `version` is missing or not supported.
    UnsupportedVersion = "0031" Config,
    /// An entry of `transform` is invalid.
    InvalidTransform = "0032" McpConfig,
    /// A `sessionId` is empty.
    EmptySession = "0033" McpConfig,
    /// An environment variable is not set.
    MissingVariable = "0034" Config,
    /// An env file cannot be read.
    UnreadableEnvFile = "0035" Config,
    /// The file has no MCP servers.
    NoServers = "0036" Config,
    /// An entry has nothing to start.
    NothingToStart = "0037" McpConfig,
    /// A command is a whole command line.
    CommandLine = "0038" McpConfig,
    /// An input has no value, or is not declared.
    MissingInput = "0039" Config,
    /// A reference that looks like a variable is not replaced.
    UnknownReference = "0040" McpConfig,
    /// A list has the same variable or header twice.
    RepeatedName = "0041" McpConfig,
    /// A path must be absolute.
    RelativePath = "0042" McpConfig,
    /// A transport is a protocol extension.
    Extension = "0043" McpConfig,
    /// A value begins or ends with whitespace that counts.
    SurroundingBlank = "0044" McpConfig,
    /// A server is disabled by a list of the file, or by a key that the program of the file ignores.
    DisabledServer = "0045" McpConfig,
    /// A secret is not stored, or its text would be visible.
    Secret = "0046" Config,
}

impl Code {
    /// The code with this printed form.
    pub fn parse(text: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|it| it.as_str().eq_ignore_ascii_case(text))
    }

    /// The usual severity of a code. A profile may reduce it.
    pub(crate) fn severity(self) -> Severity {
        let warnings =
            [Code::NoEffect, Code::Legacy, Code::SuspiciousUnit, Code::PlainWebSocket, Code::EmptySession];
        if warnings.contains(&self) { Severity::Warning } else { Severity::Error }
    }

    /// Returns whether an error with this code rejects the whole file, wherever it occurs (DM-121).
    pub(crate) fn rejects_file(self) -> bool {
        matches!(
            self,
            Code::Syntax
                | Code::DuplicateKey
                | Code::TooLarge
                | Code::ManyDocuments
                | Code::UnsupportedVersion
        )
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_order_without_gaps_and_each_is_explained() {
        for (index, code) in Code::ALL.iter().enumerate() {
            assert_eq!(code.as_str(), format!("MCP{:04}", index + 1));
            assert_eq!(Code::parse(code.as_str()), Some(*code));
            let text = code.explain();
            assert!(text.contains("```"), "{code} has no example");
            assert!(text.len() > 120, "{code} says too little");
        }
        assert_eq!(Code::parse("MCP9999"), None);
    }
}
