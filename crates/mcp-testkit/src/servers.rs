//! Servers for tests: in memory on the other side of a [`Link`], and as shell scripts.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_host_config::ResolvedServer;
use mcp_host_demo::CustomTools;
use mcp_host_model::{
    Endpoint, Profile, Secret, ServerId, ServerSpec, Sharing, SpecOrigin, StdioEndpoint, StdioSpec,
    TransportSpec,
};
use mcp_host_transport::{
    Dial, Disconnect, DisconnectReason, HandshakeMode, Link, Outbound, StreamId, Transport,
};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

/// A legacy server in shell with the tool `t`. Before it serves, it runs `$BEFORE`; for a call, it runs `$TOOL`, with
/// the request's id in `$id`.
pub const SHELL_SERVER: &str = r#"
eval "$BEFORE"
answer() { printf '{"result":%s,"jsonrpc":"2.0","id":%s}\n' "$2" "$1"; }
text() { answer "$1" "{\"content\":[{\"type\":\"text\",\"text\":\"$2\"}]}"; }
while read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case "$line" in
    *'"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}\n' "$id" ;;
    *'"initialize"'*) answer "$id" '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"tools/list"'*) answer "$id" '{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) eval "$TOOL" ;;
  esac
done
"#;

/// A shell script as a server.
pub fn shell_script(script: &str) -> StdioEndpoint {
    let mut endpoint = StdioEndpoint::new("sh");
    endpoint.args = vec![Secret::new("-c"), Secret::new(script)];
    endpoint
}

/// The [`SHELL_SERVER`] whose tool runs `tool`.
pub fn shell_server(tool: &str) -> StdioEndpoint {
    let mut endpoint = shell_script(SHELL_SERVER);
    endpoint.env.push(("TOOL".to_owned(), Secret::new(tool)));
    endpoint
}

/// A configured server with the command `npx`, whose tools are named `<id>__<tool>`.
pub fn configured_server(id: &str) -> ResolvedServer {
    let endpoint = StdioEndpoint::new("npx");
    let origin = SpecOrigin::new(Profile::HoloDeck, "f");
    let transport = TransportSpec::Stdio(StdioSpec::new("npx"));
    let mut spec = ServerSpec::new(ServerId::parse(id).unwrap(), origin, transport);
    spec.sharing = Sharing::Shared;
    ResolvedServer::new(spec, Endpoint::Stdio(endpoint))
}

/// A [`Dial`] of in-memory connections. `serve` runs one connection to its end.
pub fn in_memory<F, R>(label: &str, serve: F) -> Arc<dyn Dial>
where
    F: Fn(Link) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Disconnect> + Send + 'static,
{
    Arc::new(InMemoryDial { label: label.to_owned(), serve })
}

/// A dial and a transport at once: `serve` runs the other end of each connection.
#[derive(Clone)]
struct InMemoryDial<F> {
    label: String,
    serve: F,
}

impl<F, R> Dial for InMemoryDial<F>
where
    F: Fn(Link) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Disconnect> + Send + 'static,
{
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(self.clone())
    }

    fn label(&self) -> String {
        self.label.clone()
    }

    fn redact(&self, text: &str) -> String {
        text.to_owned()
    }

    fn handshake_mode(&self) -> HandshakeMode {
        HandshakeMode::Negotiate
    }
}

impl<F, R> Transport for InMemoryDial<F>
where
    F: Fn(Link) -> R + Clone + Send + Sync + 'static,
    R: Future<Output = Disconnect> + Send + 'static,
{
    fn run<'a>(self: Box<Self>, link: Link) -> Pin<Box<dyn Future<Output = Disconnect> + Send + 'a>>
    where
        Self: 'a,
    {
        Box::pin((self.serve)(link))
    }
}

/// Runs a server at the other end of a byte stream and forwards messages between it and `link`, one per line.
pub async fn forward_lines<R: Future>(link: Link, server: impl FnOnce(DuplexStream) -> R) -> Disconnect {
    let Link { mut outbound, inbound, mut shutdown, .. } = link;
    let (client_end, server_end) = tokio::io::duplex(1 << 16);
    let mut server = pin!(server(server_end));
    let (read, mut write) = tokio::io::split(client_end);
    let mut lines = BufReader::new(read).lines();
    loop {
        let message = tokio::select! {
            _ = shutdown.requested() => return Disconnect::new(DisconnectReason::Stopped),
            _ = &mut server => return Disconnect::new(DisconnectReason::PeerClosed),
            line = lines.next_line() => {
                let Some(line) = line.unwrap() else { return Disconnect::new(DisconnectReason::PeerClosed) };
                inbound.deliver(StreamId::Shared, line.into());
                continue;
            }
            message = outbound.next() => message,
        };
        let body = match message {
            Some(Outbound::Send(message)) => message.body,
            Some(Outbound::Cancel { notice: Some(notice), .. }) => notice,
            Some(Outbound::Cancel { notice: None, .. }) => continue,
            None => return Disconnect::new(DisconnectReason::Stopped),
        };
        write.write_all(&body).await.unwrap();
        write.write_all(b"\n").await.unwrap();
    }
}

/// Demo servers in memory, one for each connection.
#[derive(Default)]
pub struct DemoServers {
    custom_tools: Option<CustomTools>,
    connected: AtomicUsize,
    open: AtomicUsize,
}

impl DemoServers {
    /// Demo servers with these tools instead of the built-in ones.
    pub fn with_tools(tools: CustomTools) -> DemoServers {
        DemoServers { custom_tools: Some(tools), ..DemoServers::default() }
    }

    /// The number of connections so far.
    pub fn connected(&self) -> usize {
        self.connected.load(Ordering::SeqCst)
    }

    /// The number of open connections.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// A dial of these servers.
    pub fn dial(self: &Arc<DemoServers>) -> Arc<dyn Dial> {
        let servers = Arc::clone(self);
        in_memory("demo", move |link| Arc::clone(&servers).serve(link))
    }

    async fn serve(self: Arc<DemoServers>, link: Link) -> Disconnect {
        self.connected.fetch_add(1, Ordering::SeqCst);
        self.open.fetch_add(1, Ordering::SeqCst);
        let open = OpenConnection(self);
        forward_lines(link, |stream| async {
            let (read, write) = tokio::io::split(stream);
            match open.0.custom_tools.clone() {
                None => mcp_host_demo::serve_stream(read, write).await,
                Some(tools) => mcp_host_demo::serve_custom_tools(tools, read, write).await,
            }
        })
        .await
    }
}

/// Counts an open connection until it is dropped.
struct OpenConnection(Arc<DemoServers>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}
