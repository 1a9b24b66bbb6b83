//! The servers that the user approved: what may be started from the configuration of a project.
//!
//! An approval belongs to the fingerprint of a server, and not to its name or file: a changed entry or an edited script
//! needs a new one.

#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcp_host_config::ResolvedServer;
use mcp_host_model::ErrorKind;
use mcp_host_registry::{ProgramPart, ProgramRecord};
use serde::{Deserialize, Serialize};

use crate::error::HostError;
use crate::fs::private_json;
use crate::state::start_identity::{StartIdentity, start_identity};

/// The version of the file's format.
const VERSION: u32 = 1;

/// The file with the approved servers. Its methods read and write it, and block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovedServers {
    path: PathBuf,
}

/// An approved server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApprovedServer {
    /// The fingerprint of what it starts or connects to.
    pub fingerprint: String,
    /// The configuration file in which it was approved.
    pub file: String,
    /// Its name there.
    pub server: String,
    /// Its command, or its URL without secrets.
    pub target: String,
    /// The time of the approval, in seconds since the Unix epoch.
    pub approved_at: u64,
    /// What was approved, without secrets. Approvals of earlier versions lack it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramRecord>,
}

/// The content of the file.
#[derive(Serialize, Deserialize)]
struct StoredServers {
    version: u32,
    approved: Vec<ApprovedServer>,
}

impl Default for StoredServers {
    fn default() -> StoredServers {
        StoredServers { version: VERSION, approved: Vec::new() }
    }
}

impl ApprovedServers {
    /// Names the file, which may be missing. Its folder must be private to the user.
    pub fn new(path: impl Into<PathBuf>) -> ApprovedServers {
        ApprovedServers { path: path.into() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns all approved servers. A missing file has none; an invalid one is an error.
    pub fn list(&self) -> io::Result<Vec<ApprovedServer>> {
        let StoredServers { version, approved } = private_json::read(&self.path)?;
        if version == VERSION {
            Ok(approved)
        } else {
            Err(private_json::unknown_version(&self.path, version))
        }
    }

    /// Returns those of the servers that are not approved, with what they would start.
    pub fn pending<'a>(
        &self,
        servers: impl IntoIterator<Item = &'a ResolvedServer>,
    ) -> io::Result<Vec<PendingServer<'a>>> {
        let approved = self.list()?;
        let pending = |server| PendingServer::find(server, start_identity(server), &approved);
        Ok(servers.into_iter().filter_map(pending).collect())
    }

    /// Approves servers. An approval replaces the earlier one of the same server in the same file.
    pub fn approve<'a>(
        &self,
        servers: impl IntoIterator<Item = &'a ResolvedServer>,
        now: SystemTime,
    ) -> io::Result<()> {
        let approved_at = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
        let mut approved = self.list()?;
        for server in servers {
            let StartIdentity { fingerprint, record } = start_identity(server);
            let new = ApprovedServer {
                fingerprint,
                file: file_of(server),
                server: server.spec.id.to_string(),
                target: server.endpoint.label(),
                approved_at,
                program: Some(record),
            };
            approved.retain(|it| (&it.file, &it.server) != (&new.file, &new.server));
            approved.push(new);
        }
        self.write(approved)
    }

    /// Removes the approvals that `is_revoked` selects. Returns their number.
    pub fn revoke(&self, is_revoked: impl Fn(&ApprovedServer) -> bool) -> io::Result<usize> {
        let mut approved = self.list()?;
        let before = approved.len();
        approved.retain(|it| !is_revoked(it));
        let removed = before - approved.len();
        if removed > 0 {
            self.write(approved)?;
        }
        Ok(removed)
    }

    /// Fails if a server may not be started: it is not approved, or it was resolved without its secrets, because it was
    /// not approved then.
    pub fn check(&self, server: &ResolvedServer) -> Result<(), HostError> {
        self.check_identity(server, start_identity(server))
    }

    /// Like [`ApprovedServers::check`], for an identity that was computed already.
    pub(crate) fn check_identity(
        &self,
        server: &ResolvedServer,
        identity: StartIdentity,
    ) -> Result<(), HostError> {
        match self.list() {
            Ok(approved) => match PendingServer::find(server, identity, &approved) {
                Some(pending) => Err(pending.error()),
                None => check_secrets(server),
            },
            Err(error) => {
                let message = format!("the approved servers cannot be read: {error}");
                let mut error = HostError::of_server(ErrorKind::Config, server.spec.id.as_str(), message);
                error.help = Some(format!("correct or remove {}", self.path.display()));
                Err(error)
            }
        }
    }

    /// Replaces the file. Only its owner can read it.
    fn write(&self, approved: Vec<ApprovedServer>) -> io::Result<()> {
        private_json::write(&self.path, &StoredServers { version: VERSION, approved })
    }
}

/// A server that is not approved.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PendingServer<'a> {
    /// The server.
    pub server: &'a ResolvedServer,
    /// What it would start or connect to, without secrets.
    pub program: ProgramRecord,
    /// The approval that it had before it was changed.
    pub approved: Option<ApprovedServer>,
}

impl<'a> PendingServer<'a> {
    /// A server that was never approved. Reads files, and blocks.
    pub fn new(server: &'a ResolvedServer) -> PendingServer<'a> {
        PendingServer { server, program: start_identity(server).record, approved: None }
    }

    /// Returns a server with this identity if it is not approved.
    fn find(
        server: &'a ResolvedServer,
        identity: StartIdentity,
        approved: &[ApprovedServer],
    ) -> Option<PendingServer<'a>> {
        let StartIdentity { fingerprint, record } = identity;
        if approved.iter().any(|it| it.fingerprint == fingerprint) {
            return None;
        }
        let file = file_of(server);
        let is_known = |it: &&ApprovedServer| it.file == file && it.server == server.spec.id.as_str();
        Some(PendingServer { server, program: record, approved: approved.iter().find(is_known).cloned() })
    }

    /// Returns the parts that differ from what was approved before. `None` if nothing was, or if an earlier version
    /// approved it.
    pub fn changed_parts(&self) -> Option<Vec<ProgramPart>> {
        let before = self.approved.as_ref()?.program.as_ref()?;
        Some(before.changed_parts(&self.program))
    }

    /// Returns the error of its start.
    pub fn error(&self) -> HostError {
        let file = &self.server.spec.origin.file;
        let message = if self.approved.is_some() {
            format!("it was changed since you approved it in {file}, and waits for a new approval")
        } else {
            format!("it is not approved: {file} was found in a project, and no command named it")
        };
        let mut error = HostError::of_server(ErrorKind::McpConfig, self.server.spec.id.as_str(), message);
        error.help = Some(format!("`mcp-host trust {file}` shows what it starts, and approves it"));
        error
    }
}

/// Fails if a server was resolved without its secrets.
fn check_secrets(server: &ResolvedServer) -> Result<(), HostError> {
    if !server.secrets.are_withheld {
        return Ok(());
    }
    let message = "it was approved after its configuration was read, so its secrets were not";
    let mut error = HostError::of_server(ErrorKind::McpConfig, server.spec.id.as_str(), message);
    error.help = Some("run the command again".to_owned());
    Err(error)
}

/// The absolute path of a server's file.
pub(crate) fn file_of(server: &ResolvedServer) -> String {
    let file = Path::new(&server.spec.origin.file);
    fs::canonicalize(file).unwrap_or_else(|_| file.to_owned()).display().to_string()
}
