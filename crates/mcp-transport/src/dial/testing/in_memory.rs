//! A transport to a scripted server in memory.

use std::sync::Arc;

use async_trait::async_trait;
use mcp_host_model::Limits;

use super::action::{Script, ServerAction};
use crate::error::disconnect::{Disconnect, DisconnectReason};
use crate::transport::{Dial, Link, MessageClass, Outbound, StreamId, Transport};

/// A dial to a server in memory that performs a script. Each connection has the same script. A message is
/// sent at once and whole; halves are ignored.
///
/// A request that the script does not respond to ends at its timeout.
pub fn scripted_dial(script: Script) -> Arc<dyn Dial> {
    scripted_dial_with_limits(script, &Limits::default())
}

/// The same with limits, of which `message_bytes` applies: a larger message from the server ends the connection.
pub fn scripted_dial_with_limits(script: Script, limits: &Limits) -> Arc<dyn Dial> {
    Arc::new(ScriptedDial(ScriptedTransport { script, message_bytes: limits.message_bytes }))
}

struct ScriptedDial(ScriptedTransport);

impl Dial for ScriptedDial {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(self.0.clone())
    }

    fn label(&self) -> String {
        "scripted server".to_owned()
    }

    fn redact(&self, text: &str) -> String {
        text.to_owned()
    }
}

#[derive(Clone)]
struct ScriptedTransport {
    script: Script,
    message_bytes: usize,
}

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
            for action in (self.script)(&message) {
                let text = match action {
                    ServerAction::Send(text) | ServerAction::Respond(_, text) => text,
                    ServerAction::Disconnect => return Disconnect::new(DisconnectReason::PeerClosed),
                    ServerAction::KeepOpen
                    | ServerAction::SendFirstHalf(_)
                    | ServerAction::SendSecondHalf(_) => continue,
                };
                if text.len() > self.message_bytes {
                    let message = format!("it sent a message of more than {} bytes", self.message_bytes);
                    return Disconnect::new(DisconnectReason::Broken(message));
                }
                if let MessageClass::Unsolicited(_) = inbound.deliver(StreamId::Shared, text.into()) {
                    tokio::task::yield_now().await;
                }
            }
        }
    }
}
