//! Runs the steps for one server, one after the other, until one fails.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{Endpoint, Secret, StdioEndpoint};
use mcp_host_registry::{CatalogServer, ServerLists};
use mcp_host_runtime::{Logins, ServerDefinitions, connect_help};
use mcp_host_transport::{
    DisconnectReason, ProcessExit, ProgramSearch, ProgramSearchResult, Session, find_missing_script,
    find_program, missing_command_help, missing_directory_help,
};

use super::findings::check_texts;
use super::lists::{FetchedLists, LimitScope, StartBudget, fetch_lists};
use super::lock_check::LockState;
use super::network::check_network;
use super::report::StepResult;
use super::step_log::StepLog;
use crate::config::approval::approval_error;
use crate::host;
use crate::runtime::run_blocking;

/// How long a server may take to end after the test. After that it is killed, and the test has a warning.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// A handshake that takes longer gets a warning.
const SLOW_HANDSHAKE: Duration = Duration::from_secs(5);

/// Tests one server. Returns what it offers if its lists were read. Dropping the future ends the process that it
/// started.
pub(super) async fn test_server(
    step_log: StepLog,
    server: ResolvedServer,
    lock: LockState,
) -> Option<CatalogServer> {
    let lists = read_lists(&step_log, &server, &lock).await;
    let (id, exposure) = (server.spec.id, server.spec.exposure);
    lists.map(|lists| CatalogServer::new(id, exposure, Arc::new(lists)))
}

/// Starts a server, reads its lists and ends it. Dropping the future ends the process that it started.
pub(super) async fn read_lists(
    step_log: &StepLog,
    server: &ResolvedServer,
    lock: &LockState,
) -> Option<ServerLists> {
    let mut lists = None;
    // The result is not needed: a failure is visible in the last step.
    let _ = run_steps(step_log, server, lock, &mut lists).await;
    lists
}

/// Runs the steps and stores the lists in `offered` once they are read. Returns `None` if a step failed.
async fn run_steps(
    step_log: &StepLog,
    server: &ResolvedServer,
    lock: &LockState,
    offered: &mut Option<ServerLists>,
) -> Option<()> {
    step_log
        .record("configuration", StepResult::passed("the entry is valid and its variables have values"))?;
    if let Some(error) = approval_error(server).await {
        let result = StepResult::failed(error.detail().to_owned(), error.help);
        step_log.record("approval", result)?;
    }
    if let Some(result) = lock.file_failure() {
        step_log.record("lock", result)?;
    }
    if let Some(result) = lock.check_program(server).await {
        step_log.record("lock", result)?;
    }
    let mut endpoint = server.endpoint.clone();
    match &mut endpoint {
        Endpoint::Stdio(stdio) => {
            step_log.begin("program");
            let result = check_program(stdio).await;
            step_log.record("program", result)?;
            if let Some(sandbox) = &stdio.sandbox {
                step_log.record("sandbox", StepResult::passed(sandbox.to_string()))?;
            }
        }
        Endpoint::Sse(url) | Endpoint::WebSocket(url) | Endpoint::Http(url) => {
            check_network(step_log, url, server.spec.limits.connect).await?;
        }
    }
    let session = connect(step_log, server, &endpoint).await?;
    // As in a host, handshake and lists share one time limit.
    let budget = StartBudget {
        deadline: session.start_deadline(),
        limit: server.spec.limits.startup,
        scope: LimitScope::Start,
    };
    let fetched = fetch_lists(step_log, server, &session, budget).await;
    let counters = session.counters();
    let (noise_bytes, dropped) = (counters.noise_bytes, counters.dropped_messages);
    // A larger amount is an oversized message, which has its own error.
    let too_large = u64::try_from(server.spec.limits.message_bytes).unwrap_or(u64::MAX);
    if noise_bytes > 0 && noise_bytes < too_large {
        let help = "a stdio server must write only MCP messages to its standard output, and its log to standard error";
        step_log.record(
            "noise",
            StepResult::warning(format!("{noise_bytes} bytes on standard output are not MCP messages"), help),
        )?;
    }
    if dropped > 0 {
        let help = "the server sends messages faster than they can be processed";
        step_log.record(
            "messages",
            StepResult::warning(format!("{dropped} messages of the server were dropped"), help),
        )?;
    }
    let FetchedLists { lists, complete_kinds } = fetched?;
    *offered = Some(lists.clone());
    let offer = ServerDefinitions::of(&session.server(), lists, complete_kinds);
    if let Some(result) = lock.compare(&server.spec.id, &offer) {
        step_log.record("lock", result)?;
    }
    step_log.record("texts", check_texts(&offer))?;
    step_log.begin("end");
    let closed = session.close(CLOSE_TIMEOUT).await;
    let result = if closed.evidence.exit.is_some_and(ProcessExit::was_killed) {
        StepResult::warning(
            format!("the server did not end in time and was killed{}", closed.evidence),
            "a server should end when its standard input is closed",
        )
    } else if closed.reason == DisconnectReason::PeerClosed {
        StepResult::warning(
            format!("the server ended by itself: {closed}"),
            "a server should run until it is closed; if it ends after a response, the next call waits until it is \
             started again",
        )
    } else {
        StepResult::passed("the server ended when it was asked to")
    };
    step_log.record("end", result)
}

