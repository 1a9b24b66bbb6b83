//! A response: its head, and its body a chunk at a time.
//!
//! When the last of it has been read its connection is kept for the next request; when it is dropped before, its
//! connection is closed.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use hyper::body::{Body as _, Incoming};

use super::head::Head;
use super::pool::{Pool, Single};
use super::{tls, wire};

pub(crate) struct Response {
    head: Head,
    body: Body,
}

enum Body {
    /// What a connection brings that brings nothing else, and where that goes. `None` behind the end.
    Single(Option<(Box<Single>, Arc<Pool>)>),
    /// What comes on a connection with others.
    Shared(Incoming),
    #[cfg(test)]
    Told(Pin<Box<dyn futures_util::Stream<Item = Bytes> + Send>>),
}

/// A body broke off.
#[derive(Debug)]
pub(crate) enum Broken {
    Single(wire::Broken),
    Shared(hyper::Error),
}

impl Response {
    pub(super) fn single(head: Head, single: Box<Single>, pool: &Arc<Pool>) -> Response {
        Response { head, body: Body::Single(Some((single, Arc::clone(pool)))) }
    }

    pub(super) fn shared(answer: http::Response<Incoming>) -> Response {
        let (head, incoming) = answer.into_parts();
        Response { head: Head::made(head.status, head.headers), body: Body::Shared(incoming) }
    }

    /// One with this body.
    #[cfg(test)]
    pub(crate) fn telling(body: impl futures_util::Stream<Item = Bytes> + Send + 'static) -> Response {
        let head = Head::made(StatusCode::OK, HeaderMap::new());
        Response { head, body: Body::Told(Box::pin(body)) }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.head.status
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.head.headers()
    }

    /// What the server calls the body, with parameters; empty where it has no name for it.
    pub(crate) fn kind(&self) -> &[u8] {
        &self.head.body.kind
    }

    /// How many bytes the body still has, where that is known.
    #[cfg(feature = "http")]
    pub(crate) fn content_length(&self) -> Option<u64> {
        match &self.body {
            Body::Single(Some((single, _))) => single.left(),
            Body::Single(None) => Some(0),
            Body::Shared(incoming) => incoming.size_hint().exact(),
            #[cfg(test)]
            Body::Told(_) => None,
        }
    }

    /// The next piece of the body; `None` at its end, and behind an error. Cancel-safe.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Broken> {
        self.piece(1).await
    }

    /// The next piece of the body; of one whose length is known so many bytes at least, where it has as many and they are no
    /// more than [`MOST_BELIEVED`](super::wire::MOST_BELIEVED). `None` at its end, and behind an error. Cancel-safe.
    pub(crate) async fn piece(&mut self, wanted: usize) -> Result<Option<Bytes>, Broken> {
        poll_fn(|context| self.body.poll_piece(context, wanted)).await
    }
}

impl Body {
    fn poll_piece(
        &mut self,
        context: &mut Context<'_>,
        wanted: usize,
    ) -> Poll<Result<Option<Bytes>, Broken>> {
        match self {
            Body::Single(line) => {
                let Some((single, _)) = line else { return Poll::Ready(Ok(None)) };
                let polled = single.poll_piece(context, wanted);
                match &polled {
                    Poll::Ready(Ok(_)) if single.is_read() => rest(line),
                    Poll::Ready(Err(_)) => *line = None,
                    Poll::Ready(Ok(_)) | Poll::Pending => {}
                }
                polled.map_err(Broken::Single)
            }
            Body::Shared(incoming) => loop {
                let Some(frame) = ready!(Pin::new(&mut *incoming).poll_frame(context)) else {
                    return Poll::Ready(Ok(None));
                };
                // What follows a body says nothing to us.
                if let Ok(data) = frame.map_err(Broken::Shared)?.into_data() {
                    return Poll::Ready(Ok(Some(data)));
                }
            },
            #[cfg(test)]
            Body::Told(stream) => stream.as_mut().poll_next(context).map(Ok),
        }
    }
}

/// The body is read: its connection can carry another request.
fn rest(line: &mut Option<(Box<Single>, Arc<Pool>)>) {
    if let Some((single, pool)) = line.take() {
        pool.keep(single);
    }
}

impl Drop for Response {
    fn drop(&mut self) {
        match &mut self.body {
            Body::Single(line) if line.as_ref().is_some_and(|(single, _)| single.is_read()) => rest(line),
            Body::Single(_) | Body::Shared(_) => {}
            #[cfg(test)]
            Body::Told(_) => {}
        }
    }
}

impl Broken {
    /// Why, in words.
    pub(crate) fn words(&self) -> String {
        match self {
            Broken::Single(broken) => broken.words(),
            Broken::Shared(error) => tls::cause(error).unwrap_or_default(),
        }
    }
}
