//! POST of one message. The JSON-RPC response arrives on the stream; the HTTP response only shows whether the message was
//! accepted.

use std::time::Duration;

use http::{HeaderValue, Method};
use tokio::sync::oneshot;

use super::SseConnection;
use super::send_queue::AbortReason;
use crate::error::disconnect::RequestError;
use crate::net::headers::PROTOCOL_VERSION;
use crate::net::{CANCELLED, error_body};
use crate::transport::{MessageHead, OutboundMessage, RequestId, StreamError, StreamId};

/// Timeout of `notifications/cancelled`.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout of any other message without a response.
const NOTIFICATION_TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout of the body of an error response. The status alone suffices.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout of a body that is ignored, and of an HTTP response after the JSON-RPC response.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(250);

/// A finished POST.
pub(super) struct PostResult {
    pub(super) head: MessageHead,
    /// The server's message that it does not know the session.
    pub(super) session_lost: Option<String>,
}

/// Why a message was not accepted.
enum PostError {
    /// The server does not know the session.
    SessionLost(RequestError),
    /// Any other error.
    StreamId(StreamError),
}

/// Posts a message. `left` resolves when the HTTP response to a request is no longer needed.
pub(super) async fn post_message(
    wire: &SseConnection,
    message: OutboundMessage,
    left: Option<oneshot::Receiver<AbortReason>>,
) -> PostResult {
    let head = message.head.clone();
    let refusal = match (head.id, left) {
        (Some(id), Some(left)) => send_request(wire, id, &message, left).await,
        (Some(_), None) | (None, _) => send_notification(wire, &message).await,
    };
    let gone = match (refusal, head.id) {
        (None, _) => None,
        (Some(PostError::StreamId(why)), Some(id)) => {
            wire.inbox.stream_failed(id, why);
            None
        }
        (Some(PostError::SessionLost(fault)), id) => {
            let words = fault.to_string();
            if let Some(id) = id {
                wire.inbox.stream_failed(id, StreamError::Refused(fault));
            }
            Some(words)
        }
        (Some(PostError::StreamId(StreamError::Refused(fault) | StreamError::Lost(fault))), None) => {
            tracing::debug!(method = &*head.method, "a message was not taken: {fault}");
            None
        }
        (Some(PostError::StreamId(StreamError::NotExecuted(_) | StreamError::TooLarge(_))), None) => None,
    };
    PostResult { head, session_lost: gone }
}

async fn send_request(
    wire: &SseConnection,
    id: RequestId,
    message: &OutboundMessage,
    left: oneshot::Receiver<AbortReason>,
) -> Option<PostError> {
    let mut posting = std::pin::pin!(post(wire, message, Some(id)));
    tokio::select! {
        biased;
        refusal = &mut posting => refusal,
        leave = left => match leave {
            // Wait briefly, so that the connection can be reused.
            Ok(AbortReason::Answered) => tokio::time::timeout(DRAIN_TIMEOUT, posting).await.unwrap_or(None),
            Ok(AbortReason::Abandoned) | Err(_) => None,
        },
    }
}

async fn send_notification(wire: &SseConnection, message: &OutboundMessage) -> Option<PostError> {
    let limit = if message.head.method == CANCELLED { CANCEL_TIMEOUT } else { NOTIFICATION_TIMEOUT };
    let posting = post(wire, message, None);
    tokio::time::timeout(limit, posting).await.unwrap_or_else(|_| {
        tracing::debug!(method = &*message.head.method, "a message was not taken in time");
        None
    })
}

/// Posts a message. Returns an error if it was not accepted.
async fn post(wire: &SseConnection, message: &OutboundMessage, id: Option<RequestId>) -> Option<PostError> {
    let mut headers = wire.headers.clone();
    if let Some(version) = message.head.version {
        headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(version.as_str()));
    }
    let mut response =
        match wire.client.send(&wire.endpoint, Method::POST, &headers, Some(&message.body)).await {
            Ok(response) => response,
            Err(failed) => return Some(PostError::StreamId(failed.into())),
        };
    if response.status().is_success() {
        // The JSON-RPC response arrives on the stream. The body is read to its end, so that the connection can be reused.
        if !response.is_event_stream() {
            response.read_beginning(DRAIN_TIMEOUT).await;
        }
        return None;
    }
    let status = response.status().as_u16();
    let body = response.read_beginning(ERROR_BODY_TIMEOUT).await;
    let said = error_body::parse(&body, id, &wire.place.redactor);
    if said.names_request {
        // An error with the id of the request is its response, with any status.
        wire.inbox.deliver(StreamId::Shared, body);
        return None;
    }
    let message = error_body::describe_response(status, response.headers(), &said, &wire.place.redactor);
    let fault = RequestError { status: Some(status), message, error: said.error };
    Some(match status {
        404 => PostError::SessionLost(fault),
        500.. => PostError::StreamId(StreamError::Lost(fault)),
        _ => PostError::StreamId(StreamError::Refused(fault)),
    })
}
