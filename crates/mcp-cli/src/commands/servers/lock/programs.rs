//! The programs of the servers: what of them is approved, and which servers may start for a comparison.

use std::collections::BTreeMap;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{Endpoint, Secret, ServerId};
use mcp_host_registry::{LockFile, ProgramRecord};
use mcp_host_runtime::{HostSnapshot, ServerDefinitions, UnpinnedPackage, program_record};

use super::action::LockAction;
use crate::output::console::Console;
use crate::output::sanitize;

/// What the servers would start, read before any of them is started.
pub(super) struct Programs {
    records: BTreeMap<String, ProgramRecord>,
    /// The packages that are not pinned, with what to write, by server.
    unpinned: BTreeMap<String, String>,
}

impl Programs {
    /// Reads the programs. Blocks.
    pub(super) fn read(servers: &[ResolvedServer]) -> Programs {
        let id = |it: &ResolvedServer| it.spec.id.as_str().to_owned();
        Programs {
            records: servers.iter().map(|it| (id(it), program_record(it))).collect(),
            unpinned: servers.iter().filter_map(|it| Some((id(it), unpinned_package(it)?))).collect(),
        }
    }

    /// Returns how the program of a server differs from the approved one.
    pub(super) fn changes(&self, server: &str, lock: &LockFile) -> Vec<String> {
        self.records.get(server).map(|it| lock.program_changes(server, it)).unwrap_or_default()
    }

    /// Whether a server may start: its program is approved, or the user approves it now.
    pub(super) fn may_start(&self, server: &str, lock: &LockFile, action: &LockAction) -> bool {
        match action {
            LockAction::Create | LockAction::ApproveAll => true,
            LockAction::Approve(names) if names.iter().any(|it| server == it) => true,
            LockAction::Approve(_) | LockAction::Show => self.changes(server, lock).is_empty(),
        }
    }

    /// Records the programs that the action approves. A file without programs gets them if everything is approved.
    pub(super) fn approve(
        &self,
        lock: &mut LockFile,
        offers: &[(ServerId, ServerDefinitions)],
        action: &LockAction,
    ) {
        let offered = |id: &str| offers.iter().any(|it| it.0.as_str() == id);
        match action {
            LockAction::Show => {}
            LockAction::Create => {
                let records = self.records.iter().filter(|it| offered(it.0));
                lock.programs = Some(records.map(|(id, it)| (id.clone(), it.clone())).collect());
            }
            // A server that cannot be reached now keeps its approved definitions.
            LockAction::ApproveAll => {
                let records =
                    self.records.iter().filter(|it| offered(it.0) || lock.servers.contains_key(it.0));
                lock.programs = Some(records.map(|(id, it)| (id.clone(), it.clone())).collect());
            }
            LockAction::Approve(names) => {
                let Some(programs) = &mut lock.programs else { return };
                for name in names.iter().filter(|it| offered(it)) {
                    programs.extend(self.records.get(name).map(|it| (name.clone(), it.clone())));
                }
            }
        }
    }

    /// Returns the servers that were not started, because their programs are not approved.
    pub(super) fn waiting(&self, published: &HostSnapshot) -> Vec<String> {
        let is_waiting = |id: &&String| !published.servers.iter().any(|it| it.id.as_str() == id.as_str());
        self.records.keys().filter(is_waiting).cloned().collect()
    }

    /// Returns a note for each package that is not pinned.
    pub(super) fn hints(&self, console: &Console) -> String {
        let note = |(server, text): (&String, &String)| {
            let text = format!("server `{server}` loads a package that is not pinned, {text}");
            console.note(&sanitize::line(&text))
        };
        self.unpinned.iter().map(note).collect()
    }
}

/// The package of a server with what to write, if each start may load another version of it.
fn unpinned_package(server: &ResolvedServer) -> Option<String> {
    let Endpoint::Stdio(endpoint) = &server.endpoint else { return None };
    let words: Vec<&str> = endpoint.args.iter().map(Secret::expose).collect();
    let package = UnpinnedPackage::of(&endpoint.command, &words)?;
    let (requirement, pinned) = (&package.requirement, package.placeholder());
    Some(format!("{requirement}: `mcp-host check --fix=pin` pins it, or write `{pinned}`"))
}
