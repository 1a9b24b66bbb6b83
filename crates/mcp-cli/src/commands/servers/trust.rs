//! `trust`: approves what the servers of a project's configuration start, lists the approvals, and withdraws them.

use std::fs;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use mcp_host_runtime::{ApprovedServer, ApprovedServers, FailedServer, LoadedConfig};
use serde::Serialize;

use crate::args::{Format, TrustArgs};
use crate::config::context::Context;
use crate::config::file::open;
use crate::config::project_trust::approved_servers;
use crate::config::start_text::{rights_text, start_text};
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::question::{is_confirmed, is_interactive};
use crate::output::{count, json, sanitize};
use crate::runtime::exit::Exit;

/// The JSON document of the command.
#[derive(Serialize)]
struct TrustJson {
    /// The approved servers of the file, or of all files.
    approved: Vec<ApprovedServer>,
    /// The number of approvals that were withdrawn.
    revoked: usize,
}

/// Approves, lists or withdraws. Blocks.
pub(crate) fn run(context: &Context, args: &TrustArgs) -> Result<Report, Failure> {
    let approvals = approved_servers()
        .ok_or_else(|| Failure::new("there is no private state folder for approvals; set XDG_STATE_HOME"))?;
    let failed = |error: io::Error| Failure::new(format!("the approved servers cannot be used: {error}"));
    if args.list {
        let all = approvals.list().map_err(failed)?;
        let text = list_text(&all);
        return Ok(report(context, TrustJson { approved: all, revoked: 0 }, text));
    }
    let file = args.file.as_deref().unwrap_or(Path::new(""));
    let config = open(file, context)?;
    let path = fs::canonicalize(&config.path).unwrap_or_else(|_| config.path.clone()).display().to_string();
    let notes = config.detection_notes();
    let mut res = if args.revoke {
        let revoked = approvals.revoke(|it| it.file == path).map_err(failed)?;
        let text = format!("{} withdrawn\n", count(revoked, "approval"));
        report(context, TrustJson { approved: Vec::new(), revoked }, text)
    } else {
        approve(context, &approvals, &config.loaded, &path)?
    };
    res.err.insert_str(0, &notes);
    Ok(res)
}

/// Shows what the servers of a file start, and approves them. At a terminal it asks first.
fn approve(
    context: &Context,
    approvals: &ApprovedServers,
    loaded: &LoadedConfig,
    path: &str,
) -> Result<Report, Failure> {
    let failed = |error: io::Error| Failure::new(format!("the approved servers cannot be used: {error}"));
    if loaded.refused {
        let help = "`mcp-host check` shows its mistakes";
        return Err(Failure::new("the file has an error that affects all servers").help(Some(help)));
    }
    let servers = &loaded.desired.servers;
    let pending = approvals.pending(servers).map_err(failed)?;
    let shown: String = pending.iter().map(start_text).collect::<String>() + rights_text(&pending);
    let is_asked = !pending.is_empty() && is_interactive();
    if is_asked {
        let question = format!(
            "{} has {} to approve. Nothing of it is started:\n{shown}Approve? [y/N] ",
            sanitize::line(&loaded.path),
            count(pending.len(), "server")
        );
        context.console.print(&Report::err(question));
        if !is_confirmed(io::stdin().lock()) {
            return Ok(Report { exit: Exit::Failure, ..Report::err("nothing is approved\n".to_owned()) });
        }
    }
    approvals.approve(pending.iter().map(|it| it.server), SystemTime::now()).map_err(failed)?;
    let text = match pending.len() {
        0 => format!("{} of this file: all approved\n", count(servers.len(), "server")),
        new if is_asked => format!("{} approved\n", count(new, "server")),
        new => format!("{shown}{} approved\n", count(new, "server")),
    };
    let mut approved = approvals.list().map_err(failed)?;
    approved.retain(|it| it.file == path);
    let mut res = report(context, TrustJson { approved, revoked: 0 }, text);
    for FailedServer { error, .. } in &loaded.desired.failed {
        res.err.push_str(&format!("not approved: {}\n", sanitize::block(&error.to_string())));
        res.exit = Exit::Failure;
    }
    Ok(res)
}

fn report(context: &Context, document: TrustJson, text: String) -> Report {
    Report::out(match context.format {
        Format::Json => json::document(&document),
        Format::Text => text,
    })
}

fn list_text(all: &[ApprovedServer]) -> String {
    let line = |it: &ApprovedServer| {
        let ApprovedServer { file, server, target, .. } = it;
        format!("{}: {} in {}\n", sanitize::line(server), sanitize::line(target), sanitize::line(file))
    };
    if all.is_empty() { "nothing is approved\n".to_owned() } else { all.iter().map(line).collect() }
}
