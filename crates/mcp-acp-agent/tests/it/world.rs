//! Servers in memory, and short words for what tests do with them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use mcp_acp::{
    AcpVersion, AgentProfile, Capabilities, SessionMethod, SessionRequest, ValidatedRequest, validate,
};
use mcp_acp_agent::{ConnectOptions, ConnectionState, SessionMcp, ToolCall};
use mcp_host::{Dialer, HostOptions, Supervision};
use mcp_model::{CallResult, RawJson};
use mcp_transport::{
    Dial, Disconnect, DisconnectReason, HandshakeMode, Link, Outbound, RequestError, StartError, StreamId,
    Transport,
};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// What is on the other side of a server's wire.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Peer {
    /// The demo server.
    Demo,
    /// One that never says anything.
    Silent,
    /// One that cannot be reached.
    Gone,
    /// One that wants another proof of who asks.
    Locked,
}

struct PeerDial(Peer);

impl Dial for PeerDial {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(PeerWire(self.0))
    }

    fn label(&self) -> String {
        "in memory".to_owned()
    }

    fn redact(&self, text: &str) -> String {
        text.to_owned()
    }

    fn handshake_mode(&self) -> HandshakeMode {
        HandshakeMode::Negotiate
    }
}

struct PeerWire(Peer);

impl Transport for PeerWire {
    fn run<'a>(self: Box<Self>, link: Link) -> Pin<Box<dyn Future<Output = Disconnect> + Send + 'a>>
    where
        Self: 'a,
    {
        let refused = |status, message: &str| {
            let fault = RequestError { status, message: message.to_owned(), error: None };
            Disconnect::new(DisconnectReason::NotStarted(StartError::Refused(fault)))
        };
        Box::pin(async move {
            match self.0 {
                Peer::Demo => demo(link).await,
                Peer::Silent => {
                    let Link { outbound: _out, inbound: _inbox, shutdown: mut stop } = link;
                    stop.requested().await;
                    Disconnect::new(DisconnectReason::Stopped)
                }
                Peer::Gone => refused(None, "connection refused"),
                Peer::Locked => refused(Some(401), "the server answered with status 401"),
            }
        })
    }
}

/// The demo server on the other side of a pair of streams, one message a line.
async fn demo(link: Link) -> Disconnect {
    let Link { outbound: mut out, inbound: inbox, shutdown: mut stop } = link;
    let (here, there) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(there);
    let mut served = Box::pin(mcp_demo::serve_stream(read, write));
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

/// Wires into memory: what a server is, the beginning of its name says.
fn dialer() -> Dialer {
    Arc::new(|server, _| {
        let name = server.spec.id.as_str();
        let peer = match name {
            _ if name.starts_with("silent") => Peer::Silent,
            _ if name.starts_with("gone") => Peer::Gone,
            _ if name.starts_with("locked") => Peer::Locked,
            _ => Peer::Demo,
        };
        Ok(Arc::new(PeerDial(peer)))
    })
}

/// Servers in memory, left alone when they have failed, each with 10 s and all with 20.
pub(crate) fn options() -> ConnectOptions {
    let mut res = ConnectOptions { dialer: Some(dialer()), ..real() };
    res.limits.startup = Duration::from_secs(10);
    res.total_timeout = Duration::from_secs(20);
    res
}

/// Servers of the real world, left alone when they have failed.
pub(crate) fn real() -> ConnectOptions {
    let host = HostOptions { supervision: Supervision::Off, ..HostOptions::default() };
    ConnectOptions { host, ..ConnectOptions::default() }
}

/// What an agent that has declared everything makes of these entries.
pub(crate) fn validated(servers: &Value) -> ValidatedRequest {
    let capabilities = Capabilities { http: true, sse: true, acp: true, ..Capabilities::STDIO };
    let cwd = std::env::temp_dir();
    let params = serde_json::json!({ "cwd": cwd, "mcpServers": servers });
    let set_up = SessionRequest { method: SessionMethod::New, params: RawJson::from_value(&params).unwrap() };
    validate(&set_up, &AgentProfile::new(AcpVersion::V1, &capabilities)).unwrap()
}

/// Entries of these names, to be had in memory.
pub(crate) fn entries(names: &[&str]) -> Value {
    let entry = |name: &&str| serde_json::json!({"type": "http", "name": name, "url": "https://memory.example/mcp", "headers": []});
    names.iter().map(entry).collect()
}

/// A session with these servers in memory.
pub(crate) async fn session(names: &[&str]) -> SessionMcp {
    SessionMcp::connect(validated(&entries(names)), options()).await.unwrap()
}

/// `a:connected b:failed`.
pub(crate) fn seen(session: &SessionMcp) -> String {
    let statuses = session.statuses();
    let words: Vec<_> = statuses.iter().map(|it| format!("{}:{}", it.name, it.state.as_str())).collect();
    words.join(" ")
}

/// The failure of a server as it is sent.
pub(crate) fn failure(session: &SessionMcp, name: &str) -> String {
    let statuses = session.statuses();
    let status = statuses.iter().find(|it| it.name == name).unwrap();
    let ConnectionState::Failed(failure) = &status.state else {
        panic!("{name} is {}", status.state.as_str())
    };
    serde_json::to_string_pretty(&mcp_model::RpcError::from(failure)).unwrap()
}

pub(crate) fn tool_call(name: &str, arguments: &str) -> ToolCall {
    ToolCall::new(name, RawJson::parse(arguments.to_owned().into()).unwrap())
}

/// What a call brought: its text, or its failure as `<kind>: <message>`.
pub(crate) fn told(result: &CallResult) -> String {
    match &result.error {
        None => result.text(),
        Some(error) => format!("{}: {}", error.kind, error.message),
    }
}
