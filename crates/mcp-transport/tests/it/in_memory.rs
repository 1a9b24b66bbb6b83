//! An in-memory transport, whose peer is a function from a message to replies. For tests that do not depend on the
//! transport.

use std::sync::Arc;

use mcp_host_transport::{
    Dial, Disconnect, DisconnectReason, Epoch, Link, Outbound, Session, SessionOptions, StreamError, StreamId,
};
use mcp_testkit::servers;
use serde_json::{Value, json};

/// A peer: the replies to one message. It is never called with `Value::Null`.
pub(crate) type Peer = Arc<dyn Fn(&Value) -> Vec<Reply> + Send + Sync>;

/// One action of a peer.
pub(crate) enum Reply {
    /// Sends this message on the shared stream.
    Send(Value),
    /// Sends this text on the shared stream.
    Text(String),
    /// Sends this message on the stream of this request.
    SendOn(u64, Value),
    /// Sends this message on the notification stream.
    SendUnsolicited(Value),
    /// Ends the stream of this request without a response.
    FailStream(u64, StreamError),
    /// Sends something that is not JSON-RPC.
    Noise,
    /// Closes the connection.
    Disconnect,
}

/// A dial that connects to the peer.
pub(crate) fn dial(peer: Peer) -> Arc<dyn Dial> {
    servers::in_memory("memory", move |link| run(Arc::clone(&peer), link))
}

async fn run(peer: Peer, link: Link) -> Disconnect {
    let Link { mut outbound, inbound, mut shutdown, .. } = link;
    loop {
        let message = tokio::select! {
            message = outbound.next() => message,
            _ = shutdown.requested() => return Disconnect::new(DisconnectReason::Stopped),
        };
        let body = match message {
            Some(Outbound::Send(message)) => message.body,
            Some(Outbound::Cancel { notice: Some(notice), .. }) => notice,
            Some(Outbound::Cancel { notice: None, .. }) => continue,
            None => return Disconnect::new(DisconnectReason::Stopped),
        };
        for reply in peer(&serde_json::from_slice(&body).unwrap()) {
            let (stream, text) = match reply {
                Reply::Send(message) => (StreamId::Shared, message.to_string()),
                Reply::Text(text) => (StreamId::Shared, text),
                Reply::SendOn(id, message) => (StreamId::Request(id, Epoch(0)), message.to_string()),
                Reply::SendUnsolicited(message) => (StreamId::Notifications(Epoch(0)), message.to_string()),
                Reply::Noise => (StreamId::Shared, "{what is this".to_owned()),
                Reply::FailStream(id, error) => {
                    inbound.fail_stream(id, error);
                    continue;
                }
                Reply::Disconnect => return Disconnect::new(DisconnectReason::PeerClosed),
            };
            inbound.deliver(stream, text.into());
        }
    }
}

/// The response to a message.
pub(crate) fn answer(message: &Value, result: Value) -> Vec<Reply> {
    vec![Reply::Send(json!({"jsonrpc": "2.0", "result": result, "id": message["id"]}))]
}

/// An error response to a message.
pub(crate) fn refuse(message: &Value, code: i64, data: Value) -> Vec<Reply> {
    let error = json!({"code": code, "message": "no", "data": data});
    vec![Reply::Send(json!({"jsonrpc": "2.0", "id": message["id"], "error": error}))]
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
    pub(crate) dial: Arc<dyn Dial>,
    received: Arc<std::sync::Mutex<Vec<Value>>>,
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
        let received = Arc::new(std::sync::Mutex::new(Vec::new()));
        let note = Arc::clone(&received);
        let peer: Peer = Arc::new(move |message| {
            note.lock().unwrap().push(message.clone());
            peer(message)
        });
        Server { dial: dial(peer), received }
    }

    pub(crate) async fn connect(&self, options: SessionOptions) -> Session {
        Session::connect(Arc::clone(&self.dial), options).await.unwrap()
    }

    pub(crate) fn received(&self) -> Vec<Value> {
        self.received.lock().unwrap().clone()
    }

    /// The methods that it received, in order; `=` is a response.
    pub(crate) fn summary(&self) -> String {
        let received = self.received();
        let words = received.iter().map(|message| message["method"].as_str().unwrap_or("="));
        words.collect::<Vec<_>>().join(" ")
    }

    /// The first message that it received with a method.
    #[track_caller]
    pub(crate) fn first(&self, method: &str) -> Value {
        let received = self.received().into_iter().find(|message| message["method"] == method);
        received.unwrap_or_else(|| panic!("no {method} in {}", self.summary()))
    }

    /// The responses that it received, as `id: result or error`.
    pub(crate) fn answers(&self) -> Vec<String> {
        let answers = self.received().into_iter().filter(|it| it.get("method").is_none());
        answers
            .map(|message| match message.get("result") {
                Some(result) => format!("{}: {result}", message["id"]),
                None => format!("{}: {}", message["id"], message["error"]["message"].as_str().unwrap()),
            })
            .collect()
    }
}
