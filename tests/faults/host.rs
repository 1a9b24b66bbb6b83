//! A cell at mcp-host or mcp-gateway: a host with the faulty server and a healthy one, and a gateway client where the
//! gateway is tested.

use std::sync::Arc;
use std::time::Duration;

use mcp_host_config::ResolvedServer;
use mcp_host_gateway::{Bounds, Gateway, GatewayOptions, HttpOptions, HttpServer};
use mcp_host_model::{
    Endpoint, Limits, Profile, RawJson, ServerId, ServerSpec, Sharing, SpecOrigin, StdioSpec, TransportSpec,
    UrlEndpoint,
};
use mcp_host_runtime::{
    DesiredServers, Host, HostEvent, HostEventKind, HostOptions, HostSnapshot, NotificationStream,
    NotificationStreamItem, RestartPolicy, ServerState, ServerStatus, Supervision, ToolCall,
};
use mcp_host_transport::{CallError, CallOptions, DialOptions, Session, SessionOptions, dialer};
use mcp_tests::faults::Api;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::expectations::{self, LONG_LIMIT, call_outcome, is_one_of, shorten};
use crate::peer::Faulty;
use crate::run::Cell;
use crate::session::call_arguments;

/// The id of the faulty server.
const FAULTY: &str = "faulty";
/// The id of the healthy server.
const NEIGHBOUR: &str = "neighbour";

/// The time for the recovery of a server.
const RECOVERY_LIMIT: Duration = Duration::from_secs(60);

/// The outcome of the faulty request and of the server.
pub(crate) async fn run(faulty: &Faulty, cell: &Cell) -> String {
    let (row, variant, time_limits) = (&cell.row, cell.variant, cell.time_limits());
    let mut policy = RestartPolicy::default();
    policy.initial_backoff = Duration::from_millis(100);
    let host = Arc::new(Host::start({
        let mut res = HostOptions::default();
        res.connections.eras = expectations::eras(variant.era);
        res.connections.authorities = faulty.authorities();
        res.supervision = Supervision::Restart(policy);
        res.processes.shutdown_grace = Duration::from_millis(500);
        res
    }));
    let mut events = host.events();
    let faulty_endpoint = faulty.endpoint(variant.transport, &cell.key("faulty"), &row.script);
    let neighbour_endpoint = faulty.endpoint(variant.transport, &cell.key("neighbour"), "start=well");
    let servers = vec![
        resolved_server(FAULTY, faulty_endpoint, time_limits.limits(time_limits.request)),
        resolved_server(NEIGHBOUR, neighbour_endpoint, Limits::default()),
    ];
    host.apply(DesiredServers::new(servers)).await;
    host.wait_for_servers(&[id(NEIGHBOUR)]).await;
    let api = CallApi::new(cell.api, &host).await;
    assert_eq!(api.call("neighbour__other", &RawJson::empty_object()).await, "hello", "while it begins");
    let status = wait_until_started(&host, cell.expected_outcome()).await;
    let mut outcomes = Vec::new();
    if let (Some(failure), false) = (&status.error, status.state == ServerState::Ready) {
        outcomes.push(format!("not started: {}", failure.kind));
        let neighbour_outcome = api.call("neighbour__other", &RawJson::empty_object()).await;
        assert_eq!(neighbour_outcome, "hello", "while it is down");
    } else {
        let arguments = call_arguments(row);
        let no_arguments = RawJson::empty_object();
        let faulty_call = api.call("faulty__first", &arguments);
        let (first, neighbour_outcome) =
            tokio::join!(faulty_call, api.call("neighbour__other", &no_arguments));
        assert_eq!(neighbour_outcome, "hello", "while it is called");
        let want = cell.expected_outcome();
        let is_lost = if first == "hello" && want.ends_with("restarted") {
            // The next call waits for the restart, so it is not repeated.
            let is_lost = is_lost(&mut events, want).await;
            outcomes.extend([first, api.call("faulty__other", &no_arguments).await]);
            is_lost
        } else {
            outcomes.extend([first, next_call_outcome(&api, cell.next_outcome()).await]);
            is_lost(&mut events, want).await
        };
        if is_lost {
            outcomes.push("restarted".to_owned());
        }
        assert_eq!(api.call("neighbour__other", &no_arguments).await, "hello", "afterwards");
    }
    api.close().await;
    host.shutdown().await;
    outcomes.join(" | ")
}

