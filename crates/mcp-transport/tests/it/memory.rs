//! A wire without a world: a function answers each message. For what is the same on every wire.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use mcp_transport::{Dial, EndReason, Ended, Inbox, Lane, Link, Opening, Out, Transport};
use serde_json::Value;

/// What a peer does with one message (`Value::Null` in place of a notice of cancellation's body is never given).
pub(crate) type Peer = Arc<dyn Fn(&Value) -> Vec<Reply> + Send + Sync>;

/// One thing a peer does.
pub(crate) enum Reply {
    /// Sends this.
    Say(Value),
    /// Closes the connection.
    Leave,
}

/// Dials the peer, each time anew.
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

    fn opening(&self) -> Opening {
        Opening::Negotiate
    }
}

struct Wire(Peer);

#[async_trait]
impl Transport for Wire {
    async fn run(self: Box<Self>, link: Link) -> Ended {
        let Link { mut out, inbox, mut stop } = link;
        loop {
            let out = tokio::select! {
                out = out.next() => out,
                _ = stop.requested() => return Ended::new(EndReason::Stopped),
            };
            let body = match out {
                Some(Out::Message(message)) => message.body,
                Some(Out::Abandon { notice: Some(notice), .. }) => notice,
                Some(Out::Abandon { notice: None, .. }) => continue,
                None => return Ended::new(EndReason::Stopped),
            };
            if !self.answer(&body, &*inbox) {
                return Ended::new(EndReason::PeerClosed);
            }
        }
    }
}

impl Wire {
    fn answer(&self, body: &Bytes, inbox: &dyn Inbox) -> bool {
        for reply in (self.0)(&serde_json::from_slice(body).unwrap()) {
            match reply {
                Reply::Say(value) => inbox.deliver(Lane::Shared, value.to_string().into()),
                Reply::Leave => return false,
            }
        }
        true
    }
}
