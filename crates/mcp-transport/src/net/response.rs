//! An HTTP response: its head, and its body in chunks.
//!
//! When an HTTP/1.1 body was read to its end, its connection returns to the pool. Dropping the response
//! before that closes the connection, or resets the stream of an HTTP/2 connection.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode, Version};
use hyper::body::{Body as _, Incoming};
#[cfg(feature = "http")]
use tokio::time::{Instant, Sleep, sleep_until};

use super::content_coding::{BodyError, ContentCoding, DecodedBody};
use super::inline_connection::Http1Connection;
use super::pool::Pool;

/// Maximum number of bytes that are read of the body of an error response.
const MAX_ERROR_BODY_BYTES: usize = 64 << 10;

/// An HTTP response whose body is read in chunks.
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: ResponseBody,
}

/// The body of a response.
enum ResponseBody {
    /// Without a content coding.
    Plain(PlainBody),
    /// With a content coding.
    Decoded(Box<DecodedBody<PlainBody>>),
    /// With a content coding that cannot be decoded: the error of the next read.
    Unreadable(Option<BodyError>),
    /// Its beginning, which was read already and is all that is read of it; `None` once it was taken.
    Peeked(Option<Bytes>),
}

/// The body of a response as it is sent, with the connection that it is read from.
enum PlainBody {
    /// `None` once the body was read to its end or failed.
    Http1(Option<Http1Body>),
    Http2(Incoming),
    #[cfg(test)]
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

/// An HTTP/1.1 body with its connection.
struct Http1Body {
    body: Incoming,
    connection: Box<Http1Connection>,
    /// Keeps the connection afterwards; `None` if it must not be used again.
    pool: Option<Arc<Pool>>,
}

/// Whether the framing of a response lets its connection be used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    Reusable,
    /// The end of the body or of the connection is uncertain, so the connection is not used again.
    Ambiguous,
    /// It has a transfer coding that was not requested.
    UnknownCoding,
}

