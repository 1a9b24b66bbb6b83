//! A scripted peer on each of the four transports: performs each [`ServerAction`] on each of them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use mcp_host_model::{Endpoint, Limits, UrlEndpoint};
use mcp_host_transport::testing::{ResponseForm, Script, ServerAction};
use mcp_host_transport::{ConnectError, Dial, DialOptions, Eras, Session, SessionOptions, dialer};

use super::framing::{self, LineEnding};
use super::process;
use super::relay::Relay;
use super::streams;
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

/// How a peer writes and reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct WriteStyle {
    pub(super) line_ending: LineEnding,
    /// The text before the first message of a connection.
    pub(super) begin: &'static str,
    reads: Speed,
}

#[derive(Debug, Clone, Copy)]
enum Speed {
    Fast,
    /// A few kilobytes at a time, with pauses and small buffers.
    Slow,
}

/// The usual style.
pub(super) const PLAIN: WriteStyle =
    WriteStyle { line_ending: LineEnding::Lf, begin: "", reads: Speed::Fast };

/// A byte order mark, CRLF, and a slow reader.
pub(super) const UNUSUAL: WriteStyle =
    WriteStyle { line_ending: LineEnding::CrLf, begin: "\u{feff}", reads: Speed::Slow };

/// A running peer. Dropping it ends it and all its connections.
pub(super) struct Peer {
    transport: TransportKind,
    pub(super) port: u16,
    _relay: Option<Relay>,
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
    pub(super) async fn start(transport: TransportKind, style: WriteStyle, script: Script) -> Peer {
        let (port, serving) = match transport {
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
                let peer = streams::start(transport.response_form(), style, script).await;
                (port_of(&peer.url), Serving::Http { _it: peer })
            }
        };
        let relay = match style.reads {
            Speed::Fast => None,
            Speed::Slow => Some(Relay::start(SocketAddr::from(([127, 0, 0, 1], port)))),
        };
        let port = relay.as_ref().map_or(port, |it| it.begin.port());
        Peer { transport, port, _relay: relay, _serving: serving }
    }

    pub(super) fn dial(&self, limits: &Limits) -> Arc<dyn Dial> {
        dial(&self.transport.endpoint(self.port), limits)
    }
}

fn dial(endpoint: &Endpoint, limits: &Limits) -> Arc<dyn Dial> {
    let mut options = DialOptions::default();
    options.limits = limits.clone();
    dialer(endpoint, &options).unwrap()
}

/// Connects with the handshake of these eras.
pub(super) async fn connect(
    endpoint: &Endpoint,
    eras: Eras,
    limits: &Limits,
) -> Result<Session, ConnectError> {
    let mut options = SessionOptions::default();
    options.limits = limits.clone();
    options.eras = eras;
    Session::connect(dial(endpoint, limits), options).await
}

impl TransportKind {
    pub(super) fn response_form(self) -> ResponseForm {
        match self {
            TransportKind::Stdio | TransportKind::Sse | TransportKind::WebSocket => ResponseForm::Shared,
            TransportKind::Http => ResponseForm::Stream,
            TransportKind::HttpJson => ResponseForm::Document,
        }
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
            ServerAction::Send(text) | ServerAction::Respond(_, text) => reply.push(event(&text)),
            ServerAction::SendFirstHalf(text) => reply.push(framing::halves(&event(&text)).0),
            ServerAction::SendSecondHalf(text) => reply.push(framing::halves(&event(&text)).1),
            ServerAction::KeepOpen => reply,
            ServerAction::Disconnect => reply.breaking(),
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
            ServerAction::Send(it) | ServerAction::Respond(_, it) => Some(Step::Text(text(&it))),
            ServerAction::SendFirstHalf(it) => Some(raw(framing::halved(&framing::websocket(&text(&it))).0)),
            ServerAction::SendSecondHalf(it) => Some(raw(framing::halved(&framing::websocket(&text(&it))).1)),
            ServerAction::KeepOpen => None,
            ServerAction::Disconnect => Some(Step::Drop),
        });
        steps.collect()
    })
    .await
}
