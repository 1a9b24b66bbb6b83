//! `doctor --learn`: starts a server in sandboxes, and proposes the smallest one in which it works.
//!
//! A server works if it starts, and if its lists are those that it has in the largest sandbox. No start is outside of a
//! sandbox. What the calls of its tools need is not known.

mod search;

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mcp_host_config::{ResolvedServer, propose_sandbox, sandbox_text};
use mcp_host_model::{Endpoint, Sandbox, SandboxPreset};
use mcp_host_registry::ServerLists;
use mcp_host_runtime::DesiredServers;
use serde::Serialize;

use super::lock_check::LockState;
use super::step_log::StepLog;
use super::steps::read_lists;
use crate::args::Format;
use crate::config::approval::approval_error;
use crate::config::context::Context;
use crate::output::console::Report;
use crate::output::{count, json, quote, sanitize};
use crate::render::suggestions::SuggestedFile;
use crate::runtime::exit::Exit;
use search::{Learned, Search, all_permissions, sandbox};

/// Added to twice the time of the first start. A later start that takes longer has failed.
const MORE_TIME: Duration = Duration::from_secs(5);

/// What was learned about one server.
#[derive(Serialize)]
struct LearnedServer {
    server: String,
    /// The value of the key `sandbox`, as JSON; `None` if it works in no sandbox.
    sandbox: Option<String>,
    /// How often it was started.
    starts: usize,
    /// Whether nothing of the sandbox can be left out.
    is_smallest: bool,
    /// Why there is no sandbox.
    error: Option<String>,
}

/// The JSON document of the command.
#[derive(Serialize)]
struct LearnJson {
    servers: Vec<LearnedServer>,
}

/// Learns the sandboxes of the servers, one after the other. Dropping the future ends the process that runs.
pub(super) async fn learn(
    context: &Context,
    desired: DesiredServers,
    lock: &LockState,
    file: &SuggestedFile,
) -> Report {
    let mut servers = Vec::new();
    for server in desired.servers {
        let progress = context.progress();
        let _clear = progress.clear_on_drop();
        progress.show(&format!("learning the sandbox of {}", sanitize::line(server.spec.id.as_str())));
        servers.push(learn_server(server, lock).await);
    }
    for failed in desired.failed {
        let error = Some(failed.error.to_string());
        servers.push(LearnedServer {
            server: failed.id.to_string(),
            sandbox: None,
            starts: 0,
            is_smallest: false,
            error,
        });
    }
    let exit = if servers.iter().all(|it| it.sandbox.is_some()) { Exit::Success } else { Exit::Unreachable };
    let out = match context.format {
        Format::Text if servers.is_empty() => "no servers are configured\n".to_owned(),
        Format::Text => servers.iter().map(|it| learned_text(it, file)).collect::<Vec<_>>().join("\n"),
        Format::Json => json::document(&LearnJson { servers }),
    };
    Report { exit, ..Report::out(out) }
}

/// Learns the sandbox of one server.
async fn learn_server(server: ResolvedServer, lock: &LockState) -> LearnedServer {
    let name = server.spec.id.to_string();
    let failed = |starts, error: String| LearnedServer {
        server: name.clone(),
        sandbox: None,
        starts,
        is_smallest: false,
        error: Some(error),
    };
    let Endpoint::Stdio(endpoint) = &server.endpoint else {
        return failed(0, "it is not started here, so it has no sandbox".to_owned());
    };
    // A container has a boundary of its own, and its client cannot work in a sandbox.
    if propose_sandbox(&endpoint.command).preset == SandboxPreset::Off {
        return LearnedServer {
            server: name,
            sandbox: Some(sandbox_text(&Sandbox::new(SandboxPreset::Off))),
            starts: 0,
            is_smallest: true,
            error: None,
        };
    }
    if let Some(error) = approval_error(&server).await {
        return failed(0, error.to_string());
    }
    let refusal = match lock.file_failure() {
        None => lock.check_program(&server).await,
        failure => failure,
    };
    if let Some(refusal) = refusal {
        return failed(0, refusal.message);
    }
    let variables = env::vars_os().filter_map(|it| it.0.into_string().ok()).collect();
    let all = all_permissions(variables);
    let begun = Instant::now();
    let (wanted, error) = try_start(&server, &sandbox(&all), None).await;
    let Some(wanted) = wanted else {
        let error = error.unwrap_or_else(|| "its lists cannot be read".to_owned());
        return failed(1, format!("it works in no sandbox: {error}"));
    };
    let limit = begun.elapsed() * 2 + MORE_TIME;
    let works =
        async |sandbox: &Sandbox| try_start(&server, sandbox, Some(limit)).await.0.as_ref() == Some(&wanted);
    let Learned { permissions, starts, is_smallest } = Search::new(works, entries).run(all).await;
    let sandbox = sandbox_text(&with_home(sandbox(&permissions)));
    LearnedServer { server: name, sandbox: Some(sandbox), starts: starts + 1, is_smallest, error: None }
}

