//! Serves one connection with hyper: HTTP/1.1, or HTTP/2 where TLS negotiated it.
//!
//! Every request of a connection runs in the connection's task, so a client that disconnects drops its
//! requests at once.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::Request;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};

use crate::http::app_state::AppState;
use crate::http::authorization::refusals::RefusalReason;
use crate::http::connection::client_connection::ClientConnection;
use crate::http::connection::framing::scan_requests;
use crate::http::connection::stall_detector::StallDetector;
use crate::http::endpoints::router;
use crate::http::reply::errors::ambiguous_framing;
use crate::http::reply::response::{OutgoingBody, Response};

/// Maximum size of a request's head in bytes. Also bounds the buffers for reading and writing.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Maximum number of concurrent HTTP/2 requests on a connection.
const MAX_STREAMS: u32 = 128;
/// The flow-control window of an HTTP/2 stream in bytes: what a client may send before the gateway reads it.
const STREAM_WINDOW: u32 = 64 * 1024;
/// The flow-control window of an HTTP/2 connection in bytes, for all its streams together.
const CONNECTION_WINDOW: u32 = 256 * 1024;

/// Serves HTTP/1.1 until the client or the server ends the connection.
pub(crate) async fn serve_http1(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    app: Arc<AppState>,
    connection: Arc<ClientConnection>,
    shutdown: oneshot::Receiver<()>,
) -> hyper::Result<()> {
    let service = service_fn(|request| {
        let (app, connection, active) =
            (Arc::clone(&app), Arc::clone(&connection), connection.requests.start());
        async move {
            let response = respond(&app, &connection, request).await;
            Ok::<_, Infallible>(response.map(|body| OutgoingBody::new(body, active)))
        }
    });
    // `TimedStream` limits the time for a head, because hyper would register a timer for each request.
    let mut builder = http1::Builder::new();
    builder.max_buf_size(MAX_HEAD_BYTES).max_header_size(MAX_HEAD_BYTES).header_read_timeout(None);
    let stream = pin!(scan_requests(stream, connection.requests.clone()));
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        biased;
        served = serving.as_mut() => return served,
        _ = shutdown => serving.as_mut().graceful_shutdown(),
    }
    serving.await
}

/// Serves HTTP/2 until the client or the server ends the connection.
pub(crate) async fn serve_http2(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    app: Arc<AppState>,
    connection: Arc<ClientConnection>,
    mut shutdown: oneshot::Receiver<()>,
) -> hyper::Result<()> {
    let stall_detector = Arc::new(StallDetector::new(app.bounds().send_timeout));
    let service = service_fn(|request| {
        let (app, connection, active) =
            (Arc::clone(&app), Arc::clone(&connection), connection.requests.start());
        let stall_detector = Arc::clone(&stall_detector);
        async move {
            let response = respond(&app, &connection, request).await;
            Ok::<_, Infallible>(response.map(|body| OutgoingBody::new(body, active).watch(stall_detector)))
        }
    });
    let (sender, mut started) = mpsc::unbounded_channel();
    let mut builder = http2::Builder::new(StreamExecutor(sender));
    builder
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEAD_BYTES as u32)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut streams = FuturesUnordered::new();
    let mut stalled = pin!(stall_detector.wait_for_stall());
    let mut is_closing = false;
    loop {
        tokio::select! {
            biased;
            served = serving.as_mut() => return served,
            Some(stream) = started.recv() => streams.push(stream),
            Some(()) = streams.next() => {}
            () = stalled.as_mut() => {
                tracing::debug!("closing an HTTP/2 connection: the client does not read its responses");
                return Ok(());
            }
            _ = &mut shutdown, if !is_closing => {
                is_closing = true;
                serving.as_mut().graceful_shutdown();
            }
        }
    }
}

/// Runs the streams of an HTTP/2 connection in the connection's task.
#[derive(Debug, Clone)]
struct StreamExecutor(mpsc::UnboundedSender<Pin<Box<dyn Future<Output = ()> + Send>>>);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for StreamExecutor {
    fn execute(&self, stream: F) {
        // This fails only if the connection has ended.
        let _ = self.0.send(Box::pin(stream));
    }
}

/// Handles one request, logs a refused token, and counts the response.
async fn respond(app: &Arc<AppState>, connection: &ClientConnection, request: Request<Incoming>) -> Response {
    let (head, body) = request.into_parts();
    let response = match connection.requests.is_framing_ambiguous() {
        true => ambiguous_framing(),
        false => router::route(app, connection, &head, body).await,
    };
    if let Some(refused) = response.extensions().get::<RefusalReason>() {
        app.refusal_log.log(app.client_address(connection.peer, &head.headers), refused);
    }
    app.gateway.counters.count_response(response.status().as_u16());
    response
}
