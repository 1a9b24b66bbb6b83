//! POST of one message, and the handling of its response.

use std::pin::pin;
use std::time::Duration;

use http::Method;

use super::body::BodyError;
use super::events::{StreamEnd, StreamReader};
use super::response::{AnsweredRequests, Verdict};
use super::send_queue::OPENING;
use super::sessions::{MessageContext, MessageHeaders};
use super::{DriverCommand, HttpConnection, body, response, resume};
use crate::error::disconnect::RequestError;
use crate::net::headers::SESSION_ID;
use crate::net::{CANCELLED, ExchangeError, INITIALIZED, Response};
use crate::transport::{Epoch, OutboundMessage, RequestId, StreamError, StreamId};

/// How long other messages wait for the response to `notifications/initialized`. A server that has not responded by then
/// has read it, or never will.
const INITIALIZED_WAIT: Duration = Duration::from_secs(2);

/// Timeout of `notifications/cancelled`.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout of any other message without a response.
const NOTIFICATION_TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout of the body of an error response. The status alone suffices.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout of a body that is ignored.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(250);

/// A request that was sent.
struct ServerRequestGuard {
    id: RequestId,
    epoch: Epoch,
    standing: MessageContext,
}

/// Sends a message and handles its response. Returns the configured session that is now known to be open.
pub(super) async fn send_message(wire: &HttpConnection, message: OutboundMessage) -> Option<Epoch> {
    let id = message.head.id;
    let epoch = message.epoch;
    let Some(admitted) = wire.sessions.headers_for(&message) else {
        match id {
            Some(id) => wire.inbox.stream_failed(id, StreamError::NotExecuted(epoch)),
            None if message.head.method == INITIALIZED => wire.command(DriverCommand::OpeningDone(epoch)),
            None => {}
        }
        return None;
    };
    let Some(id) = id else {
        // Boxed because it is rare, and would enlarge every message's future.
        match &*message.head.method {
            INITIALIZED => Box::pin(send_initialized(wire, message, admitted)).await,
            _ => Box::pin(send_notification(wire, message, admitted)).await,
        }
        return None;
    };
    // A configured session is known to be open when the server accepts a first request in it.
    let opens = admitted.configured && admitted.context == MessageContext::Session;
    let is_opening = message.head.method == OPENING;
    let taken = send_request(wire, id, message, admitted).await;
    if is_opening && !taken {
        // The handshake has failed, so there is nothing to wait for.
        wire.command(DriverCommand::OpeningDone(epoch));
    }
    (opens && taken).then_some(epoch)
}

/// Sends a request and delivers its response. Returns whether the server accepted it.
async fn send_request(
    wire: &HttpConnection,
    id: RequestId,
    message: OutboundMessage,
    admitted: MessageHeaders,
) -> bool {
    let OutboundMessage { epoch, head, body } = message;
    let asked = ServerRequestGuard { id, epoch, standing: admitted.context };
    let response = match wire.send(Method::POST, &admitted.headers, Some(&body)).await {
        Ok(response) => response,
        Err(failed) => {
            wire.inbox.stream_failed(id, failed.into());
            return false;
        }
    };
    let taken = response.status().is_success();
    if taken && head.method == OPENING {
        // Before the response is delivered: the next message belongs to this session.
        wire.sessions.open(epoch, response.headers().get(SESSION_ID).cloned());
    }
    let end = match taken {
        true => asked.deliver_response(wire, response).await,
        false => asked.judge_error(wire, response).await,
    };
    if let Some(why) = end {
        wire.inbox.stream_failed(id, why);
    }
    taken
}

impl ServerRequestGuard {
    /// Delivers the messages of a successful response. Returns an error if the JSON-RPC response is not among them.
    async fn deliver_response(&self, wire: &HttpConnection, mut response: Response) -> Option<StreamError> {
        let status = response.status().as_u16();
        let lost =
            |message| Some(StreamError::Lost(RequestError { status: Some(status), message, error: None }));
        if response.is_event_stream() {
            let mut hearing = StreamReader::new(StreamId::Request(self.id, self.epoch));
            let end = hearing.read_stream(wire, &mut response).await;
            drop(response);
            let legacy = matches!(self.standing, MessageContext::Session | MessageContext::Sessionless);
            // Boxed because it is rare.
            if hearing.answered
                || (legacy
                    && hearing.last_id.is_some()
                    && Box::pin(resume::resume(wire, self.epoch, &mut hearing)).await)
            {
                return None;
            }
            return match end {
                StreamEnd::TooLarge => Some(StreamError::TooLarge(wire.place.max_message_bytes)),
                StreamEnd::Closed | StreamEnd::Failed(_) | StreamEnd::Silent | StreamEnd::Endless(_) => {
                    lost(end.message(wire))
                }
            };
        }
        let limit = wire.place.max_message_bytes;
        let body = match body::read_body(&mut response, limit).await {
            Ok(body) => body,
            Err(BodyError::TooLarge) => return Some(StreamError::TooLarge(limit)),
            Err(BodyError::Failed(why)) => return lost(format!("the answer broke off: {why}")),
        };
        let lines = response::lines(&body, self.id);
        if let Some(lines) = lines {
            for line in lines {
                wire.inbox.deliver(StreamId::Request(self.id, self.epoch), line);
            }
            return None;
        }
        let AnsweredRequests { own: answered, others } = response::answered_requests(&body, Some(self.id));
        // A response is accepted with any content type, other messages only as JSON.
        if answered || (is_json(&response) && !body.is_empty()) {
            wire.inbox.deliver(StreamId::Request(self.id, self.epoch), body.clone());
            others.into_iter().for_each(|it| wire.release(it));
        } else {
            wire.inbox.noise(body.len());
        }
        if answered {
            return None;
        }
        lost(match body.is_empty() {
            true => format!("the server took the request (HTTP {status}) and sent no answer"),
            false => {
                let said = response::parse(&body.slice(..body.len().min(4096)), None, &wire.place.redactor);
                format!("the response (HTTP {status}) holds no answer to the request: {}", said.message)
            }
        })
    }

