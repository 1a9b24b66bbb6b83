//! A gateway over HTTP in front of in-memory servers, and clients of it.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_config::ResolvedServer;
use mcp_gateway::{Bounds, Gateway, GatewayOptions, HttpOptions, HttpServer};
use mcp_host::{DesiredServers, Dialer, Host, HostOptions, ServerRequestOptions};
use mcp_model::{
    Dialect, Discovery, Endpoint, Exposure, Limits, NameClass, NamePolicy, Origin, RawJson, ServerId,
    ServerSpec, Sharing, StdioEndpoint, StdioSpec, TransportSpec, UrlEndpoint,
};
use mcp_transport::{
    ClientCapabilities, Dial, DialOptions, Disconnect, DisconnectReason, Eras, HandshakeMode, Link, Outbound,
    Session, SessionOptions, StreamId, Transport, dialer,
};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::scripted_server::{ReceivedCalls, ScriptedServer};

/// The number of open connections to demo servers, and the calls to scripted servers.
#[derive(Default)]
pub(crate) struct ServerActivity {
    open: AtomicUsize,
    pub(crate) heard: ReceivedCalls,
}

impl ServerActivity {
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }
}

struct DemoDial(Arc<ServerActivity>);

impl Dial for DemoDial {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(Demo(Arc::clone(&self.0)))
    }

    fn label(&self) -> String {
        "demo".to_owned()
    }

    fn redact(&self, text: &str) -> String {
        text.to_owned()
    }

    fn handshake_mode(&self) -> HandshakeMode {
        HandshakeMode::Negotiate
    }
}

/// A demo server of its own for each connection, over a pair of in-memory streams.
struct Demo(Arc<ServerActivity>);

