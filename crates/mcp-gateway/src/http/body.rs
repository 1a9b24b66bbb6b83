//! What a response carries: bytes that are there already, or events that come.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use hyper::body::{Frame, SizeHint};

/// The events of a response, each with its line ends.
pub(super) type Events = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// The body of a response.
pub(super) enum Body {
    /// Known as a whole; `None` when it was given.
    Whole(Option<Bytes>),
    /// Comes piece by piece.
    Events(Events),
}

/// A response of the gateway.
pub(super) type Response = http::Response<Body>;

impl Body {
    /// Nothing.
    pub(super) fn empty() -> Body {
        Body::Whole(None)
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Body {
        Body::Whole(Some(bytes).filter(|it| !it.is_empty()))
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Body::Whole(bytes) => Poll::Ready(bytes.take().map(|it| Ok(Frame::data(it)))),
            Body::Events(events) => events.as_mut().poll_next(cx).map(|it| it.map(|it| Ok(Frame::data(it)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Body::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |it| it.len() as u64)),
            Body::Events(_) => SizeHint::default(),
        }
    }
}
