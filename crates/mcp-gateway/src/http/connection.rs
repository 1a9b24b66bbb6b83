//! Serves one connection with hyper: HTTP/1.1, or HTTP/2 where TLS negotiated it.
//!
//! Every request of a connection runs in the connection's task, so a client that disconnects drops its requests at once.

use std::convert::Infallible;
use std::future::Future;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

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

use super::connection_table::ConnectionPermit;
use super::flow_control::FlowControl;
use super::refusals::RefusalReason;
use super::response::{Response, SentBody};
use super::router;
use super::server::AppState;
use crate::gateway::GatewayInner;
use crate::session::dialogs::ConnectionId;

/// Maximum size of a request's head in bytes. Also bounds the buffers for reading and writing.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Maximum number of concurrent HTTP/2 requests on a connection.
const MAX_STREAMS: u32 = 128;
/// The flow-control window of an HTTP/2 stream in bytes: what a client may send before the gateway reads it.
const STREAM_WINDOW: u32 = 64 * 1024;
/// The flow-control window of an HTTP/2 connection in bytes, for all its streams together.
const CONNECTION_WINDOW: u32 = 256 * 1024;

/// The number of requests of a connection whose response was not yet passed to hyper completely, and whether its client
/// keeps a write waiting.
#[derive(Debug, Clone, Default)]
pub(super) struct ActiveRequests(Arc<Activity>);

#[derive(Debug, Default)]
struct Activity {
    requests: AtomicUsize,
    is_write_blocked: AtomicBool,
}

impl ActiveRequests {
    /// Whether no request is running.
    pub(super) fn is_empty(&self) -> bool {
        self.0.requests.load(Ordering::Relaxed) == 0
    }

    /// Whether no request is running and no response waits for its client.
    pub(super) fn is_idle(&self) -> bool {
        self.is_empty() && !self.0.is_write_blocked.load(Ordering::Relaxed)
    }

    pub(super) fn set_write_blocked(&self, is_blocked: bool) {
        self.0.is_write_blocked.store(is_blocked, Ordering::Relaxed);
    }

    fn start(&self) -> ActiveRequest {
        self.0.requests.fetch_add(1, Ordering::Relaxed);
        ActiveRequest(Arc::clone(&self.0))
    }
}

/// A connection. Its dialogs end when it is dropped.
pub(super) struct Connection {
    pub(super) id: ConnectionId,
    pub(super) permit: ConnectionPermit,
    /// The address of the other side: of the client, or of a proxy.
    peer: IpAddr,
    gateway: Arc<GatewayInner>,
}

impl Connection {
    pub(super) fn new(app: &AppState, permit: ConnectionPermit, peer: IpAddr) -> Arc<Connection> {
        Arc::new(Connection { id: ConnectionId::unique(), permit, peer, gateway: Arc::clone(&app.gateway) })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.gateway.dialogs.end_connection(self.id);
    }
}

/// A running request. Counted until it is dropped.
#[derive(Debug)]
pub(super) struct ActiveRequest(Arc<Activity>);

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Serves HTTP/1.1 until the client or the server ends the connection.
pub(super) async fn serve_http1(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    app: Arc<AppState>,
    (connection, requests): (Arc<Connection>, ActiveRequests),
    shutdown: oneshot::Receiver<()>,
) -> hyper::Result<()> {
    let service = service_fn(|request| {
        let (app, connection, active) = (Arc::clone(&app), Arc::clone(&connection), requests.start());
        async move {
            let response = respond(&app, &connection, request).await;
            Ok::<_, Infallible>(response.map(|body| SentBody::new(body, active)))
        }
    });
    // `TimedStream` limits the time for a head, because hyper would register a timer for each request.
    let mut builder = http1::Builder::new();
    builder.max_buf_size(MAX_HEAD_BYTES).max_header_size(MAX_HEAD_BYTES).header_read_timeout(None);
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        biased;
        served = serving.as_mut() => return served,
        _ = shutdown => serving.as_mut().graceful_shutdown(),
    }
    serving.await
}

/// Serves HTTP/2 until the client or the server ends the connection.
pub(super) async fn serve_http2(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    app: Arc<AppState>,
    (connection, requests): (Arc<Connection>, ActiveRequests),
    mut shutdown: oneshot::Receiver<()>,
) -> hyper::Result<()> {
    let flow_control = Arc::new(FlowControl::new(app.bounds().send_timeout));
    let service = service_fn(|request| {
        let (app, connection, active) = (Arc::clone(&app), Arc::clone(&connection), requests.start());
        let flow_control = Arc::clone(&flow_control);
        async move {
            let response = respond(&app, &connection, request).await;
            Ok::<_, Infallible>(response.map(|body| SentBody::new(body, active).watched(flow_control)))
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
    let mut stalled = pin!(flow_control.stalled());
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

async fn respond(app: &Arc<AppState>, connection: &Connection, request: Request<Incoming>) -> Response {
    let (head, body) = request.into_parts();
    let response = router::route(app, connection, &head, body).await;
    if let Some(refused) = response.extensions().get::<RefusalReason>() {
        app.refusals.log(connection.peer, *refused);
    }
    app.gateway.counters.response_started(response.status().as_u16());
    response
}
