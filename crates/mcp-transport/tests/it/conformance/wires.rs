//! A scripted peer on each of the four transports: implements each [`Act`] on each of them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use mcp_model::{Endpoint, Era, Limits, Secret, StdioEndpoint, UrlEndpoint};
use mcp_transport::{ConnectError, DialOptions, Eras, Session, SessionOptions, dialer};
use serde_json::Value;
use tokio::net::TcpSocket;

use super::framing::{self, Ends};
use super::process;
use super::road::{Pace, Road};
use super::streams::{self, Form};
use crate::{sse, websocket};

/// A transport to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
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
pub(super) struct Way {
    pub(super) wire: Wire,
    pub(super) era: Era,
}

/// One action of a peer in response to a message.
#[derive(Debug, Clone)]
pub(super) enum Act {
    /// Sends this text as a message; over HTTP in the response to the current message.
    Say(String),
    /// Sends the response to another request; over HTTP in that request's own response, which then ends.
    Answer(Value, String),
    /// Over HTTP, keeps the response open.
    Hold,
    /// Sends the first half of a message.
    Begin(String),
    /// Sends the other half of a message. Over HTTP the first half was lost with its response.
    Finish(String),
    /// Ends the connection without a message; over HTTP the connection of the current message.
    Die,
}

/// The actions of a peer for each message.
pub(super) type Script = Arc<dyn Fn(&Value) -> Vec<Act> + Send + Sync>;

/// How a peer writes, and the speed of its connections.
#[derive(Clone, Copy)]
pub(super) struct Manner {
    pub(super) ends: Ends,
    pub(super) begin: &'static str,
    pub(super) pace: Pace,
}

/// The usual way of writing.
pub(super) const PLAIN: Manner = Manner { ends: Ends::Lf, begin: "", pace: Pace::Prompt };

/// A running peer. Dropping it ends it and all its connections.
pub(super) struct Peer {
    way: Way,
    pub(super) road: Road,
    heard: Arc<Mutex<Vec<Value>>>,
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
    pub(super) async fn start(way: Way, manner: Manner, script: Script) -> Peer {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&heard);
        let script: Script = Arc::new(move |message| {
            log.lock().unwrap().push(message.clone());
            script(message)
        });
        let (port, serving) = match way.wire {
            Wire::Stdio => {
                let peer = process::Peer::start(manner, script).await;
                (peer.port, Serving::Process { _it: peer })
            }
            Wire::Sse => {
                let peer = on_sse(manner, script).await;
                (port_of(&peer.url), Serving::Sse { _it: peer })
            }
            Wire::WebSocket => {
                let peer = on_websocket(manner, script).await;
                (port_of(&peer.url), Serving::WebSocket { _it: peer })
            }
            Wire::Http | Wire::HttpJson => {
                let form = if way.wire == Wire::Http { Form::Events } else { Form::Json };
                let peer = streams::start(form, manner, script).await;
                (port_of(&peer.url), Serving::Http { _it: peer })
            }
        };
        let road = Road::to(SocketAddr::from(([127, 0, 0, 1], port)), manner.pace);
        Peer { way, road, heard, _serving: serving }
    }

    /// Connects with the handshake of the era.
    pub(super) async fn connect(&self, limits: &Limits) -> Result<Session, ConnectError> {
        connect(&self.way.wire.endpoint(self.road.begin.port()), self.way.era, limits).await
    }

    /// How often a method was received.
    pub(super) fn count(&self, method: &str) -> usize {
        self.heard.lock().unwrap().iter().filter(|it| it["method"] == method).count()
    }

    /// The names of the tools that were called, in order.
    pub(super) fn called(&self) -> Vec<String> {
        let heard = self.heard.lock().unwrap();
        heard.iter().filter_map(|it| it["params"]["name"].as_str()).map(Into::into).collect()
    }

    /// The responses that were received.
    pub(super) fn answers(&self) -> Vec<Value> {
        self.heard.lock().unwrap().iter().filter(|it| it.get("result").is_some()).cloned().collect()
    }
}

