//! Approval of the servers of a project: asks at a terminal, and stores the answer.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use mcp_host_config::ResolvedServer;
use mcp_host_runtime::{HostError, LoadRequest, LoadedConfig, PendingServer, load};

use crate::config::context::Context;
use crate::config::locate::ConfigPath;
use crate::config::project_trust::approved_servers;
use crate::config::start_text::{rights_text, start_text};
use crate::output::console::Report;
use crate::output::question::{is_confirmed, is_interactive};
use crate::output::{count, sanitize};
use crate::runtime::run_blocking;

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

/// Like [`ask_about_file`], for servers that were read. Returns whether one of them was resolved without secrets that
/// the approval grants: then the file must be read again.
pub(crate) async fn ask_about_servers(context: &Context, servers: &[ResolvedServer]) -> bool {
    let waiting: Vec<ResolvedServer> = servers.iter().filter(|it| it.needs_approval).cloned().collect();
    if waiting.is_empty() || !is_interactive() {
        return false;
    }
    let Some(approvals) = approved_servers() else { return false };
    let console = context.console;
    run_blocking(move || {
        // A store that cannot be read is reported by each start.
        let Ok(pending) = approvals.pending(&waiting) else { return false };
        if pending.is_empty() {
            return false;
        }
        console.print(&Report::err(question_text(&pending)));
        if !is_confirmed(io::stdin().lock()) {
            return false;
        }
        let all = pending.iter().map(|it| it.server);
        if let Err(error) = approvals.approve(all, SystemTime::now()) {
            console.print(&Report::err(console.note(&format!("the approval is not stored: {error}"))));
            return false;
        }
        pending.iter().any(|it| it.server.secrets.are_withheld)
    })
    .await
}

/// Whether one of these servers waits for an approval. Blocks.
pub(crate) fn has_unapproved(servers: &[ResolvedServer]) -> bool {
    let mut waiting = servers.iter().filter(|it| it.needs_approval).peekable();
    if waiting.peek().is_none() {
        return false;
    }
    // Without a store that can be read, none is approved.
    approved_servers().is_none_or(|approvals| !approvals.pending(waiting).is_ok_and(|it| it.is_empty()))
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
    let config = ConfigPath { path: file.to_owned(), is_discovered: true, is_of_project: true, text: None };
    let (Some(approvals), Ok(loaded)) = (approved_servers(), load(&context.load_request(&config))) else {
        return;
    };
    let written = loaded.desired.servers.iter().filter(|it| it.spec.id.as_str() == server);
    if let Err(error) = approvals.approve(written, SystemTime::now()) {
        tracing::warn!(%error, "the approval is not stored");
    }
}

/// The servers that wait for an approval, and the question.
fn question_text(pending: &[PendingServer<'_>]) -> String {
    let file = pending.first().map_or("", |it| it.server.spec.origin.file.as_str());
    let servers: String = pending.iter().map(start_text).collect();
    let (file, number) = (sanitize::line(file), count(pending.len(), "server"));
    let rights = rights_text(pending);
    format!(
        "{file} was found in this project. Nothing of it is started yet. It has {number} to approve:\n\
         {servers}{rights}Approve and start? [y/N] "
    )
}
