//! Approval of server definitions by a lock file.

use std::sync::Arc;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{ErrorKind, ServerId};
use mcp_host_registry::{
    Drift, DriftPolicy, Enforcement, ListKind, LockFile, ProgramRecord, ServerIdentity, ServerLists,
    ServerSnapshot,
};
use mcp_host_transport::ServerInfo;

use crate::error::HostError;
use crate::state::start_identity::start_identity;

/// The approved definitions, and the policy for drift.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Approval {
    /// The approved definitions.
    pub lock: Arc<LockFile>,
    /// The policy for definitions that differ.
    pub policy: DriftPolicy,
}

/// The current definitions of a server, hidden ones included.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerDefinitions {
    /// The definitions as an approval would record them.
    pub observed: ServerSnapshot,
    /// Its lists.
    pub lists: Arc<ServerLists>,
    /// The lists that were read; the others are unknown.
    pub read_lists: Vec<ListKind>,
    /// Its instructions, unchanged.
    pub instructions: Option<String>,
}

/// Returns what a server would start or connect to now, as a lock file records it. Reads files, and blocks.
pub fn program_record(server: &ResolvedServer) -> ProgramRecord {
    start_identity(server).record
}

impl Approval {
    /// Fails if a server would start something else than what the lock file approves. Reads files, and blocks.
    pub fn check_program(&self, server: &ResolvedServer) -> Result<(), HostError> {
        self.check_record(&server.spec.id, &program_record(server))
    }

    /// Like [`Approval::check_program`], for a record that was made already.
    pub(crate) fn check_record(&self, id: &ServerId, record: &ProgramRecord) -> Result<(), HostError> {
        if self.lock.programs.is_none() || self.policy.changed == Enforcement::Warn {
            return Ok(());
        }
        let changes = self.lock.program_changes(id.as_str(), record);
        if changes.is_empty() {
            return Ok(());
        }
        let message = format!("it is not what the lock file approves: {}", changes.join("; "));
        let mut error = HostError::of_server(ErrorKind::McpConfig, id.as_str(), message);
        error.help = Some(format!("if this change is yours, `mcp-host lock --update {id}` approves it"));
        Err(error)
    }

    /// Returns the drift of a server from its approved definitions.
    pub(crate) fn drift(&self, server: &ServerId, observed: &ServerSnapshot, read: &[ListKind]) -> Drift {
        Drift::compute(self.lock.server(server), observed, read, self.policy)
    }
}

impl ServerDefinitions {
    /// Creates the definitions of a session, from its server info and the lists that were read.
    pub fn of(info: &ServerInfo, lists: ServerLists, read: Vec<ListKind>) -> ServerDefinitions {
        ServerDefinitions {
            observed: ServerSnapshot::of(server_identity(info), &lists),
            lists: Arc::new(lists),
            read_lists: read,
            instructions: info.instructions.clone(),
        }
    }

    /// Returns the drift from the approved definitions of this server.
    pub fn drift(&self, server: &ServerId, approval: &Approval) -> Drift {
        approval.drift(server, &self.observed, &self.read_lists)
    }
}

/// Returns the identity of a server as it is approved.
pub(crate) fn server_identity(info: &ServerInfo) -> ServerIdentity {
    let text = |it: &str| Some(it.to_owned()).filter(|it| !it.is_empty());
    ServerIdentity::of(
        text(&info.name).as_deref(),
        text(&info.version).as_deref(),
        info.instructions.as_deref(),
    )
}
