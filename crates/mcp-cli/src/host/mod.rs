//! Runs a host for the duration of a command: starts the servers before it and stops them after it.
//!
//! The first signal ends the command; the servers are then stopped gracefully. A second signal ends this wait; the
//! child processes are then killed when the runtime is dropped.

pub(crate) mod call_prompt;
pub(crate) mod known_tools;
pub(crate) mod startup;
pub(crate) mod tool_owners;

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mcp_host_config::ResolvedServer;
use mcp_host_model::{Endpoint, Limits, LogLevel, RawJson, ServerId};
use mcp_host_oauth::{MemoryTokenStore, TokenStore};
use mcp_host_runtime::{
    Approval, DesiredServers, FileTokenStore, Host, HostOptions, KeyringTokenStore, KeyringUse, LoginOptions,
    Logins, RequestingServers, StateFolderError, Supervision,
};
use mcp_host_transport::{
    ClientCapabilities, ClientInfo, ConnectError, DialOptions, Session, SessionOptions, dialer,
};
use tokio::time::timeout;

use crate::config::context::Context;
use crate::config::file::UsedServers;
use crate::config::project_trust::approved_servers;
use crate::config::refusal::open_with_lock;
use crate::config::user_secrets::keyring_use;
use crate::host::startup::{WaitFor, wait_for_servers};
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::log::OPERATOR;
use crate::output::{otlp, sanitize};
use crate::runtime::exit::Exit;
use crate::runtime::signals::{Signals, run_until_signal};

/// How long running calls may take to end when the servers are stopped.
const CALL_GRACE: Duration = Duration::from_secs(3);
/// How long the shutdown of all servers may take. The remaining ones are killed when the runtime is dropped.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(15);

/// Opens a configuration. Returns its servers, or only the one named `server`, and the content of the lock file.
pub(crate) async fn open_servers(
    context: &Context,
    file: Option<&Path>,
    server: Option<&str>,
    signals: &mut Signals,
) -> Result<(DesiredServers, Option<Approval>), Failure> {
    let used = UsedServers::named(server);
    let (file, approval) = run_until_signal(signals, open_with_lock(context, file, used)).await??;
    Ok((select_server(file.loaded.desired, server)?, approval))
}

/// Starts the servers, waits for them, prints the report of `work`, and stops the servers.
pub(crate) async fn report_with_servers(
    context: &Context,
    desired: DesiredServers,
    approval: Option<Approval>,
    signals: &mut Signals,
    work: impl AsyncFnOnce(&Host) -> Result<Report, Failure>,
) -> Exit {
    let exit = with_servers(desired, Supervision::Off, approval, signals, async |host| {
        wait_for_servers(host, &context.progress(), WaitFor::All).await;
        context.print_result(work(host).await).await
    });
    exit.await
}

/// Starts the servers, runs `work`, and stops the servers.
///
/// Commands that need one result use [`Supervision::Off`]: a server that cannot be reached is not retried.
pub(crate) async fn with_servers(
    desired: DesiredServers,
    supervision: Supervision,
    approval: Option<Approval>,
    signals: &mut Signals,
    work: impl AsyncFnOnce(&Host) -> Exit,
) -> Exit {
    let mut options = options(supervision);
    options.catalog.approval = approval;
    with_host(Host::start(options), desired, signals, work).await
}

/// Starts the servers like [`with_servers`]. `work` receives the signals itself, and returns its exit code after one.
pub(crate) async fn with_servers_and_signals(
    desired: DesiredServers,
    approval: Option<Approval>,
    signals: &mut Signals,
    work: impl AsyncFnOnce(&Host, &mut Signals) -> Exit,
) -> Exit {
    let mut options = options(Supervision::Off);
    options.catalog.approval = approval;
    let host = Host::start(options);
    let exit = match run_until_signal(signals, host.apply(desired)).await {
        Ok(_) => work(&host, signals).await,
        Err(signal) => Exit::Signal(signal),
    };
    stop(&host, exit, signals).await
}

/// Starts the servers in an existing host, runs `work`, and stops the host.
pub(crate) async fn with_host(
    host: Host,
    desired: DesiredServers,
    signals: &mut Signals,
    work: impl AsyncFnOnce(&Host) -> Exit,
) -> Exit {
    let exit = tokio::select! {
        biased;
        signal = signals.next() => Exit::Signal(signal),
        exit = async {
            host.apply(desired).await;
            work(&host).await
        } => exit,
    };
    stop(&host, exit, signals).await
}

