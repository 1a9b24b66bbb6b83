//! A transport to a scripted server in memory.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Script, ServerAction};
use crate::error::disconnect::{Disconnect, DisconnectReason};
use crate::transport::{Dial, Link, MessageClass, Outbound, StreamId, Transport};

/// A dial to a server in memory that performs a script. Each connection has the same script. A message is sent at once and
/// whole; halves are ignored.
///
/// A request that the script does not respond to ends at its timeout.
pub fn scripted_dial(script: Script) -> Arc<dyn Dial> {
    Arc::new(ScriptedDial(script))
}

struct ScriptedDial(Script);

impl Dial for ScriptedDial {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(ScriptedTransport(Arc::clone(&self.0)))
    }

    fn label(&self) -> String {
        "scripted server".to_owned()
    }

    fn redact(&self, text: &str) -> String {
        text.to_owned()
    }
}

struct ScriptedTransport(Script);

#[async_trait]
impl Transport for ScriptedTransport {
    async fn run(self: Box<Self>, link: Link) -> Disconnect {
        let Link { mut outbound, inbound, mut shutdown, .. } = link;
        loop {
            let command = tokio::select! {
                command = outbound.next() => command,
                _ = shutdown.requested() => None,
            };
            let body = match command {
                Some(Outbound::Send(message)) => message.body,
                Some(Outbound::Cancel { notice: Some(notice), .. }) => notice,
                Some(Outbound::Cancel { notice: None, .. }) => continue,
                None => return Disconnect::new(DisconnectReason::Stopped),
            };
            let message = serde_json::from_slice(&body).expect("a session sends JSON");
            for action in (self.0)(&message) {
                let text = match action {
                    ServerAction::Send(text) | ServerAction::Respond(_, text) => text,
                    ServerAction::Disconnect => return Disconnect::new(DisconnectReason::PeerClosed),
                    ServerAction::KeepOpen
                    | ServerAction::SendFirstHalf(_)
                    | ServerAction::SendSecondHalf(_) => continue,
                };
                if let MessageClass::Unsolicited(_) = inbound.deliver(StreamId::Shared, text.into()) {
                    tokio::task::yield_now().await;
                }
            }
        }
    }
}
