//! A gateway over HTTP in front of in-memory servers, and clients of it.

use std::net::SocketAddr;
use std::sync::Arc;

use mcp_host_config::ResolvedServer;
use mcp_host_gateway::{
    Bounds, ClientCounts, Gateway, GatewayOptions, HttpOptions, HttpServer, RecorderPage, TokenUpdater,
};
use mcp_host_model::{Endpoint, RawJson, Sharing, UrlEndpoint};
use mcp_host_registry::ToolBudget;
use mcp_host_runtime::{DesiredServers, Dialer, Host, HostOptions, RequestingServers};
use mcp_host_transport::{ClientCapabilities, DialOptions, Eras, Session, SessionOptions, dialer};
use mcp_testkit::servers::{DemoServers, configured_server};
use mcp_testkit::wait::wait_until;
use metrics::LocalRecorderGuard;
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::asking_server;
use crate::scripted_server::{self, ReceivedCalls};

/// The servers behind a gateway: demo servers, and the calls to scripted servers.
#[derive(Default)]
pub(crate) struct TestServers {
    pub(crate) demo: Arc<DemoServers>,
    pub(crate) scripted_calls: ReceivedCalls,
}

/// A configured server. Servers whose id starts with `own` are not shared; those that start with `auto` are until they
/// send requests.
pub(crate) fn server(id: &str) -> ResolvedServer {
    let mut server = configured_server(id);
    if id.starts_with("own") {
        server.spec.sharing = Sharing::PerOwner;
    }
    if id.starts_with("auto") {
        server.spec.sharing = Sharing::Auto;
    }
    server
}

/// A running host with these servers.
pub(crate) async fn host(servers: &Arc<TestServers>, configured: Vec<ResolvedServer>) -> Arc<Host> {
    host_with(servers, configured, ToolBudget::default()).await
}

async fn host_with(
    servers: &Arc<TestServers>,
    configured: Vec<ResolvedServer>,
    tool_budget: ToolBudget,
) -> Arc<Host> {
    let host = starting_host(servers, configured, tool_budget).await;
    host.wait_until_ready().await;
    host
}

/// A host whose servers are starting.
pub(crate) async fn starting_host(
    servers: &Arc<TestServers>,
    configured: Vec<ResolvedServer>,
    tool_budget: ToolBudget,
) -> Arc<Host> {
    let servers = Arc::clone(servers);
    let dialer: Dialer = Arc::new(move |server, _| {
        let id = server.spec.id.as_str();
        let scripted = scripted_server::dial(id, &servers.scripted_calls);
        let scripted = scripted.or_else(|| asking_server::dial(id));
        Ok(scripted.unwrap_or_else(|| servers.demo.dial()))
    });
    let everything = r#"{"sampling":{},"elicitation":{},"roots":{}}"#;
    let declared = ClientCapabilities::new(RawJson::parse(everything.into()).unwrap());
    let host = Host::with_dialer(
        {
            let mut options = HostOptions::default();
            options.server_requests.declared_capabilities = declared;
            options.leases.requesting_servers = RequestingServers::Lease;
            options.catalog.tool_budget = tool_budget;
            options
        },
        dialer,
    );
    host.apply(DesiredServers::new(configured)).await;
    Arc::new(host)
}

/// A gateway over HTTP, with its host.
pub(crate) struct TestGateway {
    pub(crate) host: Arc<Host>,
    pub(crate) servers: Arc<TestServers>,
    pub(crate) gateway: Gateway,
    pub(crate) address: SocketAddr,
    pub(crate) tokens: TokenUpdater,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<()>,
    /// The recorder of this gateway's metrics.
    _recorder: LocalRecorderGuard<'static>,
}

impl TestGateway {
    /// A gateway in front of the shared server `demo` and the leased server `own`.
    pub(crate) async fn new() -> TestGateway {
        TestGateway::with(GatewayOptions::default(), HttpOptions::default()).await
    }

    pub(crate) async fn bounded(bounds: Bounds) -> TestGateway {
        TestGateway::with(
            {
                let mut options = GatewayOptions::default();
                options.bounds = bounds;
                options
            },
            HttpOptions::default(),
        )
        .await
    }

    pub(crate) async fn with(options: GatewayOptions, http: HttpOptions) -> TestGateway {
        TestGateway::with_servers(vec![server("demo"), server("own")], options, http).await
    }

