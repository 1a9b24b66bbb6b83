//! Tracks the SDK's requests in flight and reopens a lost session. No I/O.

use std::collections::BTreeMap;

use bytes::Bytes;
use mcp_host_model::{Method, MethodName, ProtocolVersion, RpcError, code};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::RmcpError;
use crate::server_requests::{OpenServerRequests, RequestRefusal, ServerResponse};
use mcp_host_transport::internal::frame;
use mcp_host_transport::internal::scan::{ResponseId, ScannedFrame, scan};
use mcp_host_transport::{Disconnect, RequestError};
use mcp_host_transport::{Epoch, MessageHead, Outbound, OutboundMessage, RequestId, StreamError, StreamId};

/// The first id of the tracker's own requests; the SDK counts up from 0 in 32 bits.
const FIRST_OWN_ID: RequestId = 1 << 48;

/// How often a request is sent again because the server did not run it.
const MAX_RESENDS: u8 = 2;

/// An action of the bridge. Actions are performed in order.
#[derive(Debug)]
pub(crate) enum Action {
    /// Send this to the server.
    Send(Outbound),
    /// Pass this frame to the SDK.
    Frame(Bytes),
    /// Fail a request of the SDK.
    Fail(RequestId, RpcError),
}

/// A request of the SDK without a response.
struct PendingRequest {
    message: OutboundMessage,
    /// The version named in the request; others use the session's version.
    own_version: Option<ProtocolVersion>,
    /// How often it was sent again.
    resends: u8,
}

/// The requests of one connection.
#[derive(Default)]
pub(crate) struct RequestTracker {
    /// The current session.
    epoch: u32,
    /// The negotiated version of the session.
    version: Option<ProtocolVersion>,
    pending: BTreeMap<RequestId, PendingRequest>,
    /// The SDK's `initialize`, to reopen a lost session.
    initialize: Option<Bytes>,
    /// The SDK's `notifications/initialized`, to reopen a lost session.
    initialized: Option<Bytes>,
    /// The id of the tracker's own `initialize` while the session is reopened.
    reopening_id: Option<RequestId>,
    /// Requests to send after the session is reopened.
    queued: Vec<RequestId>,
    /// Server requests that the SDK is working on.
    server_requests: OpenServerRequests,
    /// Number of the tracker's own requests.
    own_id_count: RequestId,
    /// The server has responded to a request.
    has_response: bool,
    is_closed: bool,
}

/// The members of a message of the SDK that the tracker reads.
#[derive(Deserialize)]
struct SdkMessage<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<MethodName>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct SdkParams {
    name: Option<String>,
    uri: Option<String>,
    #[serde(rename = "requestId")]
    request_id: Option<RequestId>,
    #[serde(rename = "_meta")]
    meta: Option<SdkMeta>,
}

#[derive(Deserialize)]
struct SdkMeta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<String>,
}

impl RequestTracker {
    /// Whether the server has responded to anything.
    pub(crate) fn has_response(&self) -> bool {
        self.has_response
    }

    /// Handles a message from the SDK.
    pub(crate) fn send(&mut self, body: Bytes) -> Result<Vec<Action>, RmcpError> {
        if self.is_closed {
            return Err(invalid_message("the connection is over"));
        }
        let message: SdkMessage<'_> = serde_json::from_slice(&body)
            .map_err(|error| invalid_message(&format!("it is not a JSON-RPC message: {error}")))?;
        let params = |it: &RawValue| serde_json::from_str::<SdkParams>(it.get()).ok();
        let params = message.params.and_then(params).unwrap_or_default();
        let own_version = params.meta.and_then(|it| it.version).and_then(|it| it.parse().ok());
        let version = own_version.or(self.version);
        let Some(method) = message.method else {
            // A response without an id, or with an unknown one, belongs to no request.
            let response = message.id.and_then(|id| self.server_requests.take_response(id, &body));
            return Ok(response.map(|it| response_action(it, version)).into_iter().collect());
        };
        let Some(id) = message.id else {
            if method == Method::Cancelled
                && let Some(id) = params.request_id
            {
                self.pending.remove(&id);
                return Ok(vec![Action::Send(Outbound::Cancel { id, notice: Some(body.clone()) })]);
            }
            if method == Method::Initialized {
                self.initialized = Some(body.clone());
            }
            return Ok(vec![self.notification(method, version, body.clone())]);
        };
        let id: RequestId = id
            .get()
            .parse()
            .ok()
            .filter(|it| *it < FIRST_OWN_ID)
            .ok_or_else(|| invalid_message("a request id must be an integer below 2^48"))?;
        if method == Method::Initialize {
            self.initialize = Some(body.clone());
        }
        let mut head = MessageHead::new(Some(id), method, version);
        head.name = params.name.or(params.uri).map(Into::into);
        let message = OutboundMessage::new(Epoch(self.epoch), head, body.clone());
        self.pending.insert(id, PendingRequest { message: message.clone(), own_version, resends: 0 });
        if self.reopening_id.is_some() {
            self.queued.push(id);
            return Ok(Vec::new());
        }
        Ok(vec![Action::Send(Outbound::Send(message))])
    }

