//! A client that writes its messages itself, so that what is seen is what goes over the wire.

use agent_client_protocol::{Channel, Client, ConnectTo, RawJsonRpcMessage, TransportFrame};
use futures_util::StreamExt;
use serde_json::{Value, json};

/// A client, connected to an agent in this process.
pub(crate) struct RawClient {
    peer: Channel,
    asked: u64,
}

impl RawClient {
    /// Connected, and nothing said yet.
    pub(crate) fn of(agent: impl ConnectTo<Client> + 'static) -> RawClient {
        let (peer, theirs) = Channel::duplex();
        tokio::spawn(agent.connect_to(theirs));
        RawClient { peer, asked: 0 }
    }

    /// The response to a request; what else is said until then is not listened to.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.say(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.hear().await;
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    /// Says something as it is.
    pub(crate) fn say(&self, message: Value) {
        let message: RawJsonRpcMessage = serde_json::from_value(message).unwrap();
        self.peer.tx.unbounded_send(TransportFrame::Single(message)).unwrap();
    }

    /// What the agent says next.
    pub(crate) async fn hear(&mut self) -> Value {
        match self.peer.rx.next().await.unwrap() {
            TransportFrame::Single(message) => serde_json::to_value(message).unwrap(),
            other => panic!("{other:?}"),
        }
    }
}
