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

use crate::expectations::{self, LONG, is_one_of, outcome, shown};
use crate::peer::Faulty;
use crate::run::Cell;
use crate::session::arguments;

const FAULTY: &str = "faulty";
const NEIGHBOUR: &str = "neighbour";

/// The time for the recovery of a server.
const RECOVERY: Duration = Duration::from_secs(60);

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
    let faulty_one = faulty.endpoint(variant.transport, &cell.key("faulty"), &row.script);
    let neighbour = faulty.endpoint(variant.transport, &cell.key("neighbour"), "start=well");
    let servers = vec![
        server(FAULTY, faulty_one, time_limits.limits(time_limits.request)),
        server(NEIGHBOUR, neighbour, Limits::default()),
    ];
    host.apply(DesiredServers::new(servers)).await;
    host.wait_for_servers(&[id(NEIGHBOUR)]).await;
    let api = CallApi::new(cell.api, &host).await;
    assert_eq!(api.call("neighbour__other", &RawJson::empty_object()).await, "hello", "while it begins");
    let status = started(&host, cell.want()).await;
    let mut said = Vec::new();
    if let (Some(failure), false) = (&status.error, status.state == ServerState::Ready) {
        said.push(format!("not started: {}", failure.kind));
        let beside = api.call("neighbour__other", &RawJson::empty_object()).await;
        assert_eq!(beside, "hello", "while it is down");
    } else {
        let arguments = arguments(row);
        let nothing = RawJson::empty_object();
        let first = api.call("faulty__first", &arguments);
        let (first, beside) = tokio::join!(first, api.call("neighbour__other", &nothing));
        assert_eq!(beside, "hello", "while it is called");
        said.push(first);
        said.push(after(&api, cell.next()).await);
        if is_lost(&mut events, cell.want()).await {
            said.push("restarted".to_owned());
        }
        assert_eq!(api.call("neighbour__other", &nothing).await, "hello", "afterwards");
    }
    api.end().await;
    host.shutdown().await;
    said.join(" | ")
}

/// The status after the first attempt. A server that is expected to start may need a second attempt on a busy machine,
/// because its time limits are short.
async fn started(host: &Host, want: &str) -> ServerStatus {
    let status = host.wait_for_servers(&[id(FAULTY)]).await.remove(0);
    if status.state == ServerState::Ready || want.starts_with("not started") {
        return status;
    }
    let of = |server: &Arc<HostSnapshot>| server.servers.iter().find(|server| server.id == FAULTY).cloned();
    let mut published = host.subscribe();
    let ready =
        published.wait_for(|server| of(server).is_some_and(|server| server.state == ServerState::Ready));
    let _ = tokio::time::timeout(RECOVERY, ready).await;
    of(&host.snapshot()).unwrap_or(status)
}

/// The outcome of the next call, repeated until it is the expected one, because a lost server needs time to restart.
async fn after(api: &CallApi, want: &str) -> String {
    let begun = tokio::time::Instant::now();
    let nothing = RawJson::empty_object();
    loop {
        let outcome = api.call("faulty__other", &nothing).await;
        if is_one_of(want, &outcome) || begun.elapsed() > RECOVERY {
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
    let time_limits = if want.ends_with("restarted") { RECOVERY } else { Duration::ZERO };
    tokio::time::timeout(time_limits, lost()).await.is_ok()
}

/// The API where calls are made.
enum CallApi {
    Host(Arc<Host>),
    Gateway { client: Box<Session>, stop: oneshot::Sender<()>, serving: JoinHandle<()> },
}

impl CallApi {
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
                    None => shown(&result.text()),
                    Some(error) => error.kind.to_string(),
                }
            }
            CallApi::Gateway { client, .. } => {
                let options = CallOptions::with_timeout(2 * LONG);
                match client.call_tool(name, arguments, options).await {
                    Err(CallError::Rpc(error)) => {
                        kind_of(&error.message).map_or_else(|| format!("error {}", error.code), str::to_owned)
                    }
                    other => outcome(other.map(|it| it.value.text())),
                }
            }
        }
    }

    async fn end(self) {
        if let CallApi::Gateway { client, stop, serving } = self {
            client.close(Duration::from_secs(5)).await;
            drop(client);
            drop(stop);
            serving.await.unwrap();
        }
    }
}

/// The kind at the beginning of an error message; a server's own error has none.
fn kind_of(message: &str) -> Option<&str> {
    let word = message.split(':').next()?;
    (word.starts_with("MCP") && word.ends_with("Error")).then_some(word)
}

fn id(name: &str) -> ServerId {
    ServerId::parse(name).unwrap()
}

/// A server as a configuration defines it.
pub(crate) fn server(name: &str, endpoint: Endpoint, limits: Limits) -> ResolvedServer {
    let origin = SpecOrigin::new(Profile::HoloDeck, "f");
    // The endpoint determines how it starts.
    let transport = TransportSpec::Stdio(StdioSpec::new(name));
    let mut spec = ServerSpec::new(id(name), origin, transport);
    (spec.limits, spec.sharing) = (limits, Sharing::Shared);
    ResolvedServer::new(spec, endpoint)
}
