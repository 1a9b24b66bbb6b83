//! Trust in configurations of projects: their servers start only after the user approved them.
//!
//! A configuration needs approval if the command named neither it nor its folder, and it is not in the home folder. The
//! administrator's policy can allow or refuse all, or allow folders.

use std::env;
use std::fs;
use std::io::{self, BufRead, IsTerminal, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{Endpoint, Secret};
use mcp_host_runtime::{ApprovedServers, HostError, LoadRequest, LoadedConfig, PendingServer, load};
use serde::Deserialize;

use crate::config::context::Context;
use crate::config::locate::ConfigPath;
use crate::output::console::Report;
use crate::output::sanitize;
use crate::runtime::run_blocking;

/// The administrator's policy.
const POLICY_FILE: &str = "/etc/mcp-host/trust.json";

/// The maximum size of the policy, and of an answer.
const MAX_BYTES: u64 = 64 << 10;

/// How configurations of projects are trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ProjectTrust {
    /// Whether the command line says that the project is trusted.
    is_requested: bool,
    policy: TrustPolicy,
}

/// The policy of the administrator, as a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustPolicy {
    #[serde(default)]
    projects: ProjectPolicy,
    /// Folders whose configurations need no approval.
    #[serde(default)]
    folders: Vec<PathBuf>,
}

/// What happens to the configuration of a project.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ProjectPolicy {
    /// Its servers start after the user approved them.
    #[default]
    Ask,
    /// Its servers start.
    Allow,
    /// Its servers start after the user approved them; `--trust-project` has no effect.
    Confirm,
}

impl ProjectTrust {
    /// Reads the policy. Fails with a message if it cannot be read.
    pub(crate) fn new(is_requested: bool) -> Result<ProjectTrust, String> {
        Ok(ProjectTrust { is_requested, policy: read_policy(Path::new(POLICY_FILE), 0)? })
    }

    /// Whether the servers of a file of a project start only after an approval.
    pub(crate) fn needs_approval(&self, file: &Path) -> bool {
        let TrustPolicy { projects, folders } = &self.policy;
        let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
        if folders.iter().any(|it| file.starts_with(it)) {
            return false;
        }
        match projects {
            ProjectPolicy::Allow => false,
            ProjectPolicy::Ask => !self.is_requested,
            ProjectPolicy::Confirm => true,
        }
    }
}

/// Reads the policy of the administrator. Only a file that no other user than `owner` can change is one.
fn read_policy(path: &Path, owner: u32) -> Result<TrustPolicy, String> {
    let failed = |why: &dyn std::fmt::Display| format!("cannot use {}: {why}", path.display());
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(TrustPolicy::default()),
        Err(error) => return Err(failed(&error)),
    };
    let metadata = file.metadata().map_err(|error| failed(&error))?;
    if metadata.uid() != owner || metadata.mode() & 0o022 != 0 {
        return Err(failed(&"others than the administrator can change it"));
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).map_err(|error| failed(&error))?;
    serde_json::from_str(&text).map_err(|error| failed(&error))
}

/// The servers that the user approved. `None` without a state folder.
pub(crate) fn approved_servers() -> Option<ApprovedServers> {
    let path = mcp_host_runtime::state_path("mcp-host/approved-servers.json", &|name| env::var_os(name))?;
    Some(ApprovedServers::new(path))
}

/// Why a server may not be started or connected to: it needs an approval that it does not have.
pub(crate) async fn approval_error(server: &ResolvedServer) -> Option<HostError> {
    if !server.needs_approval {
        return None;
    }
    let server = server.clone();
    let check = move || match approved_servers() {
        Some(approvals) => approvals.check(&server).err(),
        None => Some(PendingServer::new(&server).error()),
    };
    run_blocking(check).await
}

/// Asks at a terminal about the servers of a file that are not approved, and stores the approval. Without a terminal
/// nothing is asked, and they do not start.
pub(crate) async fn ask_about_file(context: &Context, request: &LoadRequest) {
    if request.needs_approval && is_interactive() {
        let request = request.clone();
        // A file that cannot be read has no servers.
        if let Ok(loaded) = run_blocking(move || load(&request)).await {
            ask_about_servers(context, &loaded.desired.servers).await;
        }
    }
}

/// Like [`ask_about_file`], for servers that were read.
pub(crate) async fn ask_about_servers(context: &Context, servers: &[ResolvedServer]) {
    let waiting: Vec<ResolvedServer> = servers.iter().filter(|it| it.needs_approval).cloned().collect();
    if waiting.is_empty() || !is_interactive() {
        return;
    }
    let Some(approvals) = approved_servers() else { return };
    let console = context.console;
    run_blocking(move || {
        // A store that cannot be read is reported by each start.
        let Ok(pending) = approvals.pending(&waiting) else { return };
        if pending.is_empty() {
            return;
        }
        console.print(&Report::err(question_text(&pending)));
        if is_confirmed(io::stdin().lock()) {
            let all = pending.iter().map(|it| it.server);
            if let Err(error) = approvals.approve(all, SystemTime::now()) {
                console.print(&Report::err(console.note(&format!("the approval is not stored: {error}"))));
            }
        }
    })
    .await;
}

