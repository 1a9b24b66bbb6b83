//! A cell at the faces of mcp-host and mcp-gateway: a host with the faulty server and a neighbour, and before it, where
//! the gateway is looked at, a client of that.

use std::sync::Arc;
use std::time::Duration;

use mcp_config::ResolvedServer;
use mcp_gateway::{Bounds, Gateway, GatewayOptions, HttpOptions, HttpServer};
use mcp_host::{
    ConnectionOptions, DesiredServers, Host, HostEvent, HostEventKind, HostOptions, HostSnapshot,
    ProcessOptions, RestartPolicy, ServerState, ServerStatus, Supervision, ToolCall,
};
use mcp_model::{
    Dialect, Discovery, Endpoint, Exposure, Limits, NameClass, NamePolicy, Origin, RawJson, ServerId,
    ServerSpec, Sharing, StdioEndpoint, StdioSpec, TransportSpec, UrlEndpoint,
};
use mcp_tests::faults::Face;
use mcp_transport::{CallError, CallOptions, DialOptions, Session, SessionOptions, dialer};
use tokio::sync::{broadcast, oneshot};
use tokio::task::JoinHandle;

use crate::expectations::{self, LONG, is_one_of, shown, told};
use crate::peer::Faulty;
use crate::run::Cell;
use crate::session::arguments;

const FAULTY: &str = "faulty";
const NEIGHBOUR: &str = "neighbour";

/// How long a server may need to be well again.
const RECOVERY: Duration = Duration::from_secs(60);

/// What comes of it: of the faulty request, and what becomes of the server.
pub(crate) async fn run(faulty: &Faulty, cell: &Cell) -> String {
    let (row, way, patience) = (&cell.row, cell.way, cell.patience());
    let policy = RestartPolicy { initial_backoff: Duration::from_millis(100), ..RestartPolicy::default() };
    let host = Arc::new(Host::start(HostOptions {
        connections: ConnectionOptions {
            eras: expectations::eras(way.era),
            authorities: faulty.authorities(),
            ..ConnectionOptions::default()
        },
        supervision: Supervision::Restart(policy),
        processes: ProcessOptions { shutdown_grace: Duration::from_millis(500), ..ProcessOptions::default() },
        ..HostOptions::default()
    }));
    let mut events = host.events();
    let faulty_one = faulty.endpoint(way.wire, &cell.key("faulty"), &row.script);
    let neighbour = faulty.endpoint(way.wire, &cell.key("neighbour"), "start=well");
    let servers = vec![
        server(FAULTY, faulty_one, patience.limits(patience.request)),
        server(NEIGHBOUR, neighbour, Limits::default()),
    ];
    host.apply(DesiredServers { servers, failed: Vec::new() }).await;
    host.wait_for(&[id(NEIGHBOUR)]).await;
    let face = Front::new(cell.face, &host).await;
    assert_eq!(face.call("neighbour__other", &RawJson::empty_object()).await, "hello", "while it begins");
    let status = started(&host, cell.want()).await;
    let mut said = Vec::new();
    if let (Some(failure), false) = (&status.error, status.state == ServerState::Ready) {
        said.push(format!("not started: {}", failure.kind));
        let beside = face.call("neighbour__other", &RawJson::empty_object()).await;
        assert_eq!(beside, "hello", "while it is down");
    } else {
        let arguments = arguments(row);
        let nothing = RawJson::empty_object();
        let first = face.call("faulty__first", &arguments);
        let (first, beside) = tokio::join!(first, face.call("neighbour__other", &nothing));
        assert_eq!(beside, "hello", "while it is called");
        said.push(first);
        said.push(after(&face, cell.next()).await);
        if is_lost(&mut events, cell.want()).await {
            said.push("started again".to_owned());
        }
        assert_eq!(face.call("neighbour__other", &nothing).await, "hello", "afterwards");
    }
    face.end().await;
    host.shutdown().await;
    said.join(" | ")
}

/// How it stands once it was tried. One that is expected to come up may need a second time on a machine that has much else
/// to do, for its requests have little time.
async fn started(host: &Host, want: &str) -> ServerStatus {
    let status = host.wait_for(&[id(FAULTY)]).await.remove(0);
    if status.state == ServerState::Ready || want.starts_with("not started") {
        return status;
    }
    let of = |it: &Arc<HostSnapshot>| it.servers.iter().find(|it| it.id == FAULTY).cloned();
    let mut published = host.subscribe();
    let ready = published.wait_for(|it| of(it).is_some_and(|it| it.state == ServerState::Ready));
    let _ = tokio::time::timeout(RECOVERY, ready).await;
    of(&host.snapshot()).unwrap_or(status)
}

