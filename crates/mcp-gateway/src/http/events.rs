//! Server-sent events: what they look like, and the response that carries them.

use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderName, HeaderValue, StatusCode, header};

use super::wire::{Body, Response};
use crate::session::event_log::EventId;

/// How long a stream may be silent before a comment shows that it is still there.
pub(super) const PULSE: Duration = Duration::from_secs(15);

/// A message as an event. It has no line break in it.
pub(super) fn event(message: &[u8]) -> Bytes {
    let mut res = Vec::with_capacity(message.len() + 32);
    res.extend_from_slice(b"event: message\ndata: ");
    res.extend_from_slice(message);
    res.extend_from_slice(b"\n\n");
    res.into()
}

/// A message as an event that can be told from others later.
pub(super) fn numbered(id: EventId, message: &[u8]) -> Bytes {
    let mut res = format!("id: {id}\n").into_bytes();
    res.extend_from_slice(&event(message));
    res.into()
}

/// Says nothing but where a stream begins.
pub(super) fn beginning(id: EventId) -> Bytes {
    format!("id: {id}\ndata: \n\n").into()
}

/// What shows that a stream is still there.
pub(super) fn pulse() -> Bytes {
    Bytes::from_static(b": \n\n")
}

/// A response that is a stream of events.
pub(super) fn response(events: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    Response::new(StatusCode::OK, Body::Events(Box::pin(events)))
        .of("text/event-stream")
        .with(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"))
        // Proxies that gather what they pass on would keep events back.
        .with(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"))
}