struct Open(Arc<ServerActivity>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Transport for Demo {
    fn run<'a>(self: Box<Self>, link: Link) -> Pin<Box<dyn Future<Output = Disconnect> + Send + 'a>>
    where
        Self: 'a,
    {
        Box::pin(async move {
            self.0.open.fetch_add(1, Ordering::SeqCst);
            let _open = Open(Arc::clone(&self.0));
            let (here, there) = tokio::io::duplex(1 << 16);
            let (read, write) = tokio::io::split(there);
            run(link, here, mcp_demo::serve_stream(read, write)).await
        })
    }
}

/// Forwards messages between `link` and the server that `served` runs at the other end of `here`, one per line.
pub(crate) async fn run<T>(link: Link, here: DuplexStream, served: impl Future<Output = T>) -> Disconnect {
    let Link { outbound: mut out, inbound: inbox, shutdown: mut stop } = link;
    tokio::pin!(served);
    let (read, mut write) = tokio::io::split(here);
    let mut lines = BufReader::new(read).lines();
    loop {
        tokio::select! {
            _ = stop.requested() => return Disconnect::new(DisconnectReason::Stopped),
            _ = &mut served => return Disconnect::new(DisconnectReason::PeerClosed),
            line = lines.next_line() => match line.unwrap() {
                Some(line) => {
                    inbox.deliver(StreamId::Shared, line.into());
                }
                None => return Disconnect::new(DisconnectReason::PeerClosed),
            },
            out = out.next() => {
                let body = match out {
                    Some(Outbound::Send(message)) => message.body,
                    Some(Outbound::Cancel { notice: Some(notice), .. }) => notice,
                    Some(Outbound::Cancel { notice: None, .. }) => continue,
                    None => return Disconnect::new(DisconnectReason::Stopped),
                };
                write.write_all(&body).await.unwrap();
                write.write_all(b"\n").await.unwrap();
            }
        }
    }
}

/// A configured server. Servers whose id starts with `own` are not shared.
pub(crate) fn server(id: &str) -> ResolvedServer {
    let endpoint = StdioEndpoint::new("npx");
    let spec = ServerSpec {
        id: ServerId::parse(id).unwrap(),
        description: None,
        origin: Origin { dialect: Dialect::HoloDeck, file: "f".into(), pointer: String::new(), span: 0..0 },
        transport: TransportSpec::Stdio(StdioSpec {
            command: "npx".into(),
            args: Vec::new(),
            env: Vec::new(),
            env_file: None,
            inherit: endpoint.inherit,
            cwd: None,
            encoding: "utf-8".into(),
        }),
        limits: Limits::default(),
        discovery: Discovery::default(),
        exposure: Exposure::all(NamePolicy::Qualify { class: NameClass::Strict }),
        sharing: if id.starts_with("own") { Sharing::PerOwner } else { Sharing::Shared },
        config: None,
        metadata: Default::default(),
    };
    ResolvedServer { spec, endpoint: Endpoint::Stdio(endpoint), config: None }
}

/// A running host with these servers.
pub(crate) async fn host(site: &Arc<ServerActivity>, servers: Vec<ResolvedServer>) -> Arc<Host> {
    let site = Arc::clone(site);
    let dialer: Dialer = Arc::new(move |server, _| {
        Ok(match ScriptedServer::called(server.spec.id.as_str(), &site.heard) {
            Some(forger) => Arc::new(forger) as Arc<dyn Dial>,
            None => Arc::new(DemoDial(Arc::clone(&site))),
        })
    });
    let everything = r#"{"sampling":{},"elicitation":{},"roots":{}}"#;
    let declared = ClientCapabilities::new(RawJson::parse(everything.into()).unwrap());
    let host = Host::with_dialer(
        HostOptions {
            server_requests: ServerRequestOptions {
                declared_capabilities: declared,
                ..ServerRequestOptions::default()
            },
            ..HostOptions::default()
        },
        dialer,
    );
    host.apply(DesiredServers { servers, failed: Vec::new() }).await;
    host.ready().await;
    Arc::new(host)
}

/// A gateway over HTTP, with its host.
pub(crate) struct TestGateway {
    pub(crate) host: Arc<Host>,
    pub(crate) site: Arc<ServerActivity>,
    pub(crate) gateway: Gateway,
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
}

impl TestGateway {
    /// A gateway in front of the shared server `demo` and the leased server `own`.
    pub(crate) async fn new() -> TestGateway {
        TestGateway::with(GatewayOptions::default(), HttpOptions::default()).await
    }

    pub(crate) async fn bounded(bounds: Bounds) -> TestGateway {
        TestGateway::with(GatewayOptions { bounds, ..GatewayOptions::default() }, HttpOptions::default())
            .await
    }

    pub(crate) async fn with(options: GatewayOptions, http: HttpOptions) -> TestGateway {
        TestGateway::among(vec![server("demo"), server("own")], options, http).await
    }

    /// A gateway in front of these servers, including `demo`.
    pub(crate) async fn among(
        servers: Vec<ResolvedServer>,
        options: GatewayOptions,
        http: HttpOptions,
    ) -> TestGateway {
        let site: Arc<ServerActivity> = Arc::default();
        let host = host(&site, servers).await;
        // Instances that were started only for discovery have ended by then.
        until("only what is shared runs", || site.open() == 1).await;
        let gateway = Gateway::new(Arc::clone(&host), options);
        let server = HttpServer::bind("127.0.0.1:0".parse().unwrap(), gateway.clone(), http).await.unwrap();
        let address = server.address();
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(server.serve(async { drop(stopped.await) }));
        TestGateway { host, site, gateway, address, stop: Some(stop), serving }
    }

    /// Connects our own client, in one era.
    pub(crate) async fn client(&self, path: &str, eras: Eras, options: SessionOptions) -> Session {
        let mut endpoint = UrlEndpoint::new(format!("http://{}{path}", self.address).parse().unwrap());
        endpoint.headers.push(("Mcp-Host-Dialog".to_owned(), "one".into()));
        let dial = dialer(&Endpoint::Http(endpoint), &DialOptions::default()).unwrap();
        Session::connect(dial, SessionOptions { eras, ..options }).await.unwrap()
    }

    /// Shuts down, and checks that nothing is left.
    pub(crate) async fn end(mut self) {
        drop(self.stop.take());
        (&mut self.serving).await.unwrap();
        assert_eq!(self.gateway.clients(), (0, 0));
        self.host.shutdown().await;
        assert_eq!(self.site.open(), 0);
    }

    /// Sends one HTTP request on a connection of its own.
    pub(crate) async fn http(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut text = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            text.push_str(&format!("host: {}\r\n", self.address));
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        TestGateway::reply(stream, &text).await
    }

    /// Sends these bytes. The connection must end with the response.
    pub(crate) async fn raw(&self, text: &str) -> Reply {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        TestGateway::reply(stream, text).await
    }

    /// Sends these bytes and closes the write side.
    pub(crate) async fn raw_to_end(&self, text: &str) -> Reply {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        TestGateway::reply(stream, text).await
    }

    async fn reply(mut stream: TcpStream, text: &str) -> Reply {
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{reply:?} to {text}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Reply { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    /// Sends a message with the usual headers.
    pub(crate) async fn post(&self, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut all =
            vec![("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
        all.extend(headers);
        self.http("POST", "/mcp", &all, body).await
    }

    /// Starts a session and returns its id.
    pub(crate) async fn initialize(&self, headers: &[(&str, &str)]) -> String {
        let reply = self.post(headers, &initialize("2025-11-25")).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.header("mcp-session-id").unwrap()
    }
}

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let mut lines = self.head.lines().filter_map(|it| it.split_once(": "));
        lines.find(|(it, _)| *it == name).map(|(_, value)| value.to_owned())
    }

    /// The message, alone or as the last event.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        let last = self.body.lines().filter_map(|it| it.strip_prefix("data: ")).next_back();
        let text = last.unwrap_or(&self.body);
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

pub(crate) fn initialize(version: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"t","version":"1"}}}}}}"#
    )
}

/// A modern request with its headers.
pub(crate) fn modern(
    method: &str,
    name: Option<&str>,
    params: &str,
) -> (Vec<(&'static str, String)>, String) {
    let mut headers =
        vec![("mcp-protocol-version", "2026-07-28".to_owned()), ("mcp-method", method.to_owned())];
    headers.extend(name.map(|it| ("mcp-name", it.to_owned())));
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let comma = if params.is_empty() { "" } else { "," };
    let body =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{meta}{comma}{params}}}}}"#);
    (headers, body)
}

impl TestGateway {
    pub(crate) async fn modern(&self, method: &str, name: Option<&str>, params: &str) -> Reply {
        let (headers, body) = modern(method, name, params);
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, it)| (*name, it.as_str())).collect();
        self.post(&headers, &body).await
    }
}

/// Waits for a condition, for as long as a slow machine may need.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(30), waiting).await.is_ok(), "{what}");
}
