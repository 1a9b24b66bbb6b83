//! An in-memory transport, whose peer is a function from a message to replies. For tests that do not depend on the
//! transport.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use mcp_transport::{
    Dial, Disconnect, DisconnectReason, Epoch, FrameSink, HandshakeMode, Link, Outbound, Session,
    SessionOptions, StreamError, StreamId, Transport,
};
use serde_json::{Value, json};

/// A peer: the replies to one message. It is never called with `Value::Null`.
pub(crate) type Peer = Arc<dyn Fn(&Value) -> Vec<Reply> + Send + Sync>;

/// One action of a peer.
pub(crate) enum Reply {
    /// Sends this message on the shared stream.
    Say(Value),
    /// Sends this message on the stream of this request.
    On(u64, Value),
    /// Sends this message on the notification stream.
    Beside(Value),
    /// Ends the stream of this request without a response.
    End(u64, StreamError),
    /// Sends something that is not JSON-RPC.
    Noise,
    /// Closes the connection.
    Leave,
}

/// A dial that connects to the peer.
pub(crate) struct Memory(pub(crate) Peer);

impl Dial for Memory {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(Wire(Arc::clone(&self.0)))
    }

    fn label(&self) -> String {
        "memory".to_owned()
    }

    fn redact(&self, text: &str) -> String {
        text.to_owned()
    }

    fn handshake_mode(&self) -> HandshakeMode {
        HandshakeMode::Negotiate
    }
}

struct Wire(Peer);

#[async_trait]
impl Transport for Wire {
    async fn run(self: Box<Self>, link: Link) -> Disconnect {
        let Link { outbound: mut out, inbound: inbox, shutdown: mut stop } = link;
        loop {
            let out = tokio::select! {
                out = out.next() => out,
                _ = stop.requested() => return Disconnect::new(DisconnectReason::Stopped),
            };
            let body = match out {
                Some(Outbound::Send(message)) => message.body,
                Some(Outbound::Cancel { notice: Some(notice), .. }) => notice,
                Some(Outbound::Cancel { notice: None, .. }) => continue,
                None => return Disconnect::new(DisconnectReason::Stopped),
            };
            if !self.answer(&body, &*inbox) {
                return Disconnect::new(DisconnectReason::PeerClosed);
            }
        }
    }
}

impl Wire {
    fn answer(&self, body: &Bytes, inbox: &dyn FrameSink) -> bool {
        for reply in (self.0)(&serde_json::from_slice(body).unwrap()) {
            match reply {
                Reply::Say(value) => {
                    inbox.deliver(StreamId::Shared, value.to_string().into());
                }
                Reply::On(id, value) => {
                    inbox.deliver(StreamId::Request(id, Epoch(0)), value.to_string().into());
                }
                Reply::Beside(value) => {
                    inbox.deliver(StreamId::Notifications(Epoch(0)), value.to_string().into());
                }
                Reply::End(id, why) => inbox.stream_failed(id, why),
                Reply::Noise => {
                    inbox.deliver(StreamId::Shared, Bytes::from_static(b"{what is this"));
                }
                Reply::Leave => return false,
            }
        }
        true
    }
}

/// The response to a message.
pub(crate) fn answer(message: &Value, result: Value) -> Vec<Reply> {
    vec![Reply::Say(json!({"jsonrpc": "2.0", "result": result, "id": message["id"]}))]
}

/// An error response to a message.
pub(crate) fn refuse(message: &Value, code: i64, data: Value) -> Vec<Reply> {
    let error = json!({"code": code, "message": "no", "data": data});
    vec![Reply::Say(json!({"jsonrpc": "2.0", "id": message["id"], "error": error}))]
}

/// The result of `initialize` of a legacy server.
pub(crate) fn initialized(version: &str) -> Value {
    json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "m", "version": "1"}})
}

/// The result of `server/discover` of a modern server.
pub(crate) fn discovered(versions: &[&str]) -> Value {
    json!({"resultType": "complete", "supportedVersions": versions, "capabilities": {"tools": {}}, "ttlMs": 0,
           "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "m", "version": "2"}}})
}

/// A server of one era with these capabilities, and a record of the messages that it received.
pub(crate) struct Server {
    pub(crate) dial: Arc<Memory>,
    heard: Arc<std::sync::Mutex<Vec<Value>>>,
}

impl Server {
    /// A legacy server. `rest` handles all messages except `initialize`, and also `notifications/initialized`.
    pub(crate) fn legacy(
        capabilities: Value,
        rest: impl Fn(&Value) -> Vec<Reply> + Send + Sync + 'static,
    ) -> Server {
        Server::new(move |message| match message["method"].as_str() {
            Some("server/discover") => refuse(message, -32601, Value::Null),
            Some("initialize") => {
                let mut result = initialized("2025-11-25");
                result["capabilities"] = capabilities.clone();
                answer(message, result)
            }
            _ => rest(message),
        })
    }

    pub(crate) fn modern(
        capabilities: Value,
        rest: impl Fn(&Value) -> Vec<Reply> + Send + Sync + 'static,
    ) -> Server {
        Server::new(move |message| match message["method"].as_str() {
            Some("server/discover") => {
                let mut result = discovered(&["2026-07-28"]);
                result["capabilities"] = capabilities.clone();
                answer(message, result)
            }
            _ => rest(message),
        })
    }

    pub(crate) fn new(peer: impl Fn(&Value) -> Vec<Reply> + Send + Sync + 'static) -> Server {
        let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
        let note = Arc::clone(&heard);
        let peer: Peer = Arc::new(move |message| {
            note.lock().unwrap().push(message.clone());
            peer(message)
        });
        Server { dial: Arc::new(Memory(peer)), heard }
    }

    pub(crate) async fn connect(&self, options: SessionOptions) -> Session {
        Session::connect(Arc::clone(&self.dial) as Arc<dyn Dial>, options).await.unwrap()
    }

    pub(crate) fn heard(&self) -> Vec<Value> {
        self.heard.lock().unwrap().clone()
    }

    /// The methods that it received, in order; `=` is a response.
    pub(crate) fn words(&self) -> String {
        let heard = self.heard();
        let words = heard.iter().map(|it| it["method"].as_str().unwrap_or("="));
        words.collect::<Vec<_>>().join(" ")
    }

    /// The first message that it received with a method.
    #[track_caller]
    pub(crate) fn first(&self, method: &str) -> Value {
        let heard = self.heard().into_iter().find(|it| it["method"] == method);
        heard.unwrap_or_else(|| panic!("no {method} in {}", self.words()))
    }

    /// The responses that it received, as `id: result or error`.
    pub(crate) fn answers(&self) -> Vec<String> {
        let answers = self.heard().into_iter().filter(|it| it.get("method").is_none());
        answers
            .map(|it| match it.get("result") {
                Some(result) => format!("{}: {result}", it["id"]),
                None => format!("{}: {}", it["id"], it["error"]["message"].as_str().unwrap()),
            })
            .collect()
    }
}
