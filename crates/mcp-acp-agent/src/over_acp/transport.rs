//! A transport that sends each message as a request of the ACP connection.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::future::{AbortHandle, abortable};
use futures_util::stream::FuturesUnordered;
use mcp_host_model::Method;
use mcp_host_transport::{
    Dial, Disconnect, DisconnectReason, Epoch, FrameSink, HandshakeMode, Link, Outbound, OutboundMessage,
    RequestError, RequestId, StreamError, StreamId, Transport,
};
use serde_json::Value;

use super::connection::{OverAcp, RequestRoute};
use super::message::{OverAcpMessage, parse_params, response_frame, stream_error};

/// Dials a server that the client provides.
pub(super) struct OverAcpDial {
    pub(super) connection: OverAcp,
    pub(super) server_id: String,
    /// The maximum size of a response in bytes.
    pub(super) max_response_bytes: usize,
}

impl Dial for OverAcpDial {
    fn dial(&self) -> Box<dyn Transport> {
        Box::new(OverAcpTransport {
            connection: self.connection.clone(),
            server_id: self.server_id.clone(),
            max_response_bytes: self.max_response_bytes,
            first_error: None,
        })
    }

    fn label(&self) -> String {
        "MCP over ACP".to_owned()
    }

    fn redact(&self, text: &str) -> String {
        // The client received no secrets.
        text.chars().filter(|char| !char.is_control()).take(1000).collect()
    }

    fn redact_json(&self, _: &str) -> Option<String> {
        None
    }

    fn handshake_mode(&self) -> HandshakeMode {
        HandshakeMode::Negotiate
    }
}

/// A transport to one server that the client provides.
struct OverAcpTransport {
    connection: OverAcp,
    server_id: String,
    max_response_bytes: usize,
    /// The error of the first request that failed, usually `server/discover`.
    first_error: Option<RequestError>,
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
        let Link { mut outbound, inbound, mut shutdown, .. } = link;
        let connection = self.connection.0.connection.clone();
        let terminated = connection.terminated();
        tokio::pin!(terminated);
        let mut pending = FuturesUnordered::new();
        // Dropping a cancelled request makes the SDK notify the client.
        let mut abort_handles: HashMap<RequestId, AbortHandle> = HashMap::new();
        loop {
            tokio::select! {
                _ = shutdown.requested() => return Disconnect::new(DisconnectReason::Stopped),
                _ = &mut terminated => return Disconnect::new(DisconnectReason::PeerClosed),
                Some(finished) = pending.next() => {
                    if let Ok(FinishedRequest { id, epoch, outcome }) = finished {
                        abort_handles.remove(&id);
                        self.deliver(&*inbound, id, epoch, outcome);
                    }
                }
                next = outbound.next() => match next {
                    None => return Disconnect::new(DisconnectReason::Stopped),
                    Some(Outbound::Cancel { id, notice: _ }) => {
                        if let Some(handle) = abort_handles.remove(&id) {
                            handle.abort();
                        }
                    }
                    Some(Outbound::Send(message)) => {
                        if let Some((id, request)) = self.send(&inbound, &message) {
                            let (request, handle) = abortable(request);
                            abort_handles.insert(id, handle);
                            pending.push(request);
                        }
                    }
                },
            }
        }
    }
}

impl OverAcpTransport {
    /// Sends a request, and returns its id and the future of its response. Other messages are not sent: only the legacy
    /// era, which is not supported, has them.
    fn send(
        &self,
        inbound: &Arc<dyn FrameSink>,
        message: &OutboundMessage,
    ) -> Option<(RequestId, impl Future<Output = FinishedRequest> + Send + use<>)> {
        let (id, epoch) = (message.head.id?, message.epoch);
        if message.head.has_method(Method::Initialize) {
            inbound.fail_stream(id, StreamError::Refused(self.legacy_error()));
            return None;
        }
        let params = match parse_params(&message.body) {
            Ok(params) => params,
            Err(error) => {
                let message = format!("the request cannot be sent over ACP: {error}");
                let error = RequestError::new(message);
                inbound.fail_stream(id, StreamError::Refused(error));
                return None;
            }
        };
        let over_acp = &self.connection.0;
        let (server_id, inbound) = (self.server_id.clone(), Arc::downgrade(inbound));
        let route = over_acp.routes.open(RequestRoute { server_id, inbound, id, epoch });
        let response = over_acp.connection.send_request(OverAcpMessage {
            server_id: self.server_id.clone(),
            request_id: route.request_id.clone(),
            method: message.head.method_name().unwrap_or_default().to_owned(),
            params,
        });
        Some((id, async move {
            let outcome = response.block_task().await;
            drop(route);
            FinishedRequest { id, epoch, outcome }
        }))
    }

    /// Delivers the response of a request, or its error.
    fn deliver(
        &mut self,
        inbound: &dyn FrameSink,
        id: RequestId,
        epoch: Epoch,
        outcome: Result<Value, agent_client_protocol::Error>,
    ) {
        let frame = match outcome {
            Ok(response) => response_frame(id, response, self.max_response_bytes),
            Err(error) => Err(stream_error(&error)),
        };
        match frame {
            Ok(frame) => {
                inbound.deliver(StreamId::Request(id, epoch), frame);
            }
            Err(stream_error) => {
                if let StreamError::Refused(error) | StreamError::Lost(error) = &stream_error {
                    self.first_error.get_or_insert_with(|| error.clone());
                }
                inbound.fail_stream(id, stream_error);
            }
        }
    }

    /// The error for the legacy era: the error of the stateless probe, if there is one.
    fn legacy_error(&self) -> RequestError {
        self.first_error
            .clone()
            .unwrap_or_else(|| RequestError::new("MCP over ACP requires a server of MCP's stateless era"))
    }
}
