//! POST of one message, and the handling of its response.

use std::pin::pin;
use std::time::Duration;

use mcp_host_model::Method;

use super::body::ResponseBodyError;
use super::connection::{DriverCommand, HttpConnection};
use super::events::{StreamEnd, StreamReader};
use super::response::{ErrorTextTrust, StatusMeaning};
use super::sessions::{MessageContext, MessageHeaders};
use super::{body, response, resume};
use crate::error::request_error::RequestError;
use crate::net::headers::SESSION_ID;
use crate::net::timeouts::{CANCEL_TIMEOUT, DRAIN_TIMEOUT, ERROR_BODY_TIMEOUT, NOTIFICATION_TIMEOUT};
use crate::net::{ExchangeError, RequestParts, Response};
use crate::transport::scan::{ScannedFrame, scan};
use crate::transport::{Epoch, OutboundMessage, RequestId, StreamError, StreamId};

/// How long other messages wait for the response to `notifications/initialized`. A server that has not
/// responded by then has read it, or never will.
const INITIALIZED_WAIT: Duration = Duration::from_secs(2);

/// A request in flight.
struct SentRequest {
    id: RequestId,
    epoch: Epoch,
    context: MessageContext,
    text_trust: ErrorTextTrust,
}

/// Sends a message and handles its response. Returns the epoch of a session with a configured id if this message is the
/// first that the server accepted in it.
pub(super) async fn send_message(connection: &HttpConnection, message: &OutboundMessage) -> Option<Epoch> {
    let id = message.head.id;
    let epoch = message.epoch;
    let Some(message_headers) = connection.sessions.headers_for(message) else {
        match id {
            Some(id) => connection.inbound.fail_stream(id, StreamError::NotExecuted(epoch)),
            None if message.head.has_method(Method::Initialized) => {
                connection.send_command(DriverCommand::EndHandshake(epoch))
            }
            None => {}
        }
        return None;
    };
    let Some(id) = id else {
        // Boxed because it is rare, and would enlarge every message's future.
        if message.head.has_method(Method::Initialized) {
            Box::pin(send_initialized(connection, message, message_headers)).await;
        } else {
            Box::pin(send_notification(connection, message, message_headers, || {})).await;
        }
        return None;
    };
    // A configured session is known to be open when the server accepts a first request in it.
    let proves_session = message_headers.configured && message_headers.context == MessageContext::Session;
    let is_initialize = message.head.has_method(Method::Initialize);
    let accepted = send_request(connection, id, message, message_headers).await;
    if is_initialize && !accepted {
        // The handshake has failed, so there is nothing to wait for.
        connection.send_command(DriverCommand::EndHandshake(epoch));
    }
    (proves_session && accepted).then_some(epoch)
}

/// The POST of a message.
fn post_parts<'a>(message: &'a OutboundMessage, message_headers: &'a MessageHeaders) -> RequestParts<'a> {
    let headers = &message_headers.headers;
    let is_in_session = message_headers.context == MessageContext::Session;
    RequestParts {
        in_established_session: is_in_session && message.head.in_established_session,
        ..RequestParts::new(&http::Method::POST, headers, Some(&message.body))
    }
}

/// Sends a request and delivers its response. Returns whether the server accepted it.
async fn send_request(
    connection: &HttpConnection,
    id: RequestId,
    message: &OutboundMessage,
    message_headers: MessageHeaders,
) -> bool {
    let epoch = message.epoch;
    let text_trust = ErrorTextTrust::for_message(&message.head);
    let request = SentRequest { id, epoch, context: message_headers.context, text_trust };
    let mut response = match connection.send(post_parts(message, &message_headers)).await {
        Ok(response) => response,
        Err(failed) => {
            connection.inbound.fail_stream(id, failed.into());
            return false;
        }
    };
    let accepted = response.status.is_success();
    if accepted && message.head.has_method(Method::Initialize) {
        // Before the response is delivered: the next message belongs to this session.
        connection.sessions.open(epoch, response.headers.get(SESSION_ID).cloned());
    }
    let failure = if accepted {
        request.deliver_response(connection, &mut response).await
    } else {
        // Boxed because it is rare, and would enlarge every message's future.
        Box::pin(request.handle_error_status(connection, response)).await
    };
    if let Some(failure) = failure {
        connection.inbound.fail_stream(id, failure);
    }
    accepted
}

