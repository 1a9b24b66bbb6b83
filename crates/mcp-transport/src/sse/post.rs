//! One message on its way to the server. What the server says to it comes on the stream; the response to the POST only
//! says whether the message was taken.

use std::time::Duration;

use http::{HeaderValue, Method};
use tokio::sync::oneshot;

use super::Wire;
use super::lanes::Leave;
use crate::error::disconnect::RequestError;
use crate::net::headers::PROTOCOL_VERSION;
use crate::net::{CANCELLED, error_body};
use crate::transport::{MessageHead, OutboundMessage, RequestId, StreamError, StreamId};

/// How long a notice of cancellation may take: nobody waits for it.
const NOTICE: Duration = Duration::from_secs(5);

/// How long any other message without an answer may take.
const TELLING: Duration = Duration::from_secs(30);

/// How long the body of an error may take: what matters is the status.
const EXPLAINING: Duration = Duration::from_secs(5);

/// How long a body that says nothing may take, and a response after the answer has come.
const RINGING_OUT: Duration = Duration::from_millis(250);

/// A message that is not on its way any more.
pub(super) struct Posted {
    pub(super) head: MessageHead,
    /// The server does not know the session, and says so with these words.
    pub(super) gone: Option<String>,
}

/// Why a message was not taken.
enum Refusal {
    /// The session is gone.
    Gone(RequestError),
    /// All else.
    StreamId(StreamError),
}

/// Posts a message. `left` says when the response to a request's POST is of no more use.
pub(super) async fn carry(
    wire: &Wire,
    message: OutboundMessage,
    left: Option<oneshot::Receiver<Leave>>,
) -> Posted {
    let head = message.head.clone();
    let refusal = match (head.id, left) {
        (Some(id), Some(left)) => request(wire, id, &message, left).await,
        (Some(_), None) | (None, _) => tell(wire, &message).await,
    };
    let gone = match (refusal, head.id) {
        (None, _) => None,
        (Some(Refusal::StreamId(why)), Some(id)) => {
            wire.inbox.stream_failed(id, why);
            None
        }
        (Some(Refusal::Gone(fault)), id) => {
            let words = fault.to_string();
            if let Some(id) = id {
                wire.inbox.stream_failed(id, StreamError::Refused(fault));
            }
            Some(words)
        }
        (Some(Refusal::StreamId(StreamError::Refused(fault) | StreamError::Lost(fault))), None) => {
            tracing::debug!(method = &*head.method, "a message was not taken: {fault}");
            None
        }
        (Some(Refusal::StreamId(StreamError::NotExecuted(_) | StreamError::TooLarge(_))), None) => None,
    };
    Posted { head, gone }
}

async fn request(
    wire: &Wire,
    id: RequestId,
    message: &OutboundMessage,
    left: oneshot::Receiver<Leave>,
) -> Option<Refusal> {
    let mut posting = std::pin::pin!(post(wire, message, Some(id)));
    tokio::select! {
        biased;
        refusal = &mut posting => refusal,
        leave = left => match leave {
            // A moment more, so that the connection can be used again.
            Ok(Leave::Answered) => tokio::time::timeout(RINGING_OUT, posting).await.unwrap_or(None),
            Ok(Leave::Abandoned) | Err(_) => None,
        },
    }
}

async fn tell(wire: &Wire, message: &OutboundMessage) -> Option<Refusal> {
    let limit = if message.head.method == CANCELLED { NOTICE } else { TELLING };
    let posting = post(wire, message, None);
    tokio::time::timeout(limit, posting).await.unwrap_or_else(|_| {
        tracing::debug!(method = &*message.head.method, "a message was not taken in time");
        None
    })
}

/// Posts a message, and says why it was not taken where it was not.
async fn post(wire: &Wire, message: &OutboundMessage, id: Option<RequestId>) -> Option<Refusal> {
    let mut headers = wire.plain.clone();
    if let Some(version) = message.head.version {
        headers.insert(PROTOCOL_VERSION, HeaderValue::from_static(version.as_str()));
    }
    let mut response =
        match wire.client.send(&wire.endpoint, Method::POST, &headers, Some(&message.body)).await {
            Ok(response) => response,
            Err(failed) => return Some(Refusal::StreamId(failed.into())),
        };
    if response.status().is_success() {
        // Whatever it says, the answer comes on the stream. Its end is waited for, so that the connection can be used
        // again.
        if !response.is_event_stream() {
            response.read_beginning(RINGING_OUT).await;
        }
        return None;
    }
    let status = response.status().as_u16();
    let body = response.read_beginning(EXPLAINING).await;
    let said = error_body::read(&body, id, &wire.place.redactor);
    if said.ours {
        // An error under the request's own id is the server's answer, whatever the status.
        wire.inbox.deliver(StreamId::Shared, body);
        return None;
    }
    let message = error_body::words(status, response.headers(), &said, &wire.place.redactor);
    let fault = RequestError { status: Some(status), message, error: said.error };
    Some(match status {
        404 => Refusal::Gone(fault),
        500.. => Refusal::StreamId(StreamError::Lost(fault)),
        _ => Refusal::StreamId(StreamError::Refused(fault)),
    })
}
