//! Passes server requests (sampling, elicitation, roots) of a running call to its client.
//!
//! A client with a session receives the request during the call. A client without a session cannot receive requests:
//! its call returns that it needs input ([`crate::session::pending_input`]).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use mcp_host_model::{MethodName, RawJson, RpcError};
use mcp_host_transport::{RawRequestHandler, RawServerRequest};
use parking_lot::Mutex;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use crate::session::client_channel::ClientChannel;
use crate::session::outbound_queue::MessageSender;
use crate::session::server_requests::internal_error;
use crate::session::supported_requests::SupportedRequests;

/// Sends server requests to the client of a session during the call.
pub(crate) struct SessionRequestHandler {
    pub(crate) supported: SupportedRequests,
    pub(crate) channel: Arc<ClientChannel>,
    pub(crate) sender: MessageSender,
    pub(crate) timeout: Duration,
}

#[async_trait]
impl RawRequestHandler for SessionRequestHandler {
    fn handles(&self, method: &MethodName) -> bool {
        self.supported.supports(method)
    }

    async fn handle(&self, request: RawServerRequest) -> Result<RawJson, RpcError> {
        let RawServerRequest { method, params, .. } = request;
        self.supported.check_params(&method, &params)?;
        // If nothing reads the call's stream, the session's stream may still be open.
        let sender = if self.sender.is_closed() {
            self.channel.stream_sender().unwrap_or_else(|| self.sender.clone())
        } else {
            self.sender.clone()
        };
        self.channel.requests.send(&sender, method.as_str(), params.as_str(), self.timeout).await
    }
}

/// A server request that waits for the client to repeat its call with the response.
#[derive(Debug)]
pub(crate) struct InputRequest {
    pub(crate) request: RawServerRequest,
    pub(crate) response: oneshot::Sender<InputReply>,
}

/// The reply to an [`InputRequest`].
#[derive(Debug)]
pub(crate) enum InputReply {
    /// The client's response.
    Response(RawJson),
    /// The call ended before the client got the request.
    Undelivered,
}

/// The running calls of a dialog that can return server requests.
#[derive(Debug, Default)]
pub(crate) struct OpenCalls(Mutex<Vec<mpsc::Sender<InputRequest>>>);

impl OpenCalls {
    /// Adds a call, and removes those that have ended.
    pub(crate) fn add(&self, call: &mpsc::Sender<InputRequest>) {
        let mut calls = self.0.lock();
        calls.retain(|it| !it.is_closed() && !it.same_channel(call));
        calls.push(call.clone());
    }

    /// The latest call that has not ended.
    pub(crate) fn latest(&self) -> Option<mpsc::Sender<InputRequest>> {
        self.0.lock().iter().rfind(|it| !it.is_closed()).cloned()
    }
}

/// Returns server requests as the result of the call. If the call ends first, another call of the dialog returns the
/// request, because a server with one connection does not say to which of the client's calls its request belongs.
pub(crate) struct InputRequestHandler {
    pub(crate) supported: SupportedRequests,
    pub(crate) requests: mpsc::Sender<InputRequest>,
    /// All calls of the dialog.
    pub(crate) calls: Arc<OpenCalls>,
    pub(crate) timeout: Duration,
}

impl InputRequestHandler {
    /// Sends the request to a call that is open, and waits for the client's response. Dropping the future drops the
    /// request.
    async fn request_input(&self, request: RawServerRequest) -> Result<RawJson, RpcError> {
        let mut call = Some(self.requests.clone());
        while let Some(requests) = call {
            let (sender, response) = oneshot::channel();
            match requests.try_send(InputRequest { request: request.clone(), response: sender }) {
                Ok(()) => match response.await {
                    Ok(InputReply::Response(response)) => return Ok(response),
                    Ok(InputReply::Undelivered) => {}
                    Err(_) => {
                        return Err(internal_error("the client did not repeat its call with an answer"));
                    }
                },
                Err(TrySendError::Full(_)) => {
                    return Err(internal_error("too many requests to the client are open"));
                }
                Err(TrySendError::Closed(_)) => {}
            }
            call = self.calls.latest();
        }
        Err(internal_error("the client has no running call"))
    }
}

#[async_trait]
impl RawRequestHandler for InputRequestHandler {
    fn handles(&self, method: &MethodName) -> bool {
        self.supported.supports(method)
    }

    async fn handle(&self, request: RawServerRequest) -> Result<RawJson, RpcError> {
        self.supported.check_params(&request.method, &request.params)?;
        let in_time = tokio::time::timeout(self.timeout, self.request_input(request)).await;
        in_time.unwrap_or_else(|_| {
            Err(internal_error("the client did not repeat its call with an answer in time"))
        })
    }
}