impl Response {
    /// A response on an HTTP/1.1 connection, which returns to the pool when the body was read. Fails if the body has a
    /// transfer coding that was not requested.
    pub(super) fn http1(
        response: http::Response<Incoming>,
        connection: Box<Http1Connection>,
        pool: &Arc<Pool>,
    ) -> Result<Response, &'static str> {
        let (head, body) = response.into_parts();
        let pool = match classify_framing(head.version, &head.headers) {
            Framing::Reusable => Some(Arc::clone(pool)),
            Framing::Ambiguous => None,
            Framing::UnknownCoding => {
                return Err("its response has a transfer coding that was not requested");
            }
        };
        let mut body = PlainBody::Http1(Some(Http1Body { body, connection, pool }));
        body.release_at_end();
        Ok(Response::with_body(head, body))
    }

    /// A response on an HTTP/2 connection.
    pub(super) fn http2(response: http::Response<Incoming>) -> Response {
        let (head, body) = response.into_parts();
        Response::with_body(head, PlainBody::Http2(body))
    }

    /// A response whose body is decoded if it has a content coding.
    fn with_body(head: http::response::Parts, body: PlainBody) -> Response {
        let body = match ContentCoding::from_headers(&head.headers) {
            Ok(None) => ResponseBody::Plain(body),
            Ok(Some(coding)) => ResponseBody::Decoded(Box::new(DecodedBody::new(body, coding))),
            Err(error) => ResponseBody::Unreadable(Some(error)),
        };
        Response { status: head.status, headers: head.headers, body }
    }

    /// A response with this body.
    #[cfg(test)]
    pub(crate) fn from_stream(body: impl Stream<Item = Bytes> + Send + 'static) -> Response {
        Response {
            status: StatusCode::OK,
            headers: HeaderMap::new(),
            body: ResponseBody::Plain(PlainBody::Stream(Box::pin(body))),
        }
    }

    /// Whether the server declares the body to be an event stream.
    pub(crate) fn is_event_stream(&self) -> bool {
        self.has_content_type("text/event-stream")
    }

    /// Whether the server declares this media type, with any parameters.
    pub(crate) fn has_content_type(&self, media_type: &str) -> bool {
        // A search through the few headers costs less than a lookup.
        let Some((_, value)) = self.headers.iter().find(|(name, _)| *name == CONTENT_TYPE) else {
            return false;
        };
        // The parser has removed blanks around the value.
        let Some((name, parameters)) = value.as_bytes().split_at_checked(media_type.len()) else {
            return false;
        };
        name.eq_ignore_ascii_case(media_type.as_bytes())
            && matches!(parameters.trim_ascii_start().first(), None | Some(b';'))
    }

    /// Closes the connection, or resets the stream of an HTTP/2 connection, unless the body was read to its end.
    #[cfg(feature = "http")]
    pub(crate) fn close(&mut self) {
        self.body = ResponseBody::Plain(PlainBody::Http1(None));
    }

    /// The number of bytes that remain of the body, if it is known.
    #[cfg(feature = "http")]
    pub(crate) fn content_length(&self) -> Option<u64> {
        let ResponseBody::Plain(body) = &self.body else { return None };
        match body {
            PlainBody::Http1(Some(http1)) => http1.body.size_hint().exact(),
            PlainBody::Http1(None) => Some(0),
            PlainBody::Http2(body) => body.size_hint().exact(),
            #[cfg(test)]
            PlainBody::Stream(_) => None,
        }
    }

    /// Returns the next chunk of the body; `None` at its end, and after an error. Cancel-safe.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, BodyError> {
        poll_fn(|cx| self.body.poll_chunk(cx)).await
    }

    /// Returns the next chunk of the body as [`Response::chunk`] does, or `None` if there is none before
    /// `deadline`, which is computed when the wait begins.
    #[cfg(feature = "http")]
    pub(crate) async fn chunk_before(
        &mut self,
        mut deadline: impl FnMut() -> Instant,
    ) -> Option<Result<Option<Bytes>, BodyError>> {
        // The timer is created only if it is needed: most of the time, a chunk is there.
        let mut timer: Option<Pin<Box<Sleep>>> = None;
        poll_fn(|cx| {
            if let Poll::Ready(chunk) = self.body.poll_chunk(cx) {
                return Poll::Ready(Some(chunk));
            }
            let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(deadline())));
            timer.as_mut().poll(cx).map(|()| None)
        })
        .await
    }

    /// Reads the beginning of the body as [`Response::read_beginning`] does, and keeps it for the next reader.
    pub(super) async fn peek_beginning(&mut self, timeout: Duration) -> Bytes {
        let beginning = self.read_beginning(timeout).await;
        self.body = ResponseBody::Peeked(Some(beginning.clone()).filter(|text| !text.is_empty()));
        beginning
    }

    /// Reads the beginning of the body, up to a limit of bytes and of time.
    pub(crate) async fn read_beginning(&mut self, timeout: Duration) -> Bytes {
        let mut res = BytesMut::new();
        let read = async {
            while let Ok(Some(chunk)) = self.chunk().await {
                let room = MAX_ERROR_BODY_BYTES - res.len();
                res.extend_from_slice(&chunk[..chunk.len().min(room)]);
                if res.len() == MAX_ERROR_BODY_BYTES {
                    break;
                }
            }
        };
        // After the timeout, the part that has arrived is used.
        let _ = tokio::time::timeout(timeout, read).await;
        res.freeze()
    }
}

impl ResponseBody {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>> {
        match self {
            ResponseBody::Plain(body) => Pin::new(body).poll_next(cx).map(Option::transpose),
            ResponseBody::Decoded(body) => body.poll_chunk(cx),
            ResponseBody::Peeked(beginning) => Poll::Ready(Ok(beginning.take())),
            ResponseBody::Unreadable(error) => Poll::Ready(error.take().map_or(Ok(None), Err)),
        }
    }
}