    /// Handles an error status. Returns an error unless the body is the JSON-RPC response.
    async fn judge_error(&self, wire: &HttpConnection, mut response: Response) -> Option<StreamError> {
        let status = response.status().as_u16();
        let body = response.read_beginning(ERROR_BODY_TIMEOUT).await;
        let said = response::parse(&body, Some(self.id), &wire.place.redactor);
        let verdict = response::judge(status, &said, self.standing);
        let message = response::describe_response(status, response.headers(), &said, &wire.place.redactor);
        let fault = RequestError { status: Some(status), message, error: said.error };
        match verdict {
            Verdict::Response => {
                wire.inbox.deliver(StreamId::Request(self.id, self.epoch), body);
                None
            }
            Verdict::SessionLost => {
                wire.sessions.mark_lost(self.epoch);
                Some(StreamError::NotExecuted(self.epoch))
            }
            Verdict::Refused => Some(StreamError::Refused(fault)),
            Verdict::Lost => Some(StreamError::Lost(fault)),
        }
    }
}

/// Sends `notifications/initialized`, and releases the other messages when it is accepted.
async fn send_initialized(wire: &HttpConnection, message: OutboundMessage, admitted: MessageHeaders) {
    let epoch = message.epoch;
    let mut telling = pin!(send_notification_then(wire, message, admitted, || {
        // In this order: some servers send requests on the listening stream during the first call.
        wire.command(DriverCommand::SessionOpened(epoch));
        wire.command(DriverCommand::OpeningDone(epoch));
    }));
    if tokio::time::timeout(INITIALIZED_WAIT, &mut telling).await.is_err() {
        tracing::debug!("{} does not answer the notice that the opening is over", wire.place.label);
        wire.command(DriverCommand::OpeningDone(epoch));
        telling.await;
    }
    wire.command(DriverCommand::OpeningDone(epoch));
}

/// Sends a message without a response.
async fn send_notification(wire: &HttpConnection, message: OutboundMessage, admitted: MessageHeaders) {
    send_notification_then(wire, message, admitted, || {}).await;
}

/// The same, and calls `taken` when the server accepts it, which may be long before the HTTP response ends.
async fn send_notification_then(
    wire: &HttpConnection,
    message: OutboundMessage,
    admitted: MessageHeaders,
    taken: impl FnOnce(),
) {
    let OutboundMessage { epoch, head, body } = message;
    let telling = async {
        let mut response = wire.send(Method::POST, &admitted.headers, Some(&body)).await?;
        let status = response.status().as_u16();
        if response.status().is_success() {
            taken();
        }
        if response.status().is_success() {
            // Read to its end, so that the connection can be reused.
            if !response.is_event_stream() {
                response.read_beginning(DRAIN_TIMEOUT).await;
            }
            return Ok(());
        }
        let rest = response.read_beginning(ERROR_BODY_TIMEOUT).await;
        let said = response::parse(&rest, None, &wire.place.redactor);
        if response::judge(status, &said, admitted.context) == Verdict::SessionLost {
            wire.sessions.mark_lost(epoch);
        }
        let message = response::describe_response(status, response.headers(), &said, &wire.place.redactor);
        Err(ExchangeError::Refused(RequestError { status: Some(status), message, error: said.error }))
    };
    let limit = if head.method == CANCELLED { CANCEL_TIMEOUT } else { NOTIFICATION_TIMEOUT };
    match tokio::time::timeout(limit, telling).await {
        Ok(Ok(())) => {}
        Ok(Err(ExchangeError::Refused(fault) | ExchangeError::Lost(fault))) => {
            tracing::debug!(method = &*head.method, "a message was not taken: {fault}");
        }
        Err(_) => tracing::debug!(method = &*head.method, "a message was not taken in time"),
    }
}

fn is_json(response: &Response) -> bool {
    response.has_content_type("application/json")
}