/// Stops the host. Returns the exit code `exit`, or the signal that arrives meanwhile. If `exit` is a signal already,
/// another signal ends the wait.
pub(crate) async fn stop(host: &Host, mut exit: Exit, signals: &mut Signals) -> Exit {
    let stopping = timeout(SHUTDOWN_TIMEOUT, host.shutdown());
    tokio::pin!(stopping);
    loop {
        tokio::select! {
            biased;
            signal = signals.next() => match exit {
                Exit::Signal(_) => return exit,
                Exit::Success | Exit::Failure | Exit::Usage | Exit::Unreachable | Exit::DemoServer(_) => {
                    exit = Exit::Signal(signal);
                }
            },
            _ = &mut stopping => return exit,
        }
    }
}

/// Opens one session with a server, without a host. It uses the stored login of the server, and declares what `serve`
/// declares, so that it sees the same definitions.
pub(crate) async fn open_session(
    server: &ResolvedServer,
    endpoint: &Endpoint,
    limits: Limits,
    logins: Option<&Logins>,
) -> Result<Session, ConnectError> {
    let mut dial = DialOptions::default();
    dial.limits = limits.clone();
    dial.extra_secrets = server.config.iter().chain(&server.secrets.values).cloned().collect();
    dial.authorization =
        logins.and_then(|logins| logins.authorization(&server.spec.id, endpoint, &dial.authorities));
    let mut options = SessionOptions::default();
    options.client = client_info();
    options.limits = limits;
    options.config = server.config.clone();
    options.client_capabilities = gateway_capabilities();
    Session::connect(dialer(endpoint, &dial)?, options).await
}

/// The client capability for apps, a member of a JSON object. Every command declares it, so that `lock` and
/// `tools` see the same tools as the clients of `serve`.
pub(crate) const APPS_CAPABILITY: &str =
    r#""extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}"#;

/// The host options of every command.
pub(crate) fn options(supervision: Supervision) -> HostOptions {
    let mut options = HostOptions::default();
    options.client = client_info();
    // The next start uses the receipts to end the children of a killed host.
    options.processes.receipts = state_path("receipts", &|name| env::var_os(name));
    options.processes.own_executable = env::current_exe().ok();
    options.processes.shutdown_grace = CALL_GRACE;
    options.connections.set_logins(Some(Logins::new(login_options())));
    options.approvals = approved_servers();
    options.supervision = supervision;
    options.server_requests.declared_capabilities = client_capabilities(APPS_CAPABILITY);
    // With `--verbose`, servers are requested to send log messages too.
    let is_verbose = tracing::enabled!(target: "mcp_host_runtime", tracing::Level::INFO);
    options.telemetry.log_level = is_verbose.then_some(LogLevel::Debug);
    options.telemetry.contents = otlp::records_contents();
    options
}

/// The client capabilities that a gateway declares to servers, besides that for apps.
const GATEWAY_CAPABILITIES: &str =
    r#""sampling":{},"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true}"#;

/// The host options of `serve`, and of commands that must see what a server offers to `serve`.
///
/// A shared server receives the capabilities once, in its handshake, before any client is connected. So all are
/// declared. A server that uses one of them gets an instance for each client, with the capabilities of that client.
pub(crate) fn gateway_options(supervision: Supervision) -> HostOptions {
    let mut options = options(supervision);
    options.leases.requesting_servers = RequestingServers::Lease;
    options.server_requests.declared_capabilities = gateway_capabilities();
    options
}

/// The client capabilities that `serve` declares to servers.
fn gateway_capabilities() -> Option<ClientCapabilities> {
    client_capabilities(&format!("{GATEWAY_CAPABILITIES},{APPS_CAPABILITY}"))
}

/// The client capabilities whose JSON object has these members.
pub(crate) fn client_capabilities(members: &str) -> Option<ClientCapabilities> {
    RawJson::parse(format!("{{{members}}}").into()).ok().and_then(ClientCapabilities::new)
}

/// The client name and version that servers receive in `initialize`.
pub(crate) fn client_info() -> ClientInfo {
    ClientInfo::new("mcp-host", env!("CARGO_PKG_VERSION").to_owned())
}

