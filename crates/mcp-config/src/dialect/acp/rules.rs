//! The rules of each ACP version, and the deviations from them that an agent may tolerate.

use mcp_host_model::{Profile, Severity};

/// The rules of an ACP version.
#[derive(Debug)]
pub(super) struct ProtocolRules {
    /// The version number.
    pub(super) version: u8,
    /// The methods whose parameters can have `mcpServers`.
    pub(super) methods: &'static [MethodRules],
    /// The values of `type` that the protocol defines; extensions are not included.
    pub(super) transport_types: &'static [&'static str],
    /// The meaning of an entry without a `type`.
    pub(super) untyped: UntypedEntry,
    /// Whether a `type` that begins with `_` is an extension.
    pub(super) allows_extensions: bool,
    /// Whether `args`, `env` and `headers` are required (ACPX-09).
    pub(super) list_requirement: Requirement,
}

/// The members that the `params` of a method require, besides `cwd` (ACPX-10).
#[derive(Debug)]
pub(super) struct MethodRules {
    pub(super) name: &'static str,
    /// Whether `mcpServers` is required.
    pub(super) servers: Requirement,
    /// Whether `sessionId` is required. A new session has none yet.
    pub(super) session_id: Requirement,
}

const fn method(name: &'static str, servers: Requirement, session_id: Requirement) -> MethodRules {
    MethodRules { name, servers, session_id }
}

/// The meaning of an entry without a `type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UntypedEntry {
    /// The entry is a stdio server.
    Stdio,
    /// The entry is an error.
    Error,
}

/// Whether a member is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Requirement {
    Required,
    Optional,
}

/// Deviations from the protocol that an agent tolerates.
///
/// Known clients deviate in both ways. A tolerated deviation is reported as a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Leniency {
    /// A command that is not an absolute path. It is looked up on `PATH` (ACP-022, X-05).
    pub relative_commands: Tolerance,
    /// An entry of version 1 without `args`, `env` or `headers`. A missing list counts as empty (ACPX-09).
    pub missing_lists: Tolerance,
}

/// Whether a deviation is tolerated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::exhaustive_enums, reason = "mcp-acp decides on each, so that none is forgotten")]
pub enum Tolerance {
    /// Not tolerated: report an error.
    #[default]
    Reject,
    /// Tolerated: report a warning.
    Warn,
}

impl Tolerance {
    /// The severity of the diagnostic that reports the deviation.
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
        method("session/new", Requirement::Required, Requirement::Optional),
        method("session/load", Requirement::Required, Requirement::Required),
        method("session/resume", Requirement::Optional, Requirement::Required),
        method("session/fork", Requirement::Optional, Requirement::Required),
    ],
    transport_types: &["stdio", "http", "sse", "acp"],
    untyped: UntypedEntry::Stdio,
    allows_extensions: false,
    list_requirement: Requirement::Required,
};

static V2: ProtocolRules = ProtocolRules {
    version: 2,
    methods: &[
        method("session/new", Requirement::Optional, Requirement::Optional),
        method("session/resume", Requirement::Optional, Requirement::Required),
        method("session/fork", Requirement::Optional, Requirement::Required),
    ],
    transport_types: &["stdio", "http", "acp"],
    untyped: UntypedEntry::Error,
    allows_extensions: true,
    list_requirement: Requirement::Optional,
};

impl ProtocolRules {
    /// The rules of a profile. A profile other than those of ACP gets version 1.
    pub(super) fn for_profile(profile: Profile) -> &'static ProtocolRules {
        match profile {
            Profile::AcpV2 => &V2,
            Profile::AcpV1
            | Profile::HoloDeck
            | Profile::HoloDeck07
            | Profile::Dominds
            | Profile::McpJson => &V1,
        }
    }

    /// The types for a message, as `a`, `b`. `acp` is left out: only a client can provide such a server.
    pub(super) fn describe_types(&self) -> String {
        let types = self.transport_types.iter().filter(|it| **it != "acp");
        types.map(|it| format!("`{it}`")).collect::<Vec<_>>().join(", ")
    }
}
