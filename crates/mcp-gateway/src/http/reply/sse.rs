//! Server-sent events: their text form, and the response that carries them.

use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderName, HeaderValue, StatusCode, header};

use crate::http::reply::response::{Response, ResponseBody, empty};
use crate::session::event_log::EventId;

static X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A message as an event. The message has no line break.
pub(crate) fn event(message: &[u8]) -> Bytes {
    let mut text = Vec::with_capacity(message.len() + 32);
    text.extend_from_slice(b"event: message\ndata: ");
    text.extend_from_slice(message);
    text.extend_from_slice(b"\n\n");
    text.into()
}

/// A message as an event, in parts. Its buffer is not copied, so it remains counted until the client has read it.
pub(crate) fn event_parts(message: Bytes) -> [Bytes; 3] {
    [Bytes::from_static(b"event: message\ndata: "), message, Bytes::from_static(b"\n\n")]
}

/// A message as an event with an id, from which a client can resume.
pub(crate) fn event_with_id(id: EventId, message: &[u8]) -> Bytes {
    let mut text = format!("id: {id}\n").into_bytes();
    text.extend_from_slice(&event(message));
    text.into()
}

/// An empty event with the id at which a stream begins.
pub(crate) fn start_event(id: EventId) -> Bytes {
    format!("id: {id}\ndata: \n\n").into()
}

/// A comment that shows that the stream is open.
pub(crate) fn keep_alive() -> Bytes {
    Bytes::from_static(b": \n\n")
}

/// A response whose body is a stream of events.
pub(crate) fn response(events: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let mut response = empty(StatusCode::OK);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    // Buffering proxies would delay events.
    headers.insert(X_ACCEL_BUFFERING.clone(), HeaderValue::from_static("no"));
    *response.body_mut() = ResponseBody::Events(Box::pin(events));
    response
}
