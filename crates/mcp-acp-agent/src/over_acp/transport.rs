//! A transport that sends each message as a request of the ACP connection.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::future::{AbortHandle, abortable};
use futures_util::stream::FuturesUnordered;
use mcp_transport::{
    Dial, Disconnect, DisconnectReason, Epoch, FrameSink, HandshakeMode, Link, Outbound, OutboundMessage,
    RequestError, RequestId, StreamError, StreamId, Transport,
};
use serde_json::Value;

use super::message::{Message, params, response_frame, stream_error};
use super::{OverAcp, RequestRoute};

/// Dials a server that the client provides.
pub(super) struct OverAcpDialer {
    pub(super) over: OverAcp,
    pub(super) server_id: String,
    /// The maximum size of a response in bytes.
    pub(super) max_response_bytes: usize,
}

impl Dial for OverAcpDialer {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(OverAcpTransport {
            over: self.over.clone(),
            server_id: self.server_id.clone(),
            longest: self.max_response_bytes,
            refused: None,
        })
    }

    fn label(&self) -> String {
        "MCP over ACP".to_owned()
    }

    fn redact(&self, text: &str) -> String {
        // The client received no secrets.
        text.chars().filter(|it| !it.is_control()).take(1000).collect()
    }

    fn redact_json(&self, _: &str) -> Option<String> {
        None
    }

    fn handshake_mode(&self) -> HandshakeMode {
        HandshakeMode::Negotiate
    }
}

struct OverAcpTransport {
    over: OverAcp,
    server_id: String,
    longest: usize,
    /// The error of `server/discover`.
    refused: Option<RequestError>,
}

/// A finished request.
struct FinishedRequest {
    id: RequestId,
    epoch: Epoch,
    outcome: Result<Value, agent_client_protocol::Error>,
}

#[async_trait]
impl Transport for OverAcpTransport {
    async fn run(mut self: Box<Self>, link: Link) -> Disconnect {
        let Link { outbound: mut out, inbound: inbox, shutdown: mut stop } = link;
        let connection = self.over.0.connection.clone();
        let over = connection.terminated();
        tokio::pin!(over);
        let mut pending = FuturesUnordered::new();
        // Dropping a cancelled request makes the SDK notify the client.
        let mut abandons: HashMap<RequestId, AbortHandle> = HashMap::new();
        loop {
            tokio::select! {
                _ = stop.requested() => return Disconnect::new(DisconnectReason::Stopped),
                _ = &mut over => return Disconnect::new(DisconnectReason::PeerClosed),
                Some(done) = pending.next() => {
                    if let Ok(FinishedRequest { id, epoch, outcome }) = done {
                        abandons.remove(&id);
                        self.settle(&*inbox, id, epoch, outcome);
                    }
                }
                next = out.next() => match next {
                    None => return Disconnect::new(DisconnectReason::Stopped),
                    Some(Outbound::Cancel { id, notice: _ }) => {
                        if let Some(abandon) = abandons.remove(&id) {
                            abandon.abort();
                        }
                    }
                    Some(Outbound::Send(message)) => {
                        if let Some((id, sent)) = self.send(&inbox, &message) {
                            let (sent, abandon) = abortable(sent);
                            abandons.insert(id, abandon);
                            pending.push(sent);
                        }
                    }
                },
            }
        }
    }
}

impl OverAcpTransport {
    /// Sends a request. Other messages cannot be sent: the era that needs them is not supported.
    fn send(
        &self,
        inbox: &Arc<dyn FrameSink>,
        message: &OutboundMessage,
    ) -> Option<(RequestId, impl Future<Output = FinishedRequest> + Send + use<>)> {
        let (id, epoch) = (message.head.id?, message.epoch);
        if message.head.method == "initialize" {
            inbox.stream_failed(id, StreamError::Refused(self.only_modern()));
            return None;
        }
        let params = match params(&message.body) {
            Ok(params) => params,
            Err(error) => {
                let message = format!("the request cannot be put into ACP: {error}");
                inbox.stream_failed(
                    id,
                    StreamError::Refused(RequestError { status: None, message, error: None }),
                );
                return None;
            }
        };
        let ends = &self.over.0;
        let inbox = Arc::downgrade(inbox);
        let open = ends.routes.open(RequestRoute { server_id: self.server_id.clone(), inbox, id, epoch });
        let sent = ends.connection.send_request(Message {
            server_id: self.server_id.clone(),
            request_id: open.name.clone(),
            method: message.head.method.clone().into_owned(),
            params,
        });
        Some((id, async move {
            let outcome = sent.block_task().await;
            drop(open);
            FinishedRequest { id, epoch, outcome }
        }))
    }

    fn settle(
        &mut self,
        inbox: &dyn FrameSink,
        id: RequestId,
        epoch: Epoch,
        outcome: Result<Value, agent_client_protocol::Error>,
    ) {
        let answer = match outcome {
            Ok(response) => response_frame(id, response, self.longest),
            Err(error) => Err(stream_error(&error)),
        };
        match answer {
            Ok(frame) => {
                inbox.deliver(StreamId::Request(id, epoch), frame);
            }
            Err(end) => {
                if let StreamError::Refused(fault) | StreamError::Lost(fault) = &end {
                    self.refused.get_or_insert_with(|| fault.clone());
                }
                inbox.stream_failed(id, end);
            }
        }
    }

    /// The error for the legacy era: the error of the stateless probe, if there is one.
    fn only_modern(&self) -> RequestError {
        self.refused.clone().unwrap_or_else(|| RequestError {
            status: None,
            message: "MCP over ACP requires a server of MCP's stateless era".to_owned(),
            error: None,
        })
    }
}
