//! A client that writes its messages itself, so that tests see the JSON that is sent.

use agent_client_protocol::{Channel, Client, ConnectTo, RawJsonRpcMessage, TransportFrame};
use futures_util::StreamExt;
use serde_json::{Value, json};

/// A client, connected to an agent in this process.
pub(crate) struct RawClient {
    channel: Channel,
    last_id: u64,
}

impl RawClient {
    /// A client at this end of a channel.
    pub(crate) fn new(channel: Channel) -> RawClient {
        RawClient { channel, last_id: 0 }
    }

    /// Connects to an agent.
    pub(crate) fn connect(agent: impl ConnectTo<Client> + 'static) -> RawClient {
        let (ours, theirs) = Channel::duplex();
        tokio::spawn(agent.connect_to(theirs));
        RawClient::new(ours)
    }

    /// Sends a request and returns its response. Discards other messages received until then.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send_request(method, params);
        loop {
            let message = self.receive().await;
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    /// Sends a request and returns its id.
    pub(crate) fn send_request(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        self.send(json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params}));
        self.last_id
    }

    /// Sends a message as it is.
    pub(crate) fn send(&self, message: Value) {
        let message: RawJsonRpcMessage = serde_json::from_value(message).unwrap();
        self.channel.tx.unbounded_send(TransportFrame::Single(message)).unwrap();
    }

    /// Receives the next message.
    pub(crate) async fn receive(&mut self) -> Value {
        match self.channel.rx.next().await.unwrap() {
            TransportFrame::Single(message) => serde_json::to_value(message).unwrap(),
            other => panic!("{other:?}"),
        }
    }
}
