//! Violations of the protocol that an agent tolerates. The default tolerates only lists that are null.
//!
//! Every tolerated violation and every dropped entry is reported.

use mcp_host_config::acp::{Leniency, Tolerance};

use crate::capabilities::Capabilities;
use crate::version::AcpVersion;

/// The violations of the protocol that an agent tolerates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policy {
    /// The consequence of an invalid or unsupported entry.
    pub invalid_entries: InvalidEntryPolicy,
    /// Whether commands that are not absolute paths, and entries without `args`, `env` or `headers`, are tolerated
    /// (ACP-022, ACPX-09).
    pub leniency: Leniency,
    /// Whether a request of version 1 without the required `mcpServers` is tolerated.
    pub missing_servers: Tolerance,
    /// Whether a list that is `null` is tolerated: `mcpServers`, `args`, `env`, `headers`, `additionalDirectories`. The
    /// protocol's own types read it as an empty list, so it is tolerated by default (ACPX-09).
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

/// The consequence of an invalid entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum InvalidEntryPolicy {
    /// The request is refused.
    #[default]
    Refuse,
    /// The entry is dropped, with a warning.
    Drop,
}

/// The status of a folder, which the caller determines; this crate does not access the disk (ACPX-02).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FolderStatus {
    /// Usable, or not checked.
    Usable,
    /// It does not exist.
    Missing,
    /// It is not a folder.
    NotAFolder,
    /// It is not readable, or forbidden by the agent.
    Forbidden,
}

/// The agent that validates a request.
#[derive(Clone, Copy, derive_more::Debug)]
#[non_exhaustive]
pub struct AgentProfile<'a> {
    /// The negotiated version.
    pub version: AcpVersion,
    /// Its advertised capabilities.
    pub capabilities: &'a Capabilities,
    /// The violations that it tolerates.
    pub policy: Policy,
    /// Checks a folder; called only for absolute paths.
    #[debug(skip)]
    pub check_folder: &'a dyn Fn(&str) -> FolderStatus,
}

impl<'a> AgentProfile<'a> {
    /// Creates a strict agent that does not check folders.
    pub fn new(version: AcpVersion, capabilities: &'a Capabilities) -> AgentProfile<'a> {
        AgentProfile {
            version,
            capabilities,
            policy: Policy::default(),
            check_folder: &|_| FolderStatus::Usable,
        }
    }
}
