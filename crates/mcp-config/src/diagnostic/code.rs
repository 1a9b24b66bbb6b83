//! The numbers of our diagnostics. A number keeps its meaning for ever; a new mistake gets a new number.

use std::fmt;

use mcp_model::{ErrorKind, Severity};
use serde::{Serialize, Serializer};

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $name:ident = $number:literal $kind:ident,)*) => {
        /// Which mistake a diagnostic is about.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code { $($(#[doc = $doc])* $name,)* }

        impl Code {
            /// Every code there is, in order.
            pub const ALL: &'static [Code] = &[$(Code::$name),*];

            /// The code as it is printed: `MCP0001`.
            pub fn as_str(self) -> &'static str {
                match self { $(Code::$name => concat!("MCP", $number),)* }
            }

            /// The kind of every diagnostic with this code.
            pub fn kind(self) -> ErrorKind {
                match self { $(Code::$name => ErrorKind::$kind,)* }
            }
        }
    };
}

codes! {
    /// The file is no well-formed YAML or JSON.
    Syntax = "0001" Config,
    /// A key stands twice in one mapping.
    DuplicateKey = "0002" Validation,
    /// The file is larger, deeper or fuller than we read.
    TooLarge = "0003" Config,
    /// The file holds more than one document.
    ManyDocuments = "0004" Config,
    /// A YAML tag has no meaning here.
    UnknownTag = "0005" Config,
    /// A key is no text.
    BadKey = "0006" Validation,
    /// A value has the wrong type.
    WrongType = "0007" Validation,
    /// A key is missing.
    MissingKey = "0008" Validation,
    /// A value is empty.
    EmptyValue = "0009" Validation,
    /// A key is unknown.
    UnknownKey = "0010" Validation,
    /// A value is none of the words that may stand there.
    UnknownWord = "0011" McpConfig,
    /// A number is too small or too large.
    OutOfRange = "0012" Validation,
    /// Two keys exclude each other.
    Exclusive = "0013" Validation,
    /// A server's name is no name.
    InvalidName = "0014" Validation,
    /// Two servers, or two tools of an agent, have the same name.
    DuplicateName = "0015" Validation,
    /// A command is not among those allowed.
    InvalidCommand = "0016" McpConfig,
    /// A stdio server has no command.
    MissingCommand = "0017" MissingTransportField,
    /// A server behind a URL has no URL.
    MissingUrl = "0018" MissingTransportField,
    /// A URL has a scheme that its transport does not allow.
    UrlScheme = "0019" McpConfig,
    /// A URL is no URL.
    InvalidUrl = "0020" McpConfig,
    /// A field excludes the chosen transport.
    ForeignField = "0021" McpConfig,
    /// A field has no effect with the chosen transport.
    NoEffect = "0022" McpConfig,
    /// A variable stands where none is replaced.
    VariableNotAllowed = "0023" McpConfig,
    /// An encoding is unknown.
    UnknownEncoding = "0024" McpConfig,
    /// A header's name or value cannot be sent.
    InvalidHeader = "0025" McpConfig,
    /// A variable's name or value, or an argument, cannot be handed to a process.
    InvalidEnvironment = "0026" McpConfig,
    /// `server` is empty.
    EmptyServer = "0027" Validation,
    /// An item is written in the old form.
    Legacy = "0028" McpConfig,
    /// A duration looks like milliseconds.
    SuspiciousUnit = "0029" McpConfig,
    /// A WebSocket URL is neither encrypted nor local.
    PlainWebSocket = "0030" McpConfig,
    /// `version` is missing or not one we know.
    UnsupportedVersion = "0031" Config,
    /// An entry of `transform` is none.
    InvalidTransform = "0032" McpConfig,
    /// A `sessionId` is empty.
    EmptySession = "0033" McpConfig,
    /// A variable of the environment is not set.
    MissingVariable = "0034" Config,
    /// An env file cannot be read.
    UnreadableEnvFile = "0035" Config,
    /// The file holds no MCP servers.
    NoServers = "0036" Config,
    /// An entry holds nothing that could be started.
    NothingToStart = "0037" McpConfig,
    /// A command is a whole line.
    CommandLine = "0038" McpConfig,
    /// An input has no value, or is not declared.
    MissingInput = "0039" Config,
    /// What looks like a variable stays as it is.
    UnknownReference = "0040" McpConfig,
    /// A variable or a header stands twice in a list.
    RepeatedName = "0041" McpConfig,
    /// A path must be absolute.
    RelativePath = "0042" McpConfig,
    /// A transport is an extension of the protocol.
    Extension = "0043" McpConfig,
}

impl Code {
    /// The code that is printed as `text`.
    pub fn parse(text: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|it| it.as_str().eq_ignore_ascii_case(text))
    }

    /// How bad a mistake of this code usually is; a profile may be milder.
    pub(crate) fn severity(self) -> Severity {
        let warnings =
            [Code::NoEffect, Code::Legacy, Code::SuspiciousUnit, Code::PlainWebSocket, Code::EmptySession];
        if warnings.contains(&self) { Severity::Warning } else { Severity::Error }
    }

    /// Does an error of this code make the whole file unusable, wherever in it it stands (DM-121)?
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

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
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