    /// Handles a frame from the server.
    pub(crate) fn handle_frame(&mut self, stream: StreamId, frame: Bytes) -> Vec<Action> {
        match scan(&frame) {
            ScannedFrame::Response { id: ResponseId::Number(id), is_error, payload_start, .. } => {
                let mut actions = self.handle_response(id, is_error, payload_start, frame);
                if stream.is_foreign_to(id) && !actions.is_empty() {
                    actions.push(Action::Send(Outbound::Cancel { id, notice: None }));
                }
                actions
            }
            // An error without an id belongs to the request of its stream.
            ScannedFrame::Response { id: ResponseId::Absent, is_error, payload_start, .. } => {
                let Some(id) = stream.request().filter(|_| is_error) else { return Vec::new() };
                let unreadable = || RpcError::new(code::INTERNAL_ERROR, "the server's error cannot be read");
                self.fail(id, parse_payload(&frame, payload_start).unwrap_or_else(unreadable))
            }
            ScannedFrame::EmptyResponse(id) => {
                let message = "the server's response has neither a result nor an error";
                self.fail(id, RpcError::new(code::INTERNAL_ERROR, message))
            }
            ScannedFrame::Response { id: ResponseId::Foreign, .. } | ScannedFrame::Noise => Vec::new(),
            ScannedFrame::Request { id, .. } => {
                match self.server_requests.insert(stream.epoch(), &frame, id.clone()) {
                    Ok(frame) => vec![Action::Frame(frame)],
                    Err(RequestRefusal::TooMany) => {
                        let error = RpcError::new(code::INTERNAL_ERROR, "too many requests at once");
                        let body = frame::response(&String::from_utf8_lossy(&frame[id]), &Err(error));
                        vec![response_action(ServerResponse { epoch: stream.epoch(), body }, self.version)]
                    }
                    Err(RequestRefusal::LongId) => Vec::new(),
                }
            }
            ScannedFrame::Notification { method, .. } if method == Method::Cancelled => {
                self.server_requests.cancel(stream.epoch(), &frame).map(Action::Frame).into_iter().collect()
            }
            ScannedFrame::Notification { .. } => vec![Action::Frame(frame)],
            ScannedFrame::Batch(items) => {
                let items = items.into_iter().filter(|it| frame[it.clone()].first() == Some(&b'{'));
                items.flat_map(|it| self.handle_frame(stream, frame.slice(it))).collect()
            }
        }
    }

    /// Whether a request still waits for its response.
    pub(crate) fn is_pending(&self, id: RequestId) -> bool {
        self.pending.contains_key(&id) || self.reopening_id == Some(id)
    }

    /// Handles the failure of a response stream.
    pub(crate) fn fail_stream(&mut self, id: RequestId, error: StreamError) -> Vec<Action> {
        match error {
            StreamError::Unreachable(error) | StreamError::Refused(error) => {
                self.fail(id, refusal_error(&error))
            }
            StreamError::NotExecuted(epoch) => self.handle_not_executed(id, epoch),
            error => self.fail(id, RpcError::new(code::INTERNAL_ERROR, error.to_string())),
        }
    }

    /// Fails all requests because the connection has ended.
    pub(crate) fn handle_disconnect(&mut self, disconnect: &Disconnect) -> Vec<Action> {
        self.is_closed = true;
        let message = format!("the server is no longer available: {disconnect}");
        self.fail_all(&RpcError::new(code::INTERNAL_ERROR, message))
    }

    /// Fails all requests.
    pub(crate) fn fail_all(&mut self, error: &RpcError) -> Vec<Action> {
        self.queued.clear();
        self.reopening_id = None;
        std::mem::take(&mut self.pending).into_keys().map(|id| Action::Fail(id, error.clone())).collect()
    }

    fn notification(&self, method: MethodName, version: Option<ProtocolVersion>, body: Bytes) -> Action {
        send_action(Epoch(self.epoch), MessageHead::new(None, method, version), body)
    }

    /// Passes the response of a pending request to the SDK.
    fn handle_response(
        &mut self,
        id: RequestId,
        is_error: bool,
        payload_start: usize,
        frame: Bytes,
    ) -> Vec<Action> {
        if self.reopening_id == Some(id) {
            return self.handle_reopened(is_error, &frame, payload_start);
        }
        // A response to no pending request is dropped: the SDK could not match it.
        let Some(request) = self.pending.remove(&id) else { return Vec::new() };
        self.has_response = true;
        if request.message.head.has_method(Method::Initialize) && !is_error {
            self.version = negotiated_version(&frame, payload_start);
        }
        vec![Action::Frame(frame)]
    }

    /// Fails a request.
    fn fail(&mut self, id: RequestId, error: RpcError) -> Vec<Action> {
        if self.reopening_id == Some(id) {
            return self.fail_queued(&error);
        }
        if self.pending.remove(&id).is_none() {
            return Vec::new();
        }
        self.has_response = true;
        vec![Action::Fail(id, error)]
    }

