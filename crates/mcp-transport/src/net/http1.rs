//! HTTP/1.1 with hyper: connection settings, upgrades, request bodies and errors.

use std::convert::Infallible;
use std::error::Error as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::task::JoinSet;

use super::stream::NetStream;
use super::tls;
use crate::error::net_failure::NetFailure;

/// Maximum size of a response head, and of a read or write buffer.
const MAX_BUFFER_BYTES: usize = 64 << 10;

/// Maximum number of bytes of a request's body that hyper copies to its write buffer at once.
const MAX_PIECE_BYTES: usize = 32 << 10;

/// A request with its whole body.
pub(crate) type Request = http::Request<RequestBody>;

/// The body of a request. It is passed on in pieces, because a write buffer keeps its largest size.
#[derive(Debug, Default)]
pub(crate) struct RequestBody(Bytes);

impl From<Bytes> for RequestBody {
    fn from(bytes: Bytes) -> RequestBody {
        RequestBody(bytes)
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let length = self.0.len().min(MAX_PIECE_BYTES);
        Poll::Ready((length > 0).then(|| Ok(Frame::data(self.0.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}

/// Creates a hyper builder with the settings of every connection.
pub(super) fn connection_builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    // Not vectored: hyper would fill a table of 64 slices for each write.
    builder.max_buf_size(MAX_BUFFER_BYTES).writev(false);
    builder
}

/// Sends a `CONNECT` or a request for an upgrade, and waits for the head of its response. The task of the
/// connection runs in `tasks`. Header names are sent in title case: some proxies and WebSocket servers
/// compare them by case.
pub(crate) async fn send_upgrade(
    stream: NetStream,
    request: Request,
    tasks: &mut JoinSet<()>,
) -> hyper::Result<http::Response<Incoming>> {
    let (mut sender, connection) =
        connection_builder().title_case_headers(true).handshake(TokioIo::new(stream)).await?;
    // The error is ignored here, because the affected request or body returns it too.
    tasks.spawn(async { drop(connection.with_upgrades().await) });
    sender.send_request(request).await
}

/// Takes the stream back after a successful `CONNECT` or an upgrade, with the bytes that were read beyond the response.
pub(crate) async fn take_upgraded(response: http::Response<Incoming>) -> hyper::Result<(NetStream, Bytes)> {
    let upgraded = hyper::upgrade::on(response).await?;
    let parts =
        upgraded.downcast::<TokioIo<NetStream>>().expect("the connection was started on such a stream");
    Ok((parts.io.into_inner(), parts.read_buf))
}

/// Classifies an error of a request or response.
pub(crate) fn net_failure(error: &hyper::Error) -> NetFailure {
    if error.is_parse_too_large() {
        return "the head of its response is too large".into();
    }
    if error.is_parse() {
        return NetFailure::Other(format!("its response is not valid HTTP ({error})"));
    }
    if is_early_close(error) {
        return "the connection was closed before the end of the response".into();
    }
    tls::root_cause(error)
}

/// Whether the server closed the connection before the end of its response.
pub(crate) fn is_early_close(error: &hyper::Error) -> bool {
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    error.is_incomplete_message() || source.is_some_and(|it| it.kind() == io::ErrorKind::UnexpectedEof)
}
