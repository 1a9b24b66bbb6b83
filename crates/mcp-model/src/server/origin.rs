//! The origin of a server specification: its file, its dialect, and the form of its entry.
//!
//! mcp-config needs it to resolve the specification and to write it back. No other decision depends on it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;

use crate::server::sharing::Sharing;

/// The origin of a [`ServerSpec`](crate::ServerSpec).
///
/// `Debug` prints only the ids of `inputs`, because a default may be a secret.
#[derive(derive_more::Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpecOrigin {
    /// The dialect and the rules by which the entry was read.
    pub profile: Profile,
    /// The file name given to the reader, or the label of a document that is not a file.
    pub file: String,
    /// JSON pointer to the server's entry.
    pub pointer: String,
    /// The byte range of the entry in the file.
    pub span: Range<usize>,
    /// The key under which the entry has its URL, such as `url` or `httpUrl`.
    pub url_key: &'static str,
    /// The number of leading arguments that the reader derived from another key than `args`.
    pub implied_args: usize,
    /// The policy for references to variables that are not set.
    pub unset_variables: UnsetVariablePolicy,
    /// The defaults of the inputs that the file declares, by id.
    #[debug("{:?}", inputs.keys())]
    pub inputs: Arc<BTreeMap<String, String>>,
    /// The folder of the project that the entry belongs to, in a file with the servers of several projects.
    pub project: Option<String>,
    /// The sharing that the entry states. `None`: the default of the dialect applies.
    pub stated_sharing: Option<Sharing>,
    /// What limits a start in the program of the file, if anything does.
    pub start_limit: Option<StartLimit>,
}

impl SpecOrigin {
    /// Creates the origin of a server without an entry: an empty pointer and range.
    pub fn new(profile: Profile, file: impl Into<String>) -> SpecOrigin {
        SpecOrigin {
            profile,
            file: file.into(),
            pointer: String::new(),
            span: 0..0,
            url_key: "url",
            implied_args: 0,
            unset_variables: UnsetVariablePolicy::Reject,
            inputs: Arc::default(),
            project: None,
            stated_sharing: None,
            start_limit: None,
        }
    }

    /// Returns the dialect of the file.
    pub fn dialect(&self) -> Dialect {
        self.profile.dialect()
    }
}

/// What limits the time of a start in a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, derive_more::Display)]
#[expect(clippy::exhaustive_enums, reason = "readers and writers handle each")]
pub enum StartLimit {
    /// A key of the server's entry.
    #[display("`{_0}`")]
    Key(&'static str),
    /// A variable of the program's environment, in milliseconds.
    #[display("the variable `{_0}`")]
    Variable(&'static str),
}

/// The policy for references to variables that are not set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "readers and writers handle each")]
pub enum UnsetVariablePolicy {
    /// The reference is an error.
    Reject,
    /// The reference stays as text, because the program to which the file belongs replaces no variables.
    Keep,
    /// The reference is an empty text, because the program of the file replaces it so.
    Empty,
}

/// A configuration format for MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "readers and writers handle each")]
pub enum Dialect {
    /// HoloDeck's `agent.yaml`.
    HoloDeck,
    /// Dominds' `.minds/mcp.yaml`.
    Dominds,
    /// The `mcpServers` of an ACP session.
    Acp,
    /// The `mcp.json` of editors.
    #[serde(rename = "mcp-json")]
    #[strum(serialize = "mcp-json")]
    McpJson,
}

impl Dialect {
    /// Returns the name on the command line.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A dialect together with the rules for reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "readers and writers handle each")]
pub enum Profile {
    /// HoloDeck's configuration contract.
    HoloDeck,
    /// The rules of HoloDeck 0.7.
    HoloDeck07,
    /// Dominds' `.minds/mcp.yaml`.
    Dominds,
    /// The servers of an ACP session, protocol version 1.
    AcpV1,
    /// The servers of an ACP session, the draft of protocol version 2.
    AcpV2,
    /// The `mcp.json` and settings of editors and agents, read leniently.
    McpJson,
}

impl Profile {
    /// All profiles.
    pub const ALL: &'static [Profile] = &[
        Profile::HoloDeck,
        Profile::HoloDeck07,
        Profile::Dominds,
        Profile::AcpV1,
        Profile::AcpV2,
        Profile::McpJson,
    ];

    /// Returns the dialect of the profile.
    pub fn dialect(self) -> Dialect {
        match self {
            Profile::HoloDeck | Profile::HoloDeck07 => Dialect::HoloDeck,
            Profile::Dominds => Dialect::Dominds,
            Profile::AcpV1 | Profile::AcpV2 => Dialect::Acp,
            Profile::McpJson => Dialect::McpJson,
        }
    }

    /// Returns the name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Profile::HoloDeck => "holodeck",
            Profile::HoloDeck07 => "holodeck-0.7",
            Profile::Dominds => "dominds",
            Profile::AcpV1 => "acp-v1",
            Profile::AcpV2 => "acp-v2",
            Profile::McpJson => "mcp-json",
        }
    }

    /// Returns the profile with this name on the command line.
    pub fn parse(name: &str) -> Option<Profile> {
        Profile::ALL.iter().copied().find(|profile| profile.as_str() == name)
    }

    /// Returns the default profile of a dialect.
    pub fn default_for(dialect: Dialect) -> Profile {
        match dialect {
            Dialect::HoloDeck => Profile::HoloDeck,
            Dialect::Dominds => Profile::Dominds,
            Dialect::Acp => Profile::AcpV1,
            Dialect::McpJson => Profile::McpJson,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_parsed_by_name() {
        for profile in Profile::ALL {
            assert_eq!(Profile::parse(profile.as_str()), Some(*profile));
        }
        assert_eq!(Profile::parse("HoloDeck"), None);
        assert_eq!(Profile::default_for(Dialect::Acp), Profile::AcpV1);
    }
}
