//! Sessions with in-memory servers, and helpers for tests.

use std::sync::Arc;
use std::time::Duration;

use mcp_host_acp::{
    AcpVersion, AgentProfile, Capabilities, SessionMethod, SessionRequest, ValidatedRequest, validate,
};
use mcp_host_acp_agent::{ConnectOptions, ConnectionState, SessionServers, ToolCall};
use mcp_host_model::{CallResult, RawJson};
use mcp_host_runtime::{Dialer, HostOptions, Supervision};
use mcp_host_transport::{Disconnect, DisconnectReason, Link, RequestError, StartError};
use mcp_testkit::servers::{DemoServers, in_memory};
use serde_json::Value;

/// A dialer of in-memory servers. The name of a server selects its behaviour by its beginning: `silent` never
/// responds, `gone` cannot be reached, `locked` requires another authentication, `slow` responds after a minute,
/// `mortal` exits after a minute; others are demo servers.
fn dialer() -> Dialer {
    Arc::new(|server, _| {
        let name = server.spec.id.as_str();
        Ok(if name.starts_with("silent") {
            in_memory(
                "in memory",
                |Link { outbound: _outbound, inbound: _inbound, mut shutdown, .. }| async move {
                    shutdown.requested().await;
                    Disconnect::new(DisconnectReason::Stopped)
                },
            )
        } else if name.starts_with("gone") {
            in_memory("in memory", |_| async { refusal(None, "connection refused") })
        } else if name.starts_with("locked") {
            in_memory("in memory", |_| async { refusal(Some(401), "the server answered with status 401") })
        } else if name.starts_with("slow") {
            in_memory("in memory", |link| async {
                tokio::time::sleep(MINUTE).await;
                serve(link).await
            })
        } else if name.starts_with("mortal") {
            in_memory("in memory", |link| async {
                let served = tokio::time::timeout(MINUTE, serve(link)).await;
                served.unwrap_or_else(|_| Disconnect::new(DisconnectReason::PeerClosed))
            })
        } else {
            Arc::<DemoServers>::default().dial()
        })
    })
}

async fn serve(link: Link) -> Disconnect {
    Arc::<DemoServers>::default().dial().dial().run(link).await
}

fn refusal(status: Option<u16>, message: &str) -> Disconnect {
    let problem = message.to_owned();
    let refusal = match status {
        Some(status) => RequestError::InvalidResponse { status, problem },
        None => RequestError::Other(problem),
    };
    Disconnect::new(DisconnectReason::NotStarted(StartError::Refused(refusal)))
}

/// How long `slow` and `mortal` servers take.
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

/// Options for in-memory servers: no restarts, 10 s for each start and 20 s for all.
pub(crate) fn options() -> ConnectOptions {
    let mut options = process_options();
    options.dialer = Some(dialer());
    options.limits.startup = Duration::from_secs(10);
    options.total_timeout = Duration::from_secs(20);
    options
}

/// Options for real servers: no restarts.
pub(crate) fn process_options() -> ConnectOptions {
    let mut host = HostOptions::default();
    host.supervision = Supervision::Off;
    let mut options = ConnectOptions::default();
    options.host = host;
    options
}

/// A request with these entries, validated for an agent with all capabilities.
pub(crate) fn validated(servers: &Value) -> ValidatedRequest {
    let mut capabilities = Capabilities::STDIO;
    capabilities.http = true;
    capabilities.sse = true;
    capabilities.acp = true;
    let cwd = std::env::temp_dir();
    let params = serde_json::json!({ "cwd": cwd, "mcpServers": servers });
    let request = SessionRequest::new(SessionMethod::New, RawJson::from_value(&params).unwrap());
    validate(&request, &AgentProfile::new(AcpVersion::V1, &capabilities)).unwrap()
}

/// Entries of in-memory servers with these names.
pub(crate) fn entries(names: &[&str]) -> Value {
    let entry = |name: &&str| {
        serde_json::json!({"type": "http", "name": name, "url": "https://memory.example/mcp",
        "headers": []})
    };
    names.iter().map(entry).collect()
}

/// A session with these in-memory servers.
pub(crate) async fn session(names: &[&str]) -> SessionServers {
    SessionServers::connect(validated(&entries(names)), options()).await.unwrap()
}

/// The states of the servers, for example `a:connected b:failed`.
pub(crate) fn summary(session: &SessionServers) -> String {
    let statuses = session.statuses();
    let states: Vec<_> =
        statuses.iter().map(|status| format!("{}:{}", status.name, status.state.as_str())).collect();
    states.join(" ")
}

/// The failure of a server as the JSON of its error.
pub(crate) fn failure(session: &SessionServers, name: &str) -> String {
    let statuses = session.statuses();
    let status = statuses.iter().find(|item| item.name == name).unwrap();
    let ConnectionState::Failed(failure) = &status.state else {
        panic!("{name} is {}", status.state.as_str())
    };
    serde_json::to_string_pretty(&mcp_host_model::RpcError::from(failure)).unwrap()
}

pub(crate) fn tool_call(name: &str, arguments: &str) -> ToolCall {
    ToolCall::new(name, RawJson::parse(arguments.to_owned().into()).unwrap())
}

/// The text of a result, or its error as `<kind>: <message>`.
pub(crate) fn text_or_error(result: &CallResult) -> String {
    match &result.error {
        None => result.text(),
        Some(error) => format!("{}: {}", error.kind, error.message),
    }
}