    /// Sends a request again that the server did not run, in a new session if its session is lost.
    fn handle_not_executed(&mut self, id: RequestId, epoch: Epoch) -> Vec<Action> {
        let Some(request) = self.pending.get_mut(&id) else {
            if self.reopening_id != Some(id) {
                return Vec::new();
            }
            return self.fail_queued(&RpcError::new(code::INTERNAL_ERROR, "the server lost it at once"));
        };
        request.resends += 1;
        let may_resend = request.resends <= MAX_RESENDS;
        let Some(initialize) = self.initialize.clone().filter(|_| may_resend) else {
            let message = "the server lost the session and did not run the request";
            return self.fail(id, RpcError::new(code::INTERNAL_ERROR, message));
        };
        if self.reopening_id.is_some() {
            self.queued.push(id);
            return Vec::new();
        }
        if epoch < Epoch(self.epoch) {
            return self.resend(&[id]);
        }
        self.epoch += 1;
        self.version = None;
        self.queued.push(id);
        let own_id = FIRST_OWN_ID + self.own_id_count;
        self.own_id_count += 1;
        self.reopening_id = Some(own_id);
        match replace_id(&initialize, own_id) {
            Some(body) => {
                let head = MessageHead::new(Some(own_id), Method::Initialize, None);
                vec![send_action(Epoch(self.epoch), head, body)]
            }
            None => self.fail_queued(&RpcError::new(
                code::INTERNAL_ERROR,
                "its `initialize` request cannot be repeated",
            )),
        }
    }

    /// Handles the response to the tracker's own `initialize`.
    fn handle_reopened(&mut self, is_error: bool, frame: &Bytes, payload_start: usize) -> Vec<Action> {
        if is_error {
            let error = parse_payload::<RpcError>(frame, payload_start);
            return self.fail_queued(&error.unwrap_or_else(|| RpcError::new(code::INTERNAL_ERROR, "")));
        }
        self.reopening_id = None;
        self.version = negotiated_version(frame, payload_start);
        let initialized = self.initialized.clone();
        let initialized =
            initialized.map(|body| self.notification(Method::Initialized.into(), self.version, body));
        let queued = std::mem::take(&mut self.queued);
        initialized.into_iter().chain(self.resend(&queued)).collect()
    }

    /// Fails the requests that wait for the reopened session.
    fn fail_queued(&mut self, error: &RpcError) -> Vec<Action> {
        self.reopening_id = None;
        let message = format!("the server lost the session, and reopening it failed: {error}");
        let error = RpcError::new(code::INTERNAL_ERROR, message);
        let queued = std::mem::take(&mut self.queued);
        queued.into_iter().flat_map(|id| self.fail(id, error.clone())).collect()
    }

    /// Sends requests again in the reopened session.
    fn resend(&mut self, ids: &[RequestId]) -> Vec<Action> {
        let mut res = Vec::new();
        for id in ids {
            if let Some(PendingRequest { message, own_version, resends: _ }) = self.pending.get_mut(id) {
                message.epoch = Epoch(self.epoch);
                message.head.version = own_version.or(self.version);
                res.push(Action::Send(Outbound::Send(message.clone())));
            }
        }
        res
    }
}

fn invalid_message(why: &str) -> RmcpError {
    RmcpError::InvalidMessage(why.to_owned())
}

/// The SDK's response to a server request, sent to the session of that request.
fn response_action(
    ServerResponse { epoch, body }: ServerResponse,
    version: Option<ProtocolVersion>,
) -> Action {
    send_action(epoch, MessageHead::response(version), body)
}

fn send_action(epoch: Epoch, head: MessageHead, body: Bytes) -> Action {
    Action::Send(Outbound::Send(OutboundMessage::new(epoch, head, body)))
}

/// The error for a refused request: the server's own if there is one.
fn refusal_error(error: &RequestError) -> RpcError {
    match error.rpc_error() {
        Some(error) => error.clone(),
        None => RpcError::new(code::INTERNAL_ERROR, error.to_string()),
    }
}

fn parse_payload<T: for<'de> Deserialize<'de>>(frame: &[u8], payload_start: usize) -> Option<T> {
    let mut values = serde_json::Deserializer::from_slice(&frame[payload_start..]).into_iter::<T>();
    values.next()?.ok()
}

/// The protocol version in the result of an `initialize`.
fn negotiated_version(frame: &[u8], payload_start: usize) -> Option<ProtocolVersion> {
    #[derive(Deserialize)]
    struct InitializeResult {
        #[serde(rename = "protocolVersion")]
        version: String,
    }
    parse_payload::<InitializeResult>(frame, payload_start)?.version.parse().ok()
}

/// Replaces the id of a request.
fn replace_id(body: &[u8], id: RequestId) -> Option<Bytes> {
    let mut members: BTreeMap<String, Box<RawValue>> = serde_json::from_slice(body).ok()?;
    members.insert("id".to_owned(), RawValue::from_string(id.to_string()).ok()?);
    serde_json::to_vec(&members).ok().map(Bytes::from)
}

#[cfg(test)]
mod tests;