impl Stream for PlainBody {
    type Item = Result<Bytes, BodyError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        match this {
            PlainBody::Http1(http1) => {
                let Some(Http1Body { body, connection, pool: _ }) = http1 else {
                    return Poll::Ready(None);
                };
                match ready!(connection.poll_data(body, cx)) {
                    Some(Ok(data)) => {
                        this.release_at_end();
                        Poll::Ready(Some(Ok(data)))
                    }
                    None => {
                        this.release();
                        Poll::Ready(None)
                    }
                    Some(Err(error)) => {
                        *http1 = None;
                        Poll::Ready(Some(Err(error.into())))
                    }
                }
            }
            PlainBody::Http2(body) => loop {
                let Some(frame) = ready!(Pin::new(&mut *body).poll_frame(cx)) else {
                    return Poll::Ready(None);
                };
                // Trailers are ignored.
                if let Ok(data) = frame?.into_data() {
                    return Poll::Ready(Some(Ok(data)));
                }
            },
            #[cfg(test)]
            PlainBody::Stream(stream) => stream.as_mut().poll_next(cx).map(|chunk| chunk.map(Ok)),
        }
    }
}

impl PlainBody {
    /// Releases the connection if the body is known to have ended.
    fn release_at_end(&mut self) {
        if let PlainBody::Http1(Some(http1)) = self
            && http1.body.is_end_stream()
        {
            self.release();
        }
    }

    /// Returns the connection to the pool.
    fn release(&mut self) {
        if let PlainBody::Http1(http1) = self
            && let Some(Http1Body { connection, pool: Some(pool), body: _ }) = http1.take()
        {
            pool.put(connection);
        }
    }
}

/// Classifies the framing of a response. hyper accepts, as RFC 9112 allows, a body whose end an intermediary may see
/// elsewhere.
fn classify_framing(version: Version, headers: &HeaderMap) -> Framing {
    let mut codings = 0;
    let mut has_length = false;
    let mut is_chunked = true;
    // A loop over the few headers costs less than a lookup of each.
    for (name, value) in headers {
        has_length |= name == CONTENT_LENGTH;
        if name != TRANSFER_ENCODING {
            continue;
        }
        for coding in value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            codings += 1;
            if !coding.eq_ignore_ascii_case(b"chunked") {
                is_chunked = false;
                if !coding.eq_ignore_ascii_case(b"identity") {
                    return Framing::UnknownCoding;
                }
            }
        }
    }
    match codings {
        // A server of HTTP/1.0 may keep its connection open; opening another costs less than losing a request.
        0 if version == Version::HTTP_11 => Framing::Reusable,
        1 if is_chunked && !has_length => Framing::Reusable,
        _ => Framing::Ambiguous,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(version: Version, fields: &[(&'static str, &'static str)], expected: Framing) {
        let fields = fields.iter().map(|(name, value)| {
            (http::HeaderName::from_static(name), http::HeaderValue::from_static(value))
        });
        let mut headers = HeaderMap::new();
        fields.for_each(|(name, value)| _ = headers.append(name, value));
        assert_eq!(classify_framing(version, &headers), expected, "{headers:?}");
    }

    #[test]
    fn ambiguous_framing_ends_the_connection() {
        let chunked = ("transfer-encoding", "Chunked");
        check(Version::HTTP_11, &[("content-length", "12")], Framing::Reusable);
        check(Version::HTTP_11, &[chunked], Framing::Reusable);
        check(Version::HTTP_11, &[], Framing::Reusable);
        check(Version::HTTP_11, &[chunked, ("content-length", "4")], Framing::Ambiguous);
        check(Version::HTTP_11, &[chunked, chunked], Framing::Ambiguous);
        check(Version::HTTP_11, &[("transfer-encoding", "chunked, Chunked")], Framing::Ambiguous);
        check(Version::HTTP_11, &[("transfer-encoding", "identity")], Framing::Ambiguous);
        check(Version::HTTP_10, &[("content-length", "1")], Framing::Ambiguous);
    }

    #[test]
    fn unrequested_transfer_coding_is_refused() {
        check(Version::HTTP_11, &[("transfer-encoding", "gzip, chunked")], Framing::UnknownCoding);
        let two = [("transfer-encoding", "chunked"), ("transfer-encoding", "br")];
        check(Version::HTTP_11, &two, Framing::UnknownCoding);
        check(Version::HTTP_11, &[("transfer-encoding", "")], Framing::UnknownCoding);
    }
}
