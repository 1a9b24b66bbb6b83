//! A response: its head, and its body a chunk at a time.
//!
//! When the last of it has been read its connection is kept for the next request; when it is dropped before, its
//! connection is closed.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::response::Parts;
use http::{HeaderMap, StatusCode};
use hyper::body::{Body as _, Incoming};

use super::pool::{Answer, Lease, Pool, Single};
use super::tls;

pub(crate) struct Response {
    head: Parts,
    body: Body,
}

enum Body {
    Http {
        incoming: Incoming,
        /// The connection that brings it, where it brings nothing else, and where it goes.
        line: Option<(Box<Single>, Arc<Pool>)>,
    },
    #[cfg(test)]
    Told(Pin<Box<dyn futures_util::Stream<Item = Bytes> + Send>>),
}

/// A body broke off.
#[derive(Debug)]
pub(crate) struct Broken(hyper::Error);

impl Response {
    pub(super) fn new(answer: Answer, lease: Lease, pool: &Arc<Pool>) -> Response {
        let (head, incoming) = answer.into_parts();
        let line = match lease {
            Lease::Single(single) => Some((single, Arc::clone(pool))),
            Lease::Shared(_) => None,
        };
        Response { head, body: Body::Http { incoming, line } }
    }

    /// One with this body.
    #[cfg(test)]
    pub(crate) fn telling(body: impl futures_util::Stream<Item = Bytes> + Send + 'static) -> Response {
        let (head, ()) = http::Response::new(()).into_parts();
        Response { head, body: Body::Told(Box::pin(body)) }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.head.status
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// How many bytes the body still has, where that is known.
    #[cfg(feature = "http")]
    pub(crate) fn content_length(&self) -> Option<u64> {
        match &self.body {
            Body::Http { incoming, line: _ } => incoming.size_hint().exact(),
            #[cfg(test)]
            Body::Told(_) => None,
        }
    }

    /// The next piece of the body; `None` at its end. Cancel-safe.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, Broken> {
        poll_fn(|context| self.body.poll_chunk(context)).await
    }
}

impl Body {
    fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Broken>> {
        let (incoming, line) = match self {
            Body::Http { incoming, line } => (incoming, line),
            #[cfg(test)]
            Body::Told(stream) => return stream.as_mut().poll_next(context).map(Ok),
        };
        loop {
            if incoming.is_end_stream() {
                rest(line);
                return Poll::Ready(Ok(None));
            }
            let polled = match line {
                // Only the connection, which is polled here, brings more: nothing else has to wake for it.
                Some((single, _)) => {
                    let quiet = &mut Context::from_waker(Waker::noop());
                    match Pin::new(&mut *incoming).poll_frame(quiet) {
                        Poll::Pending => {
                            single.drive(context);
                            Pin::new(&mut *incoming).poll_frame(quiet)
                        }
                        ready => ready,
                    }
                }
                None => Pin::new(&mut *incoming).poll_frame(context),
            };
            match polled {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => {
                    rest(line);
                    return Poll::Ready(Ok(None));
                }
                Poll::Ready(Some(Err(error))) => {
                    *line = None;
                    return Poll::Ready(Err(Broken(error)));
                }
                Poll::Ready(Some(Ok(frame))) => {
                    // What follows a body says nothing to us.
                    let Ok(data) = frame.into_data() else { continue };
                    if incoming.is_end_stream() {
                        rest(line);
                    }
                    return Poll::Ready(Ok(Some(data)));
                }
            }
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
            Body::Http { incoming, line } if incoming.is_end_stream() => rest(line),
            Body::Http { .. } => {}
            #[cfg(test)]
            Body::Told(_) => {}
        }
    }
}

impl Broken {
    /// Why, in words: the innermost cause.
    pub(crate) fn words(&self) -> String {
        tls::cause(&self.0).unwrap_or_default()
    }
}
