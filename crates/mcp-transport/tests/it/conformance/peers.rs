//! A scripted peer on each of the four transports: implements each [`Action`] on each of them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use mcp_model::{Endpoint, Era, Limits, Secret, StdioEndpoint, UrlEndpoint};
use mcp_transport::{ConnectError, DialOptions, Eras, Session, SessionOptions, dialer};
use serde_json::Value;
use tokio::net::TcpSocket;

use super::framing::{self, LineEnding};
use super::process;
use super::relay::{Relay, RelaySpeed};
use super::streams::{self, Form};
use crate::{sse, websocket};

/// A transport to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TransportKind {
    Stdio,
    Sse,
    WebSocket,
    /// Streamable HTTP with event streams as responses.
    Http,
    /// Streamable HTTP with JSON documents as responses.
    HttpJson,
}

/// A transport and an era of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Variant {
    pub(super) transport: TransportKind,
    pub(super) era: Era,
}

/// One action of a peer in response to a message.
#[derive(Debug, Clone)]
pub(super) enum Action {
    /// Sends this text as a message; over HTTP in the response to the current message.
    Send(String),
    /// Sends the response to another request; over HTTP in that request's own response, which then ends.
    Respond(Value, String),
    /// Over HTTP, keeps the response open.
    KeepOpen,
    /// Sends the first half of a message.
    SendFirstHalf(String),
    /// Sends the other half of a message. Over HTTP the first half was lost with its response.
    SendSecondHalf(String),
    /// LineEnding the connection without a message; over HTTP the connection of the current message.
    Disconnect,
}

/// The actions of a peer for each message.
pub(super) type Script = Arc<dyn Fn(&Value) -> Vec<Action> + Send + Sync>;

/// How a peer writes, and the speed of its connections.
#[derive(Clone, Copy)]
pub(super) struct WriteStyle {
    pub(super) line_ending: LineEnding,
    pub(super) begin: &'static str,
    pub(super) speed: RelaySpeed,
}

/// The usual style.
pub(super) const PLAIN: WriteStyle =
    WriteStyle { line_ending: LineEnding::Lf, begin: "", speed: RelaySpeed::Fast };

/// A running peer. Dropping it ends it and all its connections.
pub(super) struct Peer {
    variant: Variant,
    pub(super) relay: Relay,
    received: Arc<Mutex<Vec<Value>>>,
    _serving: Serving,
}

/// The value that keeps the peer of each transport running.
enum Serving {
    Process { _it: process::Peer },
    Sse { _it: sse::peer::Peer },
    WebSocket { _it: websocket::Peer },
    Http { _it: crate::http::peer::Peer },
}

impl Peer {
    pub(super) async fn start(variant: Variant, style: WriteStyle, script: Script) -> Peer {
        let received = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&received);
        let script: Script = Arc::new(move |message| {
            log.lock().unwrap().push(message.clone());
            script(message)
        });
        let (port, serving) = match variant.transport {
            TransportKind::Stdio => {
                let peer = process::Peer::start(style, script).await;
                (peer.port, Serving::Process { _it: peer })
            }
            TransportKind::Sse => {
                let peer = on_sse(style, script).await;
                (port_of(&peer.url), Serving::Sse { _it: peer })
            }
            TransportKind::WebSocket => {
                let peer = on_websocket(style, script).await;
                (port_of(&peer.url), Serving::WebSocket { _it: peer })
            }
            TransportKind::Http | TransportKind::HttpJson => {
                let form = if variant.transport == TransportKind::Http { Form::Events } else { Form::Json };
                let peer = streams::start(form, style, script).await;
                (port_of(&peer.url), Serving::Http { _it: peer })
            }
        };
        let relay = Relay::start(SocketAddr::from(([127, 0, 0, 1], port)), style.speed);
        Peer { variant, relay, received, _serving: serving }
    }

    /// Connects with the handshake of the era.
    pub(super) async fn connect(&self, limits: &Limits) -> Result<Session, ConnectError> {
        connect(&self.variant.transport.endpoint(self.relay.begin.port()), self.variant.era, limits).await
    }

    /// The number of messages with this method.
    pub(super) fn count(&self, method: &str) -> usize {
        self.received.lock().unwrap().iter().filter(|message| message["method"] == method).count()
    }

    /// The names of the tools that were called, in order.
    pub(super) fn called(&self) -> Vec<String> {
        let received = self.received.lock().unwrap();
        received.iter().filter_map(|message| message["params"]["name"].as_str()).map(Into::into).collect()
    }

    /// The responses that were received.
    pub(super) fn answers(&self) -> Vec<Value> {
        self.received.lock().unwrap().iter().filter(|it| it.get("result").is_some()).cloned().collect()
    }
}