    /// A gateway in front of these servers, including `demo`.
    pub(crate) async fn with_servers(
        configured: Vec<ResolvedServer>,
        options: GatewayOptions,
        http: HttpOptions,
    ) -> TestGateway {
        TestGateway::with_tool_budget(configured, ToolBudget::default(), options, http).await
    }

    /// A gateway in front of these servers, including `demo`, with limits on the lists of tools.
    pub(crate) async fn with_tool_budget(
        configured: Vec<ResolvedServer>,
        tool_budget: ToolBudget,
        options: GatewayOptions,
        mut http: HttpOptions,
    ) -> TestGateway {
        // Leaked, because its guard borrows it and is stored in the fixture.
        let recorder = Box::leak(Box::new(PrometheusBuilder::new().build_recorder()));
        let handle = recorder.handle();
        let recorder = metrics::set_default_local_recorder(recorder);
        http.metrics = Some(RecorderPage::new(move || handle.render()));
        let servers: Arc<TestServers> = Arc::default();
        let host = host_with(&servers, configured, tool_budget).await;
        // Waits until instances that were started only for discovery have ended.
        wait_until(|| servers.demo.open() == 1).await;
        let gateway = Gateway::new(Arc::clone(&host), options);
        let server = HttpServer::bind("127.0.0.1:0".parse().unwrap(), gateway.clone(), http).await.unwrap();
        let (address, tokens) = (server.address(), server.token_updater());
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(server.serve(async { drop(stopped.await) }));
        TestGateway {
            host,
            servers,
            gateway,
            address,
            tokens,
            stop: Some(stop),
            serving,
            _recorder: recorder,
        }
    }

    /// Connects our own client, in one era.
    pub(crate) async fn client(&self, path: &str, eras: Eras, options: SessionOptions) -> Session {
        let mut endpoint = UrlEndpoint::new(format!("http://{}{path}", self.address).parse().unwrap());
        endpoint.headers.push(("Mcp-Host-Dialog".to_owned(), "one".into()));
        let dial = dialer(&Endpoint::Http(endpoint), &DialOptions::default()).unwrap();
        Session::connect(dial, {
            let mut options = options;
            options.eras = eras;
            options
        })
        .await
        .unwrap()
    }

    /// Shuts down, and checks that nothing is left.
    pub(crate) async fn end(mut self) {
        drop(self.stop.take());
        (&mut self.serving).await.unwrap();
        assert_eq!(self.gateway.client_counts(), ClientCounts::default());
        self.host.shutdown().await;
        assert_eq!(self.servers.demo.open(), 0);
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
        TestGateway::read_reply(stream, &text).await
    }

    /// Sends these bytes. The connection must end with the response.
    pub(crate) async fn send_raw(&self, text: &str) -> Reply {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        TestGateway::read_reply(stream, text).await
    }

    /// Sends these bytes and closes the write side.
    pub(crate) async fn send_raw_and_close(&self, text: &str) -> Reply {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        TestGateway::read_reply(stream, text).await
    }

    /// Reads the response to `text` until the connection ends.
    async fn read_reply(mut stream: TcpStream, text: &str) -> Reply {
        let mut reply = String::new();
        stream.read_to_string(&mut reply).await.unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{reply:?} to {text}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Reply { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    /// Sends a request that opens a stream, and returns the connection after the head of the response.
    pub(crate) async fn open_stream(&self, method: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut text = format!("{method} /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!(
            "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        ));
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
        stream
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

/// An HTTP response; its head is in lower case.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(it, _)| *it == name).map(|(_, value)| value.to_owned())
    }

    /// The message, alone or as the last event.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        let body = match self.header("transfer-encoding") {
            Some(_) => join_chunks(&self.body),
            None => self.body.clone(),
        };
        let last = body.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
        let text = last.unwrap_or(&body);
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Joins the chunks of a body. A chunk may end within an event.
fn join_chunks(body: &str) -> String {
    let (mut rest, mut joined) = (body, String::new());
    while let Some((size, tail)) = rest.split_once("\r\n")
        && let Ok(size) = usize::from_str_radix(size, 16)
        && let Some((chunk, tail)) = tail.split_at_checked(size)
    {
        joined.push_str(chunk);
        rest = tail.trim_start_matches("\r\n");
    }
    joined
}

/// The body of an `initialize` request.
pub(crate) fn initialize(version: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"t","version":"1"}}}}}}"#
    )
}

/// The headers and the body of a modern request. `params` are members of a JSON object.
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
