//! WebSocket with the subprotocol `mcp`. Requests from other machines and from web pages of other origins are rejected.
//!
//! Internally, a socket is a pair of streams with one message per line, like standard input and output. Each
//! socket has its own state for a legacy client; modern requests share the state of the shared_state.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State as Shared};
use axum::http::header::SEC_WEBSOCKET_PROTOCOL;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};

use crate::http::loopback::is_local_request;
use crate::lifetime::Lifetime;
use crate::serve::serve_lines;
use crate::server::DemoHandler;
use crate::state::DemoState;

/// The path of the WebSocket endpoint.
pub(crate) const PATH: &str = "/ws";

/// The maximum number of open sockets.
const MAX_SOCKETS: u32 = 64;

/// The maximum size of a message.
const MAX_MESSAGE_BYTES: usize = 4 << 20;

/// The size of the buffer between a socket and the server, per direction.
const BUFFER_BYTES: usize = 64 << 10;

/// The timeout of a write to a client.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// The timeout for closing sockets.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

type WebSocket = WebSocketStream<TokioIo<Upgraded>>;

/// The open sockets of one server.
#[derive(Clone)]
pub(crate) struct Sockets {
    permits: Arc<Semaphore>,
    shared_state: Arc<DemoState>,
    lifetime: Arc<Lifetime>,
    /// The listening address.
    own: IpAddr,
}

impl Sockets {
    pub(crate) fn new(own: IpAddr, shared_state: Arc<DemoState>, lifetime: Arc<Lifetime>) -> Sockets {
        Sockets { permits: Arc::new(Semaphore::new(MAX_SOCKETS as usize)), shared_state, lifetime, own }
    }

    /// The route at [`PATH`].
    pub(crate) fn route(&self) -> Router {
        Router::new().route(PATH, routing::any(open_socket)).with_state(self.clone())
    }

    /// Waits until all sockets are closed, at most [`CLOSE_TIMEOUT`]. No socket is opened afterwards.
    pub(crate) async fn wait_until_closed(&self) {
        // Remaining sockets end with the shared_state.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, self.permits.acquire_many(MAX_SOCKETS)).await;
        self.permits.close();
    }
}

/// Upgrades a request to a WebSocket, and serves it in a task.
async fn open_socket(Shared(sockets): Shared<Sockets>, mut request: Request) -> Response {
    if !is_local_request(request.headers(), sockets.own) {
        return (StatusCode::FORBIDDEN, "the demo server is for this machine only").into_response();
    }
    let Ok(permit) = Arc::clone(&sockets.permits).try_acquire_owned() else {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many sockets are open").into_response();
    };
    let mut response = match create_response_with_body(&request, Body::empty) {
        Ok(response) => response,
        Err(error) => return (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    };
    if offers_mcp(request.headers()) {
        response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static("mcp"));
    }
    let upgrade = hyper::upgrade::on(&mut request);
    // The task ends with the socket. `Sockets::wait_until_closed` waits for its permit.
    tokio::spawn(async move {
        // The upgrade fails if the client disconnects before it has the response.
        let Ok(stream) = upgrade.await else { return };
        let limits = WebSocketConfig::default()
            .max_message_size(Some(MAX_MESSAGE_BYTES))
            .max_frame_size(Some(MAX_MESSAGE_BYTES));
        let socket = WebSocketStream::from_raw_socket(TokioIo::new(stream), Role::Server, Some(limits)).await;
        serve_socket(socket, sockets, permit).await;
    });
    response
}

/// Whether the client offers the subprotocol `mcp`.
fn offers_mcp(headers: &HeaderMap) -> bool {
    let offers = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|value| value.to_str().ok());
    offers.flat_map(|value| value.split(',')).any(|protocol| protocol.trim() == "mcp")
}

/// Serves one client until it disconnects or the server ends. Holds a permit meanwhile.
async fn serve_socket(socket: WebSocket, sockets: Sockets, _permit: OwnedSemaphorePermit) {
    let lifetime = Arc::new(sockets.lifetime.for_session());
    let (here, there) = tokio::io::duplex(BUFFER_BYTES);
    let (read, write) = tokio::io::split(there);
    let demo = DemoHandler::new(Arc::new(DemoState::default()), sockets.shared_state, Arc::clone(&lifetime));
    let serving = serve_lines(demo, Arc::clone(&lifetime), Box::new(read), Box::new(write));
    let (lines, messages) = tokio::io::split(here);
    let (mut sink, stream) = socket.split();
    let code = tokio::select! {
        biased;
        // As in a crash: without a close frame.
        _ = lifetime.wait_for_exit() => return,
        () = sockets.lifetime.wait_for_end() => CloseCode::Away,
        code = forward_to_server(stream, messages) => code,
        code = forward_to_client(lines, &mut sink) => code,
        _ = serving => CloseCode::Normal,
    };
    let close_frame = Message::Close(Some(CloseFrame { code, reason: "".into() }));
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, sink.send(close_frame)).await;
}

/// Forwards messages as lines. Returns the code to close the socket with.
async fn forward_to_server(
    mut stream: SplitStream<WebSocket>,
    mut messages: impl AsyncWrite + Unpin,
) -> CloseCode {
    loop {
        let mut line = match stream.next().await {
            Some(Ok(Message::Text(text))) => text.as_str().to_owned(),
            Some(Ok(Message::Binary(_))) => return CloseCode::Unsupported,
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
            Some(Ok(Message::Close(_))) | None => return CloseCode::Normal,
            Some(Err(_)) => return CloseCode::Protocol,
        };
        // A line break between two JSON tokens would split the message.
        line = line.replace(['\n', '\r'], " ");
        line.push('\n');
        if messages.write_all(line.as_bytes()).await.is_err() {
            return CloseCode::Normal;
        }
    }
}

/// Forwards lines as messages. Returns the code to close the socket with.
async fn forward_to_client(
    lines: impl AsyncRead + Unpin,
    sink: &mut SplitSink<WebSocket, Message>,
) -> CloseCode {
    let mut lines = BufReader::new(lines).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let sent = tokio::time::timeout(WRITE_TIMEOUT, sink.send(Message::Text(line.into()))).await;
        if !matches!(sent, Ok(Ok(()))) {
            return CloseCode::Policy;
        }
    }
    CloseCode::Normal
}