pub(super) async fn connect(endpoint: &Endpoint, era: Era, limits: &Limits) -> Result<Session, ConnectError> {
    let eras = match era {
        Era::Legacy => Eras::Legacy,
        Era::Modern => Eras::Modern,
    };
    let dial = dialer(endpoint, &{
        let mut options = DialOptions::default();
        options.limits = limits.clone();
        options
    })?;
    let mut options = SessionOptions::default();
    options.limits = limits.clone();
    options.eras = eras;
    Session::connect(dial, options).await
}

impl Variant {
    /// Whether a dropped call causes a cancel notification. Where a call has its own response, closing that is
    /// enough.
    pub(super) fn tells_of_giving_up(self) -> bool {
        !(self.era == Era::Modern && self.transport.is_http())
    }
}

impl TransportKind {
    /// Whether each request has its own response.
    pub(super) fn is_http(self) -> bool {
        matches!(self, TransportKind::Http | TransportKind::HttpJson)
    }

    /// The endpoint of a peer at this port.
    pub(super) fn endpoint(self, port: u16) -> Endpoint {
        let url = |text: String| UrlEndpoint::new(text.parse().unwrap());
        match self {
            TransportKind::Stdio => Endpoint::Stdio(process::endpoint(port)),
            TransportKind::Sse => Endpoint::Sse(url(format!("http://127.0.0.1:{port}/sse"))),
            TransportKind::WebSocket => Endpoint::WebSocket(url(format!("ws://127.0.0.1:{port}/ws"))),
            TransportKind::Http | TransportKind::HttpJson => {
                Endpoint::Http(url(format!("http://127.0.0.1:{port}/mcp")))
            }
        }
    }

    /// An endpoint without a peer: a program that exits at once, or a port without a listener as long as the
    /// socket is kept.
    pub(super) fn without_peer(self) -> (Endpoint, TcpSocket) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let endpoint = match self {
            TransportKind::Stdio => {
                let mut endpoint = StdioEndpoint::new("sh");
                endpoint.args = vec![Secret::new("-c"), Secret::new("exit 3")];
                Endpoint::Stdio(endpoint)
            }
            TransportKind::Sse | TransportKind::WebSocket | TransportKind::Http | TransportKind::HttpJson => {
                self.endpoint(socket.local_addr().unwrap().port())
            }
        };
        (endpoint, socket)
    }
}

fn port_of(url: &str) -> u16 {
    url::Url::parse(url).unwrap().port().unwrap()
}

/// Responses arrive on the shared stream.
async fn on_sse(style: WriteStyle, script: Script) -> sse::peer::Peer {
    let event = move |text: &str| framing::event(text, style.line_ending);
    let place = "event: endpoint\ndata: /messages?session=1\n\n";
    let opening = format!("{}{}", style.begin, style.line_ending.apply(place));
    sse::peer::Peer::start(move |received| {
        if received.verb != "POST" {
            return sse::peer::stream_of(&opening);
        }
        script(&received.rpc()).into_iter().fold(sse::peer::taken(), |reply, act| match act {
            Action::Send(text) | Action::Respond(_, text) => reply.push(event(&text)),
            Action::SendFirstHalf(text) => reply.push(framing::halves(&event(&text)).0),
            Action::SendSecondHalf(text) => reply.push(framing::halves(&event(&text)).1),
            Action::KeepOpen => reply,
            Action::Disconnect => reply.breaking(),
        })
    })
    .await
}

/// Each message is a text frame.
async fn on_websocket(style: WriteStyle, script: Script) -> websocket::Peer {
    use websocket::Step;
    let begin = Mutex::new(style.begin);
    let text = move |text: &str| {
        let begin = std::mem::take(&mut *begin.lock().unwrap());
        format!("{begin}{text}{}", style.line_ending.after_json())
    };
    websocket::Peer::start(move |message| {
        let raw = |half: &[u8]| Step::Raw(half.to_vec());
        let steps = script(message).into_iter().filter_map(|act| match act {
            Action::Send(it) | Action::Respond(_, it) => Some(Step::Text(text(&it))),
            Action::SendFirstHalf(it) => Some(raw(framing::halved(&framing::websocket(&text(&it))).0)),
            Action::SendSecondHalf(it) => Some(raw(framing::halved(&framing::websocket(&text(&it))).1)),
            Action::KeepOpen => None,
            Action::Disconnect => Some(Step::Drop),
        });
        steps.collect()
    })
    .await
}
