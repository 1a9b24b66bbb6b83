//! Approval of the servers of a project: asks at a terminal, and stores the answer.

use std::io::{self, BufRead, IsTerminal};
use std::path::Path;
use std::time::SystemTime;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{Endpoint, Secret};
use mcp_host_runtime::{HostError, LoadRequest, LoadedConfig, PendingServer, load};

use crate::config::context::Context;
use crate::config::locate::ConfigPath;
use crate::config::project_trust::approved_servers;
use crate::output::console::Report;
use crate::output::sanitize;
use crate::runtime::run_blocking;

/// The maximum size of an answer.
const MAX_ANSWER_BYTES: u64 = 4 << 10;

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
    let read = input.take(MAX_ANSWER_BYTES).read_line(&mut line);
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
            if let Some(sandbox) = &stdio.sandbox {
                text.push_str(&format!("\n    in a sandbox: {}", sanitize::line(&sandbox.to_string())));
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
    if !server.secrets.names.is_empty() {
        text.push_str(&format!(
            "\n    reads the secrets {}",
            sanitize::line(&server.secrets.names.join(", "))
        ));
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_a_confirmation() {
        for (line, want) in [("y\n", true), ("YES\n", true), ("\n", false), ("", false), ("yep\n", false)] {
            assert_eq!(is_confirmed(line.as_bytes()), want, "{line}");
        }
    }
}