/// The options of OAuth logins that use stored tokens. Without a folder for tokens there are none, as an error
/// says when a server requires a login.
pub(crate) fn login_options() -> LoginOptions {
    match login_folder() {
        Ok(folder) => {
            let help = Arc::new(|server: &ServerId| format!("run `mcp-host login {server}`"));
            let files = FileTokenStore::new(folder);
            let store: Arc<dyn TokenStore> = match keyring_use() {
                KeyringUse::Available => Arc::new(KeyringTokenStore::new(files)),
                KeyringUse::Off => Arc::new(files),
            };
            LoginOptions::new(store, "mcp-host", help)
        }
        Err(error) => {
            let reason = format!("stored logins are not used, because {error}: {}", error.help());
            let help = Arc::new(move |_: &ServerId| reason.clone());
            LoginOptions::new(Arc::new(MemoryTokenStore::default()), "mcp-host", help)
        }
    }
}

/// The folder of the stored logins.
pub(crate) fn login_folder() -> Result<PathBuf, StateFolderError> {
    mcp_host_runtime::state_path("mcp-host/logins", &|name| env::var_os(name))
}

/// A path in the state folder of this program; see [`mcp_host_runtime::state_path`]. `None` if there is no such folder;
/// one that is unsafe is logged.
pub(crate) fn state_path(name: &str, variable: &dyn Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = mcp_host_runtime::state_path(&format!("mcp-host/{name}"), variable);
    let log = |error: &StateFolderError| {
        if let StateFolderError::Unsafe(_) = error {
            tracing::error!(target: OPERATOR, "{name} is not stored: {error}; {}", error.help());
        }
    };
    path.inspect_err(log).ok()
}

/// Keeps only the server with this name, if there is one. If no server has it, the error lists the existing ones.
pub(crate) fn select_server(
    mut desired: DesiredServers,
    name: Option<&str>,
) -> Result<DesiredServers, Failure> {
    let Some(name) = name else { return Ok(desired) };
    let names: Vec<String> = desired
        .servers
        .iter()
        .map(|server| server.spec.id.to_string())
        .chain(desired.failed.iter().map(|server| server.id.to_string()))
        .collect();
    desired.servers.retain(|server| server.spec.id.as_str() == name);
    desired.failed.retain(|server| server.id == name);
    if !desired.servers.is_empty() || !desired.failed.is_empty() {
        return Ok(desired);
    }
    Err(Failure::usage(unknown_server(name, &names)))
}

/// The message about a server that does not exist.
pub(crate) fn unknown_server(name: &str, names: &[String]) -> String {
    let name = sanitize::line(name);
    if names.is_empty() {
        format!("there is no server `{name}`; no servers are configured")
    } else {
        format!("there is no server `{name}`; the servers are: {}", sanitize::line(&names.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use mcp_host_model::ErrorKind;
    use mcp_host_runtime::{FailedServer, HostError};

    use super::*;

    #[track_caller]
    fn check(state: Option<&str>, home: Option<&str>, want: Option<&str>) {
        let variable = |name: &str| match name {
            "XDG_STATE_HOME" => state.map(OsString::from),
            "HOME" => home.map(OsString::from),
            "LOCALAPPDATA" => None,
            other => panic!("unexpected variable {other}"),
        };
        assert_eq!(state_path("receipts", &variable), want.map(PathBuf::from));
    }

    #[test]
    fn receipts_are_in_the_state_folder() {
        check(Some("/s"), Some("/h"), Some("/s/mcp-host/receipts"));
        check(None, Some("/h"), Some("/h/.local/state/mcp-host/receipts"));
        check(Some("s"), Some("/h"), Some("/h/.local/state/mcp-host/receipts"));
        check(None, Some("h"), None);
        check(None, None, None);
    }

    #[test]
    fn unknown_server_error_lists_the_servers() {
        let failed = |id: &str| FailedServer {
            id: id.into(),
            error: HostError::new(ErrorKind::McpConfig, String::new()),
        };
        let desired = DesiredServers::default().with_failed([failed("a"), failed("b")]);
        assert_eq!(select_server(desired.clone(), Some("b")).unwrap().failed, [failed("b")]);
        let message = |desired| match select_server(desired, Some("c")) {
            Err(Failure::Error { exit: Exit::Usage, message, help: None }) => message,
            other => panic!("not a usage error: {other:?}"),
        };
        assert_eq!(message(desired), "there is no server `c`; the servers are: a, b");
        let none = DesiredServers::default();
        assert_eq!(message(none), "there is no server `c`; no servers are configured");
    }
}
