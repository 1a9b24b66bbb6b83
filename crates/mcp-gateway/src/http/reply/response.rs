//! Responses: a status, headers, and a body that is complete or a stream of events.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderName, HeaderValue, StatusCode, header};
use hyper::body::{Body, Frame, SizeHint};

use crate::http::connection::active_requests::ActiveRequest;
use crate::http::connection::stall_detector::{BodyWatch, StallDetector};

/// A response of the gateway.
pub(crate) type Response = http::Response<ResponseBody>;

/// Server-sent events, each in its text form.
pub(crate) type EventStream = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// Maximum size of a part of a body that is watched by a stall detector, in bytes.
const MAX_WATCHED_PART_BYTES: usize = 16 * 1024;

/// The body of a response.
pub(crate) enum ResponseBody {
    Full(Bytes),
    Events(EventStream),
}

/// A body that hyper sends. Its request counts as running until hyper has all of it.
pub(crate) struct OutgoingBody {
    body: ResponseBody,
    watch: Option<BodyWatch>,
    _active: ActiveRequest,
}

impl OutgoingBody {
    pub(crate) fn new(body: ResponseBody, active: ActiveRequest) -> OutgoingBody {
        OutgoingBody { body, watch: None, _active: active }
    }

    /// Adds a stall detector: the client must grant window for each part in time.
    pub(crate) fn watch(mut self, stall_detector: Arc<StallDetector>) -> OutgoingBody {
        self.watch = Some(stall_detector.watch());
        self
    }
}

impl Body for OutgoingBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let OutgoingBody { body, watch, _active } = &mut *self;
        let part = match body {
            ResponseBody::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            ResponseBody::Full(bytes) => Poll::Ready(Some(match watch {
                Some(_) => bytes.split_to(bytes.len().min(MAX_WATCHED_PART_BYTES)),
                None => std::mem::take(bytes),
            })),
            ResponseBody::Events(events) => events.as_mut().poll_next(cx),
        };
        if let Some(watch) = watch {
            watch.record_poll(part.is_ready());
        }
        part.map(|part| part.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.body, ResponseBody::Full(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.body {
            ResponseBody::Full(bytes) => SizeHint::with_exact(bytes.len() as u64),
            ResponseBody::Events(_) => SizeHint::default(),
        }
    }
}

/// A response with a body of this content type.
pub(crate) fn with_body(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response {
    let mut response = empty(status);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    *response.body_mut() = ResponseBody::Full(body.into());
    response
}

/// A response with a JSON document.
pub(crate) fn json(status: StatusCode, body: Bytes) -> Response {
    with_body(status, "application/json", body)
}

/// A response with plain text.
pub(crate) fn text(status: StatusCode, body: impl Into<Bytes>) -> Response {
    with_body(status, "text/plain; charset=utf-8", body)
}

/// A response without a body.
pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(ResponseBody::Full(Bytes::new()));
    *response.status_mut() = status;
    response
}

/// The response with one more header.
pub(crate) fn with_header(mut response: Response, name: HeaderName, value: HeaderValue) -> Response {
    response.headers_mut().append(name, value);
    response
}
