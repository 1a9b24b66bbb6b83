//! An HTTP/1.1 client connection that is driven by the task that waits for its response.
//!
//! hyper parses and frames the messages. No task is spawned for a connection: the task that awaits a response also
//! reads and writes the socket. Dropping a request therefore closes the socket at once, and a call needs no task
//! switch to reach its socket.

use std::error::Error as _;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWrite;
use tokio::task::coop::unconstrained;

use super::connect::NetStream;
use super::tls;

/// Maximum size of a response head, and of a read or write buffer.
const MAX_BUFFER_BYTES: usize = 64 << 10;

/// A request with its whole body.
pub(crate) type Request = http::Request<Full<Bytes>>;

/// An HTTP/1.1 connection. It has at most one request at a time.
pub(crate) struct Http1Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    /// `None` after it was dropped because the connection had ended, which resolves a pending response or body.
    driver: Option<http1::Connection<TokioIo<NetStream>, Full<Bytes>>>,
    /// Whether the driver has completed. It must not be polled again.
    is_finished: bool,
}

impl Http1Connection {
    /// Prepares a connection over a stream. Sends nothing.
    #[cfg(any(feature = "http", feature = "sse"))]
    pub(crate) async fn new(stream: NetStream) -> hyper::Result<Http1Connection> {
        Http1Connection::build(&http1::Builder::new(), stream).await
    }

    /// Prepares a connection for a `CONNECT` or an upgrade. Header names are sent in title case: some proxies and
    /// WebSocket servers compare them by case.
    pub(crate) async fn for_upgrade(stream: NetStream) -> hyper::Result<Http1Connection> {
        Http1Connection::build(http1::Builder::new().title_case_headers(true), stream).await
    }

    async fn build(builder: &http1::Builder, stream: NetStream) -> hyper::Result<Http1Connection> {
        let (sender, driver) =
            builder.clone().max_buf_size(MAX_BUFFER_BYTES).handshake(TokioIo::new(stream)).await?;
        Ok(Http1Connection { sender, driver: Some(driver), is_finished: false })
    }

    /// Sends a request and waits for the head of its response. The error contains the request if nothing of it was
    /// written. Not cancel-safe: after dropping this future, the connection must not be used again.
    pub(crate) fn send(
        &mut self,
        request: Request,
    ) -> impl Future<Output = Result<http::Response<Incoming>, TrySendError<Request>>> {
        // Not an async function: the request, which is large, is not a part of the future.
        let response = self.sender.try_send_request(request);
        async move {
            let mut response = pin!(response);
            let mut is_first = true;
            poll_fn(|cx| {
                if std::mem::take(&mut is_first) {
                    // The first poll detects that the server closed the idle connection, before anything is
                    // written. It must not be delayed by Tokio's coop budget: later, hyper could no longer tell
                    // that nothing was written.
                    let driven = poll_fn(|cx| {
                        self.drive(cx);
                        Poll::Ready(())
                    });
                    let _ = pin!(unconstrained(driven)).poll(cx);
                } else {
                    self.drive(cx);
                }
                let polled = poll_received(response.as_mut());
                // Dropping the driver resolves the response.
                if polled.is_pending() && self.is_finished && self.driver.take().is_some() {
                    return poll_received(response.as_mut());
                }
                polled
            })
            .await
        }
    }

    /// Polls for the next data frame of a response's body. Returns `None` at its end.
    pub(crate) fn poll_data(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Bytes>>> {
        let mut is_driven = false;
        loop {
            match poll_received(poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx))) {
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(Some(Ok(frame))) => {
                    // Trailers are ignored.
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Poll::Pending if !is_driven => {
                    self.drive(cx);
                    is_driven = true;
                }
                // Dropping the driver ends the body.
                Poll::Pending if self.is_finished && self.driver.take().is_some() => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Returns the next data frame of a response's body; `None` at its end. Cancel-safe.
    #[cfg(feature = "websocket")]
    pub(crate) async fn data(&mut self, body: &mut Incoming) -> Option<hyper::Result<Bytes>> {
        poll_fn(|cx| self.poll_data(body, cx)).await
    }

    /// Whether another request may be sent. To be called after the last response was read to its end.
    #[cfg(any(feature = "http", feature = "sse"))]
    pub(crate) fn is_reusable(&mut self) -> bool {
        if !self.sender.is_ready() {
            // The last chunk of a chunked body may still be unread. Part of the request may still be unsent,
            // because a server may respond early.
            self.drive(&mut Context::from_waker(Waker::noop()));
        }
        !self.is_finished && self.sender.is_ready()
    }

    /// Closes the stream in an orderly way, as far as that is possible without waiting.
    #[cfg(any(feature = "http", feature = "sse"))]
    pub(crate) fn close(self) {
        if let Some((mut stream, _)) = self.into_parts() {
            let _ = Pin::new(&mut stream).poll_shutdown(&mut Context::from_waker(Waker::noop()));
        }
    }

    /// Reads and writes as much as the stream allows.
    fn drive(&mut self, cx: &mut Context<'_>) {
        if !self.is_finished
            && let Some(driver) = &mut self.driver
        {
            // The error is ignored here: the request or body that it concerns returns it too.
            self.is_finished = driver.poll_without_shutdown(cx).is_ready();
        }
    }

    /// Takes the stream back after an upgrade or a successful `CONNECT`, with the bytes that were read beyond the
    /// response. Returns `None` when the connection has failed.
    pub(crate) fn into_parts(self) -> Option<(NetStream, Bytes)> {
        let parts = self.driver?.into_parts();
        Some((parts.io.into_inner(), parts.read_buf))
    }
}

/// Polls a future that only the driver can make ready. No waker is registered: the same task polls the driver and
/// then this future again. The task's own waker would schedule the task once more for each message.
fn poll_received<F: Future + Unpin>(future: F) -> Poll<F::Output> {
    // Without Tokio's coop budget: a future that yields because of the budget could not wake the task.
    pin!(unconstrained(future)).poll(&mut Context::from_waker(Waker::noop()))
}

/// Describes an error of a request or response for the user. The text continues a sentence about the server.
pub(crate) fn describe(error: &hyper::Error) -> String {
    if error.is_parse_too_large() {
        return "the head of its response is too large".to_owned();
    }
    if error.is_parse() {
        return format!("its response is not valid HTTP ({error})");
    }
    let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    if error.is_incomplete_message() || source.is_some_and(|it| it.kind() == io::ErrorKind::UnexpectedEof) {
        return "the connection was closed before the end of the response".to_owned();
    }
    tls::root_cause(error).unwrap_or_default()
}
