//! What an agent lets pass although the protocol says otherwise. The default lets nothing pass.
//!
//! What passes is reported; nothing is dropped or forgiven without a word.

use mcp_config::acp::{Leniency, Tolerance};

use crate::{AcpVersion, Capabilities};

/// How strict an agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// What one entry costs that is wrong, or not supported.
    pub invalid_entries: InvalidEntryPolicy,
    /// Commands that are no absolute path, and entries without `args`, `env` or `headers` (ACP-022, ACPX-09).
    pub leniency: Leniency,
    /// A request of version 1 without `mcpServers`, where it must have one.
    pub missing_servers: Tolerance,
    /// A list that is `null`: `mcpServers`, `args`, `env`, `headers`, `additionalDirectories`. The protocol's own types
    /// read it as an empty one, so that it passes unless an agent says otherwise (ACPX-09).
    pub null_lists: Tolerance,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            invalid_entries: InvalidEntryPolicy::default(),
            leniency: Leniency::default(),
            missing_servers: Tolerance::Reject,
            null_lists: Tolerance::Warn,
        }
    }
}

/// What one bad entry costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InvalidEntryPolicy {
    /// The request.
    #[default]
    Refuse,
    /// Itself: the session goes on without it, and the report says why.
    Drop,
}

/// What the caller found out about a folder; this crate looks at no disk (ACPX-02).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderStatus {
    /// It may be used, or nobody has looked.
    Usable,
    /// There is nothing of this name.
    Missing,
    /// It is a file.
    NotAFolder,
    /// It may not be read, or the agent keeps out of it.
    Forbidden,
}

/// The agent that a request is held against.
#[derive(Clone, Copy)]
pub struct AgentProfile<'a> {
    /// The version both sides agreed on.
    pub version: AcpVersion,
    /// What it has advertised.
    pub capabilities: &'a Capabilities,
    /// How strict it is.
    pub policy: Policy,
    /// Looks at the session's folders; asked only for absolute paths.
    pub check_folder: &'a dyn Fn(&str) -> FolderStatus,
}

impl<'a> AgentProfile<'a> {
    /// A strict agent that looks at no folder.
    pub fn new(version: AcpVersion, capabilities: &'a Capabilities) -> AgentProfile<'a> {
        AgentProfile {
            version,
            capabilities,
            policy: Policy::default(),
            check_folder: &|_| FolderStatus::Usable,
        }
    }
}

impl std::fmt::Debug for AgentProfile<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let AgentProfile { version, capabilities, policy, check_folder: _ } = self;
        f.debug_struct("Agent")
            .field("version", version)
            .field("capabilities", capabilities)
            .field("policy", policy)
            .finish_non_exhaustive()
    }
}
