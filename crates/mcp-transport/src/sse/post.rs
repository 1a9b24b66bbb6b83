//! One message on its way to the server. What the server says to it comes on the stream; the response to the POST only
//! says whether the message was taken.

use std::time::Duration;

use http::{HeaderValue, Method};
use tokio::sync::oneshot;

use super::SseConnection;
use super::send_queue::AbortReason;
use crate::error::disconnect::RequestError;
use crate::net::headers::PROTOCOL_VERSION;
use crate::net::{CANCELLED, error_body};
use crate::transport::{MessageHead, OutboundMessage, RequestId, StreamError, StreamId};

/// How long a notice of cancellation may take: nobody waits for it.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// How long any other message without an answer may take.
const NOTIFICATION_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the body of an error may take: what matters is the status.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a body that says nothing may take, and a response after the answer has come.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(250);

/// A message that is not on its way any more.
pub(super) struct PostResult {
    pub(super) head: MessageHead,
    /// The server does not know the session, and says so with these words.
    pub(super) session_lost: Option<String>,
}

/// Why a message was not taken.
enum PostError {
    /// The session is gone.
    SessionLost(RequestError),
    /// All else.
    StreamId(StreamError),
}

/// Posts a message. `left` says when the response to a request's POST is of no more use.
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
            // A moment more, so that the connection can be used again.
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

/// Posts a message, and says why it was not taken where it was not.
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
        // Whatever it says, the answer comes on the stream. Its end is waited for, so that the connection can be used
        // again.
        if !response.is_event_stream() {
            response.read_beginning(DRAIN_TIMEOUT).await;
        }
        return None;
    }
    let status = response.status().as_u16();
    let body = response.read_beginning(ERROR_BODY_TIMEOUT).await;
    let said = error_body::parse(&body, id, &wire.place.redactor);
    if said.names_request {
        // An error under the request's own id is the server's answer, whatever the status.
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