impl SentRequest {
    /// Delivers the messages of a successful response. Returns an error if the JSON-RPC response is not among them.
    async fn deliver_response(
        &self,
        connection: &HttpConnection,
        response: &mut Response,
    ) -> Option<StreamError> {
        let status = response.status.as_u16();
        let unusable = |problem| Some(StreamError::Lost(RequestError::UnusableResponse { status, problem }));
        if response.is_event_stream() {
            let mut reader = StreamReader::new(StreamId::Request(self.id, self.epoch));
            // Boxed because it would enlarge the future of every message.
            let end = Box::pin(reader.read_stream(connection, response)).await;
            response.close();
            let is_legacy = matches!(self.context, MessageContext::Session | MessageContext::Sessionless);
            // Boxed because it is rare.
            if reader.answered
                || (is_legacy
                    && end != StreamEnd::Flooded
                    && reader.last_event_id.is_some()
                    && Box::pin(resume::resume(connection, self.epoch, &mut reader)).await)
            {
                return None;
            }
            return match end {
                StreamEnd::TooLarge => Some(StreamError::TooLarge(connection.endpoint.max_message_bytes)),
                StreamEnd::Closed
                | StreamEnd::Failed(_)
                | StreamEnd::Silent
                | StreamEnd::Endless(_)
                | StreamEnd::Flooded => unusable(end.message(connection)),
            };
        }
        let limit = connection.endpoint.max_message_bytes;
        let body = match body::read_body(response, limit).await {
            Ok(body) => body,
            Err(ResponseBodyError::TooLarge) => return Some(StreamError::TooLarge(limit)),
            Err(ResponseBodyError::Failed(why)) => {
                return unusable(format!("the response is incomplete: {why}"));
            }
        };
        if let Some(lines) = response::split_lines(&body, self.id) {
            for line in lines {
                connection.inbound.deliver(StreamId::Request(self.id, self.epoch), line);
            }
            return None;
        }
        // A response is accepted with any content type, other messages only as JSON.
        let scanned = scan(&body);
        if response::has_response(&body, &scanned, self.id) {
            connection.inbound.deliver_scanned(StreamId::Request(self.id, self.epoch), body, scanned);
            return None;
        }
        if response.has_content_type("application/json") && !body.is_empty() {
            connection.inbound.deliver(StreamId::Request(self.id, self.epoch), body.clone());
        } else {
            connection.inbound.record_noise(body.len());
        }
        if body.is_empty() {
            return unusable(format!("the server accepted the request (HTTP {status}) without a response"));
        }
        let beginning = body.slice(..body.len().min(4096));
        let error_body = response::parse_error_body(&beginning, None, &connection.endpoint.redactor);
        let problem =
            format!("the body (HTTP {status}) does not contain the response: {}", error_body.message);
        if scanned == ScannedFrame::Noise {
            return Some(StreamError::Lost(RequestError::InvalidResponse { status, problem }));
        }
        unusable(problem)
    }

    /// Handles an error status. Returns an error unless the body is the JSON-RPC response.
    async fn handle_error_status(
        &self,
        connection: &HttpConnection,
        mut response: Response,
    ) -> Option<StreamError> {
        let status = response.status.as_u16();
        let body = response.read_beginning(ERROR_BODY_TIMEOUT).await;
        let error_body = response::parse_error_body(&body, Some(self.id), &connection.endpoint.redactor);
        let meaning = response::classify_status(status, &error_body, self.context, self.text_trust);
        let redactor = &connection.endpoint.redactor;
        let error = response::error_response(status, &response.headers, error_body, redactor);
        match meaning {
            StatusMeaning::Response => {
                connection.inbound.deliver(StreamId::Request(self.id, self.epoch), body);
                None
            }
            StatusMeaning::SessionLost => {
                connection.sessions.mark_lost(self.epoch);
                Some(StreamError::NotExecuted(self.epoch))
            }
            StatusMeaning::Refused => Some(StreamError::Refused(error.into())),
            StatusMeaning::OutcomeUnknown => Some(StreamError::Lost(error.into())),
        }
    }
}

/// Sends `notifications/initialized`, and releases the other messages when it is accepted.
async fn send_initialized(
    connection: &HttpConnection,
    message: &OutboundMessage,
    message_headers: MessageHeaders,
) {
    let epoch = message.epoch;
    let on_accepted = || {
        // In this order: some servers send requests on the listening stream during the first call.
        connection.send_command(DriverCommand::Listen(epoch));
        connection.send_command(DriverCommand::EndHandshake(epoch));
    };
    let mut sending = pin!(send_notification(connection, message, message_headers, on_accepted));
    if tokio::time::timeout(INITIALIZED_WAIT, &mut sending).await.is_err() {
        tracing::debug!("{} does not respond to notifications/initialized", connection.endpoint.label);
        connection.send_command(DriverCommand::EndHandshake(epoch));
        sending.await;
    }
    connection.send_command(DriverCommand::EndHandshake(epoch));
}

/// Sends a message without a response. Calls `on_accepted` when the server accepts it, which may be long
/// before the HTTP response ends.
async fn send_notification(
    connection: &HttpConnection,
    message: &OutboundMessage,
    message_headers: MessageHeaders,
    on_accepted: impl FnOnce(),
) {
    let OutboundMessage { epoch, head, body: _ } = message;
    let sending = async {
        let mut response = connection.send(post_parts(message, &message_headers)).await?;
        let status = response.status.as_u16();
        if response.status.is_success() {
            on_accepted();
            // Read to its end, so that the connection can be reused.
            if !response.is_event_stream() {
                response.read_beginning(DRAIN_TIMEOUT).await;
            }
            return Ok(());
        }
        let body = response.read_beginning(ERROR_BODY_TIMEOUT).await;
        let error_body = response::parse_error_body(&body, None, &connection.endpoint.redactor);
        let meaning =
            response::classify_status(status, &error_body, message_headers.context, ErrorTextTrust::Trusted);
        if meaning == StatusMeaning::SessionLost {
            connection.sessions.mark_lost(*epoch);
        }
        let redactor = &connection.endpoint.redactor;
        let error = response::error_response(status, &response.headers, error_body, redactor);
        Err(ExchangeError::Refused(error.into()))
    };
    let timeout = if head.has_method(Method::Cancelled) { CANCEL_TIMEOUT } else { NOTIFICATION_TIMEOUT };
    match tokio::time::timeout(timeout, sending).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            let error = error.into_error();
            tracing::debug!(method = head.method_name(), "a message was not accepted: {error}");
        }
        Err(_) => tracing::debug!(method = head.method_name(), "a message was not accepted in time"),
    }
}
