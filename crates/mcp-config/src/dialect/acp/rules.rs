//! The differences between protocol versions, and what an agent may tolerate.

use mcp_model::Severity;

use crate::profile::Profile;

/// The rules of a protocol version.
#[derive(Debug)]
pub(super) struct ProtocolRules {
    /// The version number.
    pub(super) version: u8,
    /// The methods that have servers, and whether these are required (ACPX-10).
    pub(super) methods: &'static [(&'static str, Carries)],
    /// The known types, without extensions.
    pub(super) types: &'static [&'static str],
    /// The meaning of an entry without a type.
    pub(super) untyped: UntypedEntry,
    /// Whether a type that begins with `_` is an extension.
    pub(super) extensions: bool,
    /// Whether `args`, `env` and `headers` are required (ACPX-09).
    pub(super) lists: Requirement,
}

/// Whether a request must have `mcpServers`, even if empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carries {
    Always,
    AtWill,
}

/// The meaning of an entry without a `type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UntypedEntry {
    Stdio,
    Error,
}

/// Whether a list is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Requirement {
    Required,
    Optional,
}

/// Deviations from the protocol that an agent tolerates.
///
/// Known clients send both. A tolerated deviation is reported as a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Leniency {
    /// A command that is not an absolute path and is looked up on `PATH` (ACP-022, X-05).
    pub relative_commands: Tolerance,
    /// An entry without `args`, `env` or `headers` in version 1; they count as empty (ACPX-09).
    pub missing_lists: Tolerance,
}

/// Whether a deviation is tolerated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tolerance {
    /// Report an error.
    #[default]
    Reject,
    /// Report a warning.
    Warn,
}

impl Tolerance {
    /// The severity of the deviation.
    pub(super) fn severity(self) -> Severity {
        match self {
            Tolerance::Reject => Severity::Error,
            Tolerance::Warn => Severity::Warning,
        }
    }
}

static V1: ProtocolRules = ProtocolRules {
    version: 1,
    methods: &[
        ("session/new", Carries::Always),
        ("session/load", Carries::Always),
        ("session/resume", Carries::AtWill),
        ("session/fork", Carries::AtWill),
    ],
    types: &["stdio", "http", "sse", "acp"],
    untyped: UntypedEntry::Stdio,
    extensions: false,
    lists: Requirement::Required,
};

static V2: ProtocolRules = ProtocolRules {
    version: 2,
    methods: &[
        ("session/new", Carries::AtWill),
        ("session/resume", Carries::AtWill),
        ("session/fork", Carries::AtWill),
    ],
    types: &["stdio", "http", "acp"],
    untyped: UntypedEntry::Error,
    extensions: true,
    lists: Requirement::Optional,
};

impl ProtocolRules {
    /// The rules of a profile; version 1 for a profile other than ACP's.
    pub(super) fn of(profile: Profile) -> &'static ProtocolRules {
        match profile {
            Profile::AcpV2 => &V2,
            Profile::AcpV1
            | Profile::HoloDeck
            | Profile::HoloDeck07
            | Profile::Dominds
            | Profile::McpJson => &V1,
        }
    }

    /// The types that a user may write.
    pub(super) fn type_list(&self) -> String {
        let types = self.types.iter().filter(|it| **it != "acp");
        types.map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ")
    }
}