/// Finds the program on the disk. Replaces the name `mcp-host` by the path of this executable.
async fn check_program(endpoint: &mut StdioEndpoint) -> StepResult {
    if endpoint.command == "mcp-host"
        && let Some(own_path) = env::current_exe().ok().and_then(|it| it.into_os_string().into_string().ok())
    {
        endpoint.command = own_path;
        return StepResult::passed("this program");
    }
    let directory =
        endpoint.cwd.clone().or_else(|| env::current_dir().ok()).unwrap_or_else(|| PathBuf::from("/"));
    if !directory.is_dir() {
        let directory = directory.display().to_string();
        return StepResult::failed(
            format!("the working directory {directory} does not exist"),
            Some(missing_directory_help(&directory)),
        );
    }
    let configured_path = endpoint
        .env
        .iter()
        .rev()
        .find(|(name, _)| name == "PATH")
        .map(|(_, value)| value.expose().to_owned());
    let is_configured = configured_path.is_some();
    let path = configured_path.or_else(|| env::var("PATH").ok()).unwrap_or_default();
    let command = endpoint.command.clone();
    let arguments = endpoint.args.clone();
    let shown_directory = directory.display().to_string();
    let (found, script) = run_blocking(move || {
        let arguments = arguments.iter().map(Secret::expose);
        let found = find_program(&command, ProgramSearch::new(&path, &directory));
        (found, find_missing_script(&command, arguments, &directory))
    })
    .await;
    let command = &endpoint.command;
    match (&found, script) {
        (ProgramSearchResult::Found(_), Some(script)) => StepResult::failed(
            format!("its script {script} does not exist in the working directory {shown_directory}"),
            Some("write its full path, or set `cwd` to the directory that it is in".to_owned()),
        ),
        (ProgramSearchResult::Found(path), None) => StepResult::passed(path.display().to_string()),
        (ProgramSearchResult::NotFound, _) if command.contains(std::path::is_separator) => {
            StepResult::failed(
                format!("the file {command} does not exist"),
                Some(missing_command_help(command)),
            )
        }
        (ProgramSearchResult::NotFound, _) if is_configured => StepResult::failed(
            format!("{command} is not on the PATH that the entry's `env` sets"),
            Some("add the program's folder to that PATH, or remove PATH from `env`".to_owned()),
        ),
        (ProgramSearchResult::NotFound, _) => {
            StepResult::failed(format!("{command} is not on the PATH"), Some(missing_command_help(command)))
        }
        (lookup, _) => match lookup.start_error() {
            Some(error) => StepResult::failed(error.to_string(), Some(error.help())),
            None => StepResult::passed(command),
        },
    }
}

/// Opens a session with the server, as the step `handshake`.
async fn connect(step_log: &StepLog, server: &ResolvedServer, endpoint: &Endpoint) -> Option<Session> {
    step_log.begin("handshake");
    let (limits, logins) = (server.spec.limits.clone(), Some(Logins::new(host::login_options())));
    let session = match host::open_session(server, endpoint, limits, logins.as_ref()).await {
        Ok(session) => session,
        Err(error) => {
            step_log.record("handshake", StepResult::failed(error.to_string(), connect_help(server, &error)));
            return None;
        }
    };
    let info = session.server();
    let identity = match (info.name.is_empty(), info.version.is_empty()) {
        (true, _) => "unnamed server".to_owned(),
        (false, true) => info.name.clone(),
        (false, false) => format!("{} {}", info.name, info.version),
    };
    let (era, version) = (session.era().as_str(), session.version().as_str());
    let message = format!("{identity}, {era} era, protocol {version}: {}", session.era_reason());
    let result = match (step_log.elapsed() >= SLOW_HANDSHAKE, endpoint.package_launcher()) {
        (false, _) => StepResult::passed(message),
        (true, Some(command)) => StepResult::warning(
            format!("{message}; slow"),
            format!("the first start with `{command}` downloads the package; later starts are faster"),
        ),
        (true, None) => StepResult::warning(
            format!("{message}; slow"),
            "check the server's log for what it does at its start",
        ),
    };
    step_log.record("handshake", result)?;
    Some(session)
}