pub(super) async fn connect(endpoint: &Endpoint, era: Era, limits: &Limits) -> Result<Session, ConnectError> {
    let eras = match era {
        Era::Legacy => Eras::Legacy,
        Era::Modern => Eras::Modern,
    };
    let dial = dialer(endpoint, &DialOptions { limits: limits.clone(), ..DialOptions::default() })?;
    let options = SessionOptions { limits: limits.clone(), eras, ..SessionOptions::default() };
    Session::connect(dial, options).await
}

impl Way {
    /// Whether a dropped call causes a cancel notification. Where a call has its own response, closing that is
    /// enough.
    pub(super) fn tells_of_giving_up(self) -> bool {
        !(self.era == Era::Modern && self.wire.is_http())
    }
}

impl Wire {
    /// Whether each request has its own response.
    pub(super) fn is_http(self) -> bool {
        matches!(self, Wire::Http | Wire::HttpJson)
    }

    /// The endpoint of a peer at this port.
    pub(super) fn endpoint(self, port: u16) -> Endpoint {
        let url = |text: String| UrlEndpoint::new(text.parse().unwrap());
        match self {
            Wire::Stdio => Endpoint::Stdio(process::endpoint(port)),
            Wire::Sse => Endpoint::Sse(url(format!("http://127.0.0.1:{port}/sse"))),
            Wire::WebSocket => Endpoint::WebSocket(url(format!("ws://127.0.0.1:{port}/ws"))),
            Wire::Http | Wire::HttpJson => Endpoint::Http(url(format!("http://127.0.0.1:{port}/mcp"))),
        }
    }

    /// An endpoint without a peer: a program that exits at once, or a port without a listener as long as the
    /// socket is kept.
    pub(super) fn nobody(self) -> (Endpoint, TcpSocket) {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let endpoint = match self {
            Wire::Stdio => {
                let mut endpoint = StdioEndpoint::new("sh");
                endpoint.args = vec![Secret::new("-c"), Secret::new("exit 3")];
                Endpoint::Stdio(endpoint)
            }
            Wire::Sse | Wire::WebSocket | Wire::Http | Wire::HttpJson => {
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
async fn on_sse(manner: Manner, script: Script) -> sse::peer::Peer {
    let event = move |text: &str| framing::event(text, manner.ends);
    let place = "event: endpoint\ndata: /messages?session=1\n\n";
    let opening = format!("{}{}", manner.begin, manner.ends.apply(place));
    sse::peer::Peer::start(move |heard| {
        if heard.verb != "POST" {
            return sse::peer::stream_of(&opening);
        }
        script(&heard.rpc()).into_iter().fold(sse::peer::taken(), |reply, act| match act {
            Act::Say(text) | Act::Answer(_, text) => reply.push(event(&text)),
            Act::Begin(text) => reply.push(framing::halves(&event(&text)).0),
            Act::Finish(text) => reply.push(framing::halves(&event(&text)).1),
            Act::Hold => reply,
            Act::Die => reply.breaking(),
        })
    })
    .await
}

/// Each message is a text frame.
async fn on_websocket(manner: Manner, script: Script) -> websocket::Peer {
    use websocket::Step;
    let begin = Mutex::new(manner.begin);
    let text = move |text: &str| {
        let begin = std::mem::take(&mut *begin.lock().unwrap());
        format!("{begin}{text}{}", manner.ends.after_json())
    };
    websocket::Peer::start(move |message| {
        let raw = |half: &[u8]| Step::Raw(half.to_vec());
        let steps = script(message).into_iter().filter_map(|act| match act {
            Act::Say(it) | Act::Answer(_, it) => Some(Step::Text(text(&it))),
            Act::Begin(it) => Some(raw(framing::halved(&framing::websocket(&text(&it))).0)),
            Act::Finish(it) => Some(raw(framing::halved(&framing::websocket(&text(&it))).1)),
            Act::Hold => None,
            Act::Die => Some(Step::Drop),
        });
        steps.collect()
    })
    .await
}