/// What a server offers: the names in its lists.
type Offer = BTreeSet<String>;

/// Starts a server in a sandbox, reads its lists and ends it. The error is the message of the step that failed.
async fn try_start(
    server: &ResolvedServer,
    sandbox: &Sandbox,
    limit: Option<Duration>,
) -> (Option<Offer>, Option<String>) {
    let mut server = server.clone();
    // The approval and the lock file were checked for the entry as it is.
    server.needs_approval = false;
    if let Endpoint::Stdio(endpoint) = &mut server.endpoint {
        endpoint.sandbox = Some(sandbox.clone());
    }
    server.spec.limits.startup =
        limit.map_or(server.spec.limits.startup, |it| it.min(server.spec.limits.startup));
    let log = StepLog::new();
    let lists = read_lists(&log, &server, &LockState::None).await;
    let error = log.steps().pop().map(|it| it.message);
    (lists.map(|it| offer(&it)), error)
}

fn offer(lists: &ServerLists) -> Offer {
    let ServerLists { tools, prompts, resources, templates, rejected, .. } = lists;
    let tools = tools.iter().map(|it| format!("tool {}", it.name));
    let prompts = prompts.iter().map(|it| format!("prompt {}", it.name));
    let counts = [
        format!("{} templates", templates.len()),
        format!("{} resources", resources.len()),
        format!("{} invalid", rejected.len()),
    ];
    tools.chain(prompts).chain(counts).collect()
}

/// The entries of a folder, in their order; none for a file or a link.
fn entries(path: &Path) -> Vec<PathBuf> {
    let is_folder = fs::symlink_metadata(path).is_ok_and(|it| it.is_dir());
    let read = if is_folder { fs::read_dir(path).ok() } else { None };
    let mut res: Vec<PathBuf> = read.into_iter().flatten().flatten().map(|it| it.path()).collect();
    res.sort();
    res
}

/// The sandbox with paths as they are written: `~` for the home folder.
fn with_home(mut sandbox: Sandbox) -> Sandbox {
    let home = env::var("HOME").unwrap_or_default();
    for path in sandbox.read.iter_mut().chain(&mut sandbox.write) {
        if let Some(rest) = path.strip_prefix(&home).filter(|it| !home.is_empty() && it.starts_with('/')) {
            *path = format!("~{rest}");
        }
    }
    sandbox
}

/// The lines about a server.
fn learned_text(learned: &LearnedServer, file: &SuggestedFile) -> String {
    let LearnedServer { server, sandbox, starts, is_smallest, error } = learned;
    let name = sanitize::line(server);
    let Some(sandbox) = sandbox else {
        return format!("{name}: no sandbox: {}\n", sanitize::line(error.as_deref().unwrap_or_default()));
    };
    let sandbox = sanitize::line(sandbox);
    let effort = match (starts, is_smallest) {
        (0, _) => "a container has a boundary of its own".to_owned(),
        (starts, true) => {
            format!("the smallest in which it starts and lists, after {}", count(*starts, "start"))
        }
        (starts, false) => format!("not the smallest, because {} were not enough", count(*starts, "start")),
    };
    let change = quote(&format!("sandbox:={sandbox}"));
    // The command needs a file or a folder.
    let set = file.command("set");
    let set = if set.ends_with(" set") { set + " ." } else { set };
    let command = format!("{set} {} {change}", quote(&name));
    format!("{name}: {effort}\n  \"sandbox\": {sandbox}\n  write it with: {command}\n")
}