/// Whether a change of a server keeps its approval: it is new, or approved already. Blocks.
pub(crate) fn keeps_approval(loaded: &LoadedConfig, server: &str) -> bool {
    let known = loaded.desired.servers.iter().find(|it| it.spec.id.as_str() == server);
    match (known, approved_servers()) {
        (Some(known), Some(approvals)) => approvals.pending([known]).is_ok_and(|it| it.is_empty()),
        (Some(_), None) => false,
        (None, _) => !loaded.reading.entries.iter().any(|it| it.name == server),
    }
}

/// Approves a server that the user has just written to a file. What cannot be stored is approved later. Blocks.
pub(crate) fn approve_written(context: &Context, file: &Path, server: &str) {
    let config = ConfigPath { path: file.to_owned(), is_discovered: true, is_of_project: true };
    let (Some(approvals), Ok(loaded)) = (approved_servers(), load(&context.load_request(&config))) else {
        return;
    };
    let written = loaded.desired.servers.iter().filter(|it| it.spec.id.as_str() == server);
    if let Err(error) = approvals.approve(written, SystemTime::now()) {
        tracing::warn!(%error, "the approval is not stored");
    }
}

/// Whether a question can be asked and answered.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Whether the next line is `y` or `yes`.
pub(crate) fn is_confirmed(input: impl BufRead) -> bool {
    let mut line = String::new();
    let read = input.take(MAX_BYTES).read_line(&mut line);
    read.is_ok() && ["y", "yes"].contains(&line.trim().to_lowercase().as_str())
}

/// The servers that wait for an approval, and the question.
fn question_text(pending: &[PendingServer<'_>]) -> String {
    let file = pending.first().map_or("", |it| it.server.spec.origin.file.as_str());
    let lines: String = pending.iter().map(|it| server_text(it.server, it.is_changed)).collect();
    format!("{} was found in this project. It starts:\n{lines}Start them? [y/N] ", sanitize::line(file))
}

/// What a server starts or connects to, and what it receives.
pub(crate) fn server_text(server: &ResolvedServer, is_changed: bool) -> String {
    let mark = if is_changed { " (changed)" } else { "" };
    let mut text = format!("  {}{mark}: ", sanitize::line(server.spec.id.as_str()));
    let names: Vec<&str> = match &server.endpoint {
        Endpoint::Stdio(stdio) => {
            text.push_str(&sanitize::line(&stdio.command));
            for argument in stdio.args.iter().map(Secret::expose) {
                text.push_str(&format!(" {}", sanitize::line(argument)));
            }
            if let Some(folder) = &stdio.cwd {
                text.push_str(&format!("\n    in {}", sanitize::line(&folder.display().to_string())));
            }
            stdio.env.iter().map(|it| it.0.as_str()).collect()
        }
        Endpoint::Sse(url) | Endpoint::WebSocket(url) | Endpoint::Http(url) => {
            text.push_str(&sanitize::line(&url.label()));
            url.headers.iter().map(|it| it.0.as_str()).collect()
        }
    };
    if !names.is_empty() {
        text.push_str(&format!("\n    with {}", sanitize::line(&names.join(", "))));
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// RPT-284
    #[test]
    fn rpt_284_policy_of_the_administrator_decides_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trust.json");
        let owner = nix::unistd::geteuid().as_raw();
        let file = folder.path().join("a/.mcp.json");
        let check = |policy: &str, is_requested: bool, want: Option<bool>| {
            fs::write(&path, policy).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            let read = read_policy(&path, owner).ok();
            let trust = read.map(|policy| ProjectTrust { is_requested, policy });
            assert_eq!(trust.map(|it| it.needs_approval(&file)), want, "{policy} {is_requested}");
        };
        check("{}", false, Some(true));
        check("{}", true, Some(false));
        check(r#"{"projects": "allow"}"#, false, Some(false));
        check(r#"{"projects": "confirm"}"#, true, Some(true));
        check(r#"{"folders": ["/srv"]}"#, false, Some(true));
        let root = folder.path().display();
        check(&format!(r#"{{"projects": "confirm", "folders": ["{root}"]}}"#), false, Some(false));
        check(r#"{"project": "allow"}"#, false, None);
        check("{", false, None);
        assert_eq!(read_policy(&folder.path().join("none"), owner), Ok(TrustPolicy::default()));
        // A policy that others can change is none.
        fs::write(&path, "{}").unwrap();
        assert!(read_policy(&path, owner + 1).is_err());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(read_policy(&path, owner).is_err());
    }

    #[test]
    fn only_yes_is_a_confirmation() {
        for (line, want) in [("y\n", true), ("YES\n", true), ("\n", false), ("", false), ("yep\n", false)] {
            assert_eq!(is_confirmed(line.as_bytes()), want, "{line}");
        }
    }
}
