//! POST of one message. The JSON-RPC response arrives on the stream; the HTTP response only shows whether the message
//! was accepted.

use http::HeaderValue;
use mcp_host_model::Method;
use tokio::sync::oneshot;

use super::connection::SseConnection;
use super::send_queue::AbortReason;
use crate::error::request_error::RequestError;
use crate::net::headers::PROTOCOL_VERSION;
use crate::net::timeouts::{CANCEL_TIMEOUT, DRAIN_TIMEOUT, ERROR_BODY_TIMEOUT, NOTIFICATION_TIMEOUT};
use crate::net::{RequestParts, error_body};
use crate::transport::{MessageHead, OutboundMessage, RequestId, StreamError, StreamId};

/// A finished POST.
pub(super) struct PostResult {
    pub(super) head: MessageHead,
    /// The text of the error, if it means that the server does not know the session (HTTP 404).
    pub(super) session_loss: Option<String>,
}

/// Why a message was not accepted.
struct PostError {
    error: StreamError,
    /// The text of the error, if it means that the server does not know the session (HTTP 404).
    session_loss: Option<String>,
}

/// Posts a message and reports a failed request to the engine. `abort` resolves when the HTTP response to a request is
/// no longer needed.
pub(super) async fn post_message(
    connection: &SseConnection,
    message: OutboundMessage,
    abort: Option<oneshot::Receiver<AbortReason>>,
) -> PostResult {
    let head = message.head.clone();
    let failure = match (head.id, abort) {
        (Some(id), Some(abort)) => send_request(connection, id, &message, abort).await,
        (Some(_), None) | (None, _) => send_notification(connection, &message).await,
    };
    let Some(PostError { error, session_loss }) = failure else {
        return PostResult { head, session_loss: None };
    };
    match (head.id, error) {
        (Some(id), error) => connection.inbound.fail_stream(id, error),
        (None, StreamError::Unreachable(error) | StreamError::Refused(error) | StreamError::Lost(error)) => {
            tracing::debug!(method = head.method_name(), "a message was not accepted: {error}");
        }
        (None, StreamError::NotExecuted(_) | StreamError::TooLarge(_)) => {}
    }
    PostResult { head, session_loss }
}

/// Posts a request. Returns an error if it was not accepted.
async fn send_request(
    connection: &SseConnection,
    id: RequestId,
    message: &OutboundMessage,
    abort: oneshot::Receiver<AbortReason>,
) -> Option<PostError> {
    let mut posting = std::pin::pin!(send_post(connection, message, Some(id)));
    tokio::select! {
        biased;
        failure = &mut posting => failure,
        reason = abort => match reason {
            // Wait briefly, so that the connection can be reused.
            Ok(AbortReason::Answered) => tokio::time::timeout(DRAIN_TIMEOUT, posting).await.unwrap_or(None),
            Ok(AbortReason::Abandoned) | Err(_) => None,
        },
    }
}

/// Posts a notification or a response. Returns an error if it was not accepted.
async fn send_notification(connection: &SseConnection, message: &OutboundMessage) -> Option<PostError> {
    let timeout =
        if message.head.has_method(Method::Cancelled) { CANCEL_TIMEOUT } else { NOTIFICATION_TIMEOUT };
    let posting = send_post(connection, message, None);
    tokio::time::timeout(timeout, posting).await.unwrap_or_else(|_| {
        tracing::debug!(method = message.head.method_name(), "a message was not accepted in time");
        None
    })
}

/// Sends a POST and reads its response. Returns an error if the message was not accepted.
async fn send_post(
    connection: &SseConnection,
    message: &OutboundMessage,
    id: Option<RequestId>,
) -> Option<PostError> {
    let mut headers = connection.headers.clone();
    if let Some(version) = message.head.version {
        headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(version.as_str()));
    }
    let request = RequestParts::new(&http::Method::POST, &headers, Some(&message.body));
    let mut response = match connection.client.send(&connection.message_target, request).await {
        Ok(response) => response,
        Err(failed) => return Some(PostError { error: failed.into(), session_loss: None }),
    };
    if response.status.is_success() {
        // The JSON-RPC response arrives on the stream. The body is read to its end, so that the connection
        // can be reused.
        if !response.is_event_stream() {
            response.read_beginning(DRAIN_TIMEOUT).await;
        }
        return None;
    }
    let status = response.status.as_u16();
    let body = response.read_beginning(ERROR_BODY_TIMEOUT).await;
    let error_body = error_body::parse_error_body(&body, id, &connection.endpoint.redactor);
    if error_body.has_request_id {
        // An error with the id of the request is its response, with any status.
        connection.inbound.deliver(StreamId::Shared, body);
        return None;
    }
    let redactor = &connection.endpoint.redactor;
    let error: RequestError =
        error_body::error_response(status, &response.headers, error_body, redactor).into();
    let session_loss = (status == 404).then(|| error.to_string());
    let error = if status >= 500 { StreamError::Lost(error) } else { StreamError::Refused(error) };
    Some(PostError { error, session_loss })
}