/// What the next call tells, once it is what is expected of it: a server that was lost needs a moment to be there again.
async fn after(face: &Front, want: &str) -> String {
    let begun = tokio::time::Instant::now();
    let nothing = RawJson::empty_object();
    loop {
        let told = face.call("faulty__other", &nothing).await;
        if is_one_of(want, &told) || begun.elapsed() > RECOVERY {
            return told;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Was the server lost? That may come a moment after what its calls tell.
async fn is_lost(events: &mut broadcast::Receiver<HostEvent>, want: &str) -> bool {
    let mut lost = async || {
        while let Ok(event) = events.recv().await {
            if event.server == FAULTY && matches!(event.kind, HostEventKind::Lost(_)) {
                return;
            }
        }
        std::future::pending().await
    };
    let patience = if want.ends_with("started again") { RECOVERY } else { Duration::ZERO };
    tokio::time::timeout(patience, lost()).await.is_ok()
}

/// Where calls are made.
enum Front {
    Host(Arc<Host>),
    Gateway { client: Box<Session>, stop: oneshot::Sender<()>, serving: JoinHandle<()> },
}

impl Front {
    async fn new(face: Face, host: &Arc<Host>) -> Front {
        if face != Face::Gateway {
            return Front::Host(Arc::clone(host));
        }
        let bounds = Bounds { message_bytes: 16 << 20, ..Bounds::default() };
        let gateway = Gateway::new(Arc::clone(host), GatewayOptions { bounds, ..GatewayOptions::default() });
        let server =
            HttpServer::bind("127.0.0.1:0".parse().unwrap(), gateway, HttpOptions::default()).await.unwrap();
        let endpoint =
            Endpoint::Http(UrlEndpoint::new(format!("http://{}/mcp", server.address()).parse().unwrap()));
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(server.serve(async { drop(stopped.await) }));
        let dial = dialer(&endpoint, &DialOptions::default()).unwrap();
        let client = Box::new(Session::connect(dial, SessionOptions::default()).await.unwrap());
        Front::Gateway { client, stop, serving }
    }

    /// What a call tells: its text, or the kind of its failure.
    async fn call(&self, name: &str, arguments: &RawJson) -> String {
        match self {
            Front::Host(host) => {
                let result = host.call(ToolCall::new(name, arguments.clone())).await;
                match &result.error {
                    None => shown(&result.text()),
                    Some(error) => error.kind.to_string(),
                }
            }
            Front::Gateway { client, .. } => {
                let options = CallOptions { timeout: Some(2 * LONG), ..CallOptions::default() };
                match client.call_tool(name, arguments, options).await {
                    Err(CallError::Rpc(error)) => {
                        kind_of(&error.message).map_or_else(|| format!("error {}", error.code), str::to_owned)
                    }
                    other => told(other.map(|it| it.value.text())),
                }
            }
        }
    }

    async fn end(self) {
        if let Front::Gateway { client, stop, serving } = self {
            client.close(Duration::from_secs(5)).await;
            drop(client);
            drop(stop);
            serving.await.unwrap();
        }
    }
}

/// The kind that a failure's message begins with; what a server says of itself has none.
fn kind_of(message: &str) -> Option<&str> {
    let word = message.split(':').next()?;
    (word.starts_with("MCP") && word.ends_with("Error")).then_some(word)
}

fn id(name: &str) -> ServerId {
    ServerId::parse(name).unwrap()
}

/// A server as a configuration would have it.
pub(crate) fn server(name: &str, endpoint: Endpoint, limits: Limits) -> ResolvedServer {
    let spec = ServerSpec {
        id: id(name),
        description: None,
        origin: Origin { dialect: Dialect::HoloDeck, file: "f".into(), pointer: String::new(), span: 0..0 },
        // Who starts it goes by the endpoint.
        transport: TransportSpec::Stdio(StdioSpec {
            command: name.into(),
            args: Vec::new(),
            env: Vec::new(),
            env_file: None,
            inherit: StdioEndpoint::new(name).inherit,
            cwd: None,
            encoding: "utf-8".into(),
        }),
        limits,
        discovery: Discovery::default(),
        exposure: Exposure::all(NamePolicy::Qualify { class: NameClass::Strict }),
        sharing: Sharing::Shared,
        config: None,
        metadata: Default::default(),
    };
    ResolvedServer { spec, endpoint, config: None }
}
