//! A response: its status, its fields, and bytes that are there already or events that come.

use std::pin::Pin;

use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderName, HeaderValue, StatusCode};

/// The events of a response, each with its line ends.
pub(in crate::http) type Events = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// The body of a response.
pub(in crate::http) enum Body {
    /// Known as a whole.
    Whole(Bytes),
    /// Comes piece by piece.
    Events(Events),
}

/// A response of the gateway.
pub(in crate::http) struct Response {
    pub(in crate::http) status: StatusCode,
    /// What kind of body it is.
    pub(super) kind: Option<&'static str>,
    /// What is said beside it, but for what every response says.
    pub(super) fields: Vec<(HeaderName, HeaderValue)>,
    pub(super) body: Body,
}

impl Response {
    /// One with nothing beside it.
    pub(in crate::http) fn new(status: StatusCode, body: Body) -> Response {
        Response { status, kind: None, fields: Vec::new(), body }
    }

    /// The same with a body of this kind.
    pub(in crate::http) fn of(mut self, kind: &'static str) -> Response {
        self.kind = Some(kind);
        self
    }

    /// The same with one field more. One of this name may stand there already.
    pub(in crate::http) fn with(mut self, name: HeaderName, value: HeaderValue) -> Response {
        self.fields.push((name, value));
        self
    }
}

impl Body {
    /// Nothing.
    pub(in crate::http) fn empty() -> Body {
        Body::Whole(Bytes::new())
    }
}