/// The status after the first attempt. A server that is expected to start may need a second attempt on a busy machine,
/// because its time limits are short.
async fn wait_until_started(host: &Host, want: &str) -> ServerStatus {
    let status = host.wait_for_servers(&[id(FAULTY)]).await.remove(0);
    if status.state == ServerState::Ready || want.starts_with("not started") {
        return status;
    }
    let find_status =
        |snapshot: &Arc<HostSnapshot>| snapshot.servers.iter().find(|server| server.id == FAULTY).cloned();
    let mut snapshots = host.subscribe();
    let ready = snapshots
        .wait_for(|snapshot| find_status(snapshot).is_some_and(|server| server.state == ServerState::Ready));
    let _ = tokio::time::timeout(RECOVERY_LIMIT, ready).await;
    find_status(&host.snapshot()).unwrap_or(status)
}

/// The outcome of the next call, repeated until it is the expected one, because a lost server needs time to restart.
async fn next_call_outcome(api: &CallApi, want: &str) -> String {
    let start = tokio::time::Instant::now();
    let no_arguments = RawJson::empty_object();
    loop {
        let outcome = api.call("faulty__other", &no_arguments).await;
        if is_one_of(want, &outcome) || start.elapsed() > RECOVERY_LIMIT {
            return outcome;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Whether the server was lost, which may be noticed after the calls.
async fn is_lost(events: &mut NotificationStream<HostEvent>, want: &str) -> bool {
    let mut lost = async || {
        while let Some(NotificationStreamItem::Notification(event)) = events.next().await {
            if event.server == FAULTY && matches!(event.kind, HostEventKind::ConnectionLost(_)) {
                return;
            }
        }
        std::future::pending().await
    };
    let time_limits = if want.ends_with("restarted") { RECOVERY_LIMIT } else { Duration::ZERO };
    tokio::time::timeout(time_limits, lost()).await.is_ok()
}

/// The API where calls are made.
enum CallApi {
    Host(Arc<Host>),
    Gateway { client: Box<Session>, stop: oneshot::Sender<()>, serving: JoinHandle<()> },
}

impl CallApi {
    /// Starts a gateway if the API is its client.
    async fn new(api: Api, host: &Arc<Host>) -> CallApi {
        if api != Api::Gateway {
            return CallApi::Host(Arc::clone(host));
        }
        let mut bounds = Bounds::default();
        bounds.message_bytes = 16 << 20;
        let gateway = Gateway::new(Arc::clone(host), {
            let mut options = GatewayOptions::default();
            options.bounds = bounds;
            options
        });
        let server =
            HttpServer::bind("127.0.0.1:0".parse().unwrap(), gateway, HttpOptions::default()).await.unwrap();
        let endpoint =
            Endpoint::Http(UrlEndpoint::new(format!("http://{}/mcp", server.address()).parse().unwrap()));
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(server.serve(async { drop(stopped.await) }));
        let dial = dialer(&endpoint, &DialOptions::default()).unwrap();
        let client = Box::new(Session::connect(dial, SessionOptions::default()).await.unwrap());
        CallApi::Gateway { client, stop, serving }
    }

    /// The outcome of a call: its text, or the kind of its error.
    async fn call(&self, name: &str, arguments: &RawJson) -> String {
        match self {
            CallApi::Host(host) => {
                let result = host.call(ToolCall::new(name, arguments.clone())).await;
                match &result.error {
                    None => shorten(&result.text()),
                    Some(error) => error.kind.to_string(),
                }
            }
            CallApi::Gateway { client, .. } => {
                let options = CallOptions::with_timeout(2 * LONG_LIMIT);
                match client.call_tool(name, arguments, options).await {
                    Err(CallError::Rpc(error)) => error_kind(&error.message)
                        .map_or_else(|| format!("error {}", error.code), str::to_owned),
                    other => call_outcome(other.map(|it| it.value.text())),
                }
            }
        }
    }

    /// Ends the client and the server of the gateway.
    async fn close(self) {
        if let CallApi::Gateway { client, stop, serving } = self {
            client.close(Duration::from_secs(5)).await;
            drop(client);
            drop(stop);
            serving.await.unwrap();
        }
    }
}

/// The kind at the beginning of an error message; a server's own error has none.
fn error_kind(message: &str) -> Option<&str> {
    let word = message.split(':').next()?;
    (word.starts_with("MCP") && word.ends_with("Error")).then_some(word)
}

/// Parses a valid id.
fn id(name: &str) -> ServerId {
    ServerId::parse(name).unwrap()
}

/// A server as a configuration defines it.
pub(crate) fn resolved_server(name: &str, endpoint: Endpoint, limits: Limits) -> ResolvedServer {
    let origin = SpecOrigin::new(Profile::HoloDeck, "f");
    // The endpoint determines how it starts.
    let transport = TransportSpec::Stdio(StdioSpec::new(name));
    let mut spec = ServerSpec::new(id(name), origin, transport);
    (spec.limits, spec.sharing) = (limits, Sharing::Shared);
    ResolvedServer::new(spec, endpoint)
}
