//! What differs between the protocol's versions, as data, and what an agent may let pass.

use mcp_model::Severity;

use crate::profile::Profile;

/// The rules of one version of the protocol.
#[derive(Debug)]
pub(super) struct ProtocolRules {
    /// Its number.
    pub(super) version: u8,
    /// The methods that carry servers, and whether they must (ACPX-10).
    pub(super) methods: &'static [(&'static str, Carries)],
    /// The types that there are, but for extensions.
    pub(super) types: &'static [&'static str],
    /// What an entry without a type is.
    pub(super) untyped: UntypedEntry,
    /// May a type that begins with `_` be an extension?
    pub(super) extensions: bool,
    /// Must `args`, `env` and `headers` be there (ACPX-09)?
    pub(super) lists: Requirement,
}

/// Whether a request must have servers, were it an empty list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carries {
    Always,
    AtWill,
}

/// What an entry without a `type` is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UntypedEntry {
    Stdio,
    Error,
}

/// Whether a list must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Requirement {
    Required,
    Optional,
}

/// What an agent lets pass although the protocol says otherwise.
///
/// Clients are known to do both. What passes is still reported, as a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Leniency {
    /// A command that is no absolute path, and will be looked up on `PATH` (ACP-022, X-05).
    pub relative_commands: Tolerance,
    /// An entry without `args`, `env` or `headers` in version 1, which are taken for empty (ACPX-09).
    pub missing_lists: Tolerance,
}

/// Whether a mistake is let pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tolerance {
    /// It is an error.
    #[default]
    Reject,
    /// It is a warning.
    Warn,
}

impl Tolerance {
    /// How bad the mistake is.
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
    /// The rules of a profile; those of version 1 for one that is not ACP's.
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

    /// The types that may be written.
    pub(super) fn type_list(&self) -> String {
        let types = self.types.iter().filter(|it| **it != "acp");
        types.map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ")
    }
}
