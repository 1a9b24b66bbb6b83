//! Serves a recording over Streamable HTTP, on a loopback address only.
//!
//! In the legacy era, `initialize` creates a session that starts at the beginning of the recording. Requests without a
//! session share one position. Messages that belong to a request are sent on its stream, before the response.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use mcp_host_model::Method;
use mcp_host_recording::{ReplayedMessage, Replayer, ServerRecording};
use mcp_host_transport::internal::scan::{ScannedFrame, scan};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::config::context::Context;
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::sanitize;
use crate::runtime::exit::Exit;
use crate::runtime::signals::{Signals, run_until_signal};

/// The header that names a session.
const SESSION_HEADER: &str = "mcp-session-id";
/// The maximum number of sessions.
const MAX_SESSIONS: usize = 64;
/// The maximum size of a request, in bytes.
const MAX_REQUEST_BYTES: usize = 64 << 20;

/// The recording and the sessions of its clients.
struct ReplayState {
    recording: Arc<ServerRecording>,
    sessions: Mutex<ReplaySessions>,
}

/// The sessions of the clients.
#[derive(Default)]
struct ReplaySessions {
    /// The number of sessions so far.
    count: u64,
    /// The sessions with their ids, the oldest first.
    by_id: VecDeque<(String, ReplaySession)>,
    /// The position of requests without a session, which share it.
    stateless: Option<ReplaySession>,
}

/// The position of one client in the recording.
struct ReplaySession {
    replayer: Replayer,
    /// The event streams of requests, by the JSON text of the request id.
    streams: HashMap<String, mpsc::UnboundedSender<Bytes>>,
}

/// Serves until a signal arrives.
pub(super) async fn run(
    context: &Context,
    recording: Arc<ServerRecording>,
    address: SocketAddr,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    if !address.ip().is_loopback() {
        let message = format!("{address} is not a loopback address; use 127.0.0.1 or [::1]");
        return Err(Failure::usage(message));
    }
    let bound = async {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        std::io::Result::Ok((listener, address))
    };
    let (listener, address) = bound.await.map_err(|error| {
        let failure = Failure::new(format!("could not listen on {address}: {error}"));
        failure.help(Some("port 0 selects any free port"))
    })?;
    let server = sanitize::line(&recording.server);
    let err = format!("serving the recording of {server} at http://{address}/mcp\n");
    context.print(Report::err(err)).await;
    let state = Arc::new(ReplayState { recording, sessions: Mutex::default() });
    let routes = Router::new()
        .route("/mcp", post(post_message).get(refuse_stream).delete(delete_session))
        .layer(DefaultBodyLimit::max(MAX_REQUEST_BYTES))
        .with_state(state);
    let served = run_until_signal(signals, axum::serve(listener, routes).into_future()).await?;
    served.map_err(|error| Failure::new(format!("the HTTP server failed: {error}")))?;
    Ok(Exit::Success)
}

/// Handles GET: there is no standalone event stream.
async fn refuse_stream() -> Response {
    // All messages are sent on the streams of requests.
    (StatusCode::METHOD_NOT_ALLOWED, "this server has no standalone event stream; send POST requests")
        .into_response()
}

/// Handles DELETE: ends a session.
async fn delete_session(State(state): State<Arc<ReplayState>>, headers: HeaderMap) -> StatusCode {
    let Some(id) = header_text(&headers, SESSION_HEADER) else { return StatusCode::BAD_REQUEST };
    let mut sessions = state.lock();
    let before = sessions.by_id.len();
    sessions.by_id.retain(|(known, _)| known != id);
    if sessions.by_id.len() < before { StatusCode::OK } else { StatusCode::NOT_FOUND }
}

/// Handles POST: passes one message to the replayer, and streams the messages that belong to it.
async fn post_message(State(state): State<Arc<ReplayState>>, headers: HeaderMap, body: Bytes) -> Response {
    if !is_local(&headers) {
        return (StatusCode::FORBIDDEN, "only programs on this machine may connect").into_response();
    }
    let (request_id, method) = match scan(&body) {
        ScannedFrame::Request { id, method, .. } => {
            (Some(String::from_utf8_lossy(&body[id]).into_owned()), Some(method))
        }
        ScannedFrame::Notification { method, .. } => (None, Some(method)),
        ScannedFrame::Response { .. } | ScannedFrame::EmptyResponse(_) => (None, None),
        ScannedFrame::Batch(_) | ScannedFrame::Noise => {
            return (StatusCode::BAD_REQUEST, "not a JSON-RPC message").into_response();
        }
    };
    let mut sessions = state.lock();
    let session_id = match header_text(&headers, SESSION_HEADER) {
        _ if method.is_some_and(|it| it == Method::Initialize) => Some(sessions.create(&state.recording)),
        Some(id) if sessions.by_id.iter().any(|(known, _)| known == id) => Some(id.to_owned()),
        Some(_) => return (StatusCode::NOT_FOUND, "there is no such session").into_response(),
        None => None,
    };
    let session = sessions.session(&state.recording, session_id.as_deref());
    let Some(request_id) = request_id else {
        session.replay_message(&body, None);
        return StatusCode::ACCEPTED.into_response();
    };
    let (sender, receiver) = mpsc::unbounded_channel();
    session.streams.retain(|_, stream| !stream.is_closed());
    session.streams.insert(request_id.clone(), sender);
    session.replay_message(&body, Some(&request_id));
    drop(sessions);
    let events = futures_util::stream::unfold(receiver, async |mut receiver| {
        let message = receiver.recv().await?;
        let event = [b"event: message\ndata: ", &message[..], b"\n\n"].concat();
        Some((Ok::<_, Infallible>(event), receiver))
    });
    let mut response = Response::new(Body::from_stream(events));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/event-stream"));
    if let Some(Ok(id)) = session_id.map(header::HeaderValue::try_from) {
        response.headers_mut().insert(SESSION_HEADER, id);
    }
    response
}

/// Whether the Host and Origin headers name this machine. Protects against DNS rebinding.
fn is_local(headers: &HeaderMap) -> bool {
    let is_local_authority = |authority: &str| {
        let host = authority
            .rsplit_once(':')
            .filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()))
            .map_or(authority, |(host, _)| host);
        matches!(host, "localhost" | "127.0.0.1" | "[::1]")
    };
    let origin =
        header_text(headers, "origin").and_then(|origin| origin.split_once("://")).map(|(_, host)| host);
    header_text(headers, "host").is_none_or(is_local_authority) && origin.is_none_or(is_local_authority)
}

fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

impl ReplayState {
    fn lock(&self) -> std::sync::MutexGuard<'_, ReplaySessions> {
        // Every change under the lock is complete before anything can panic.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReplaySessions {
    /// Creates a session and returns its id. Drops the oldest session if there are too many.
    fn create(&mut self, recording: &Arc<ServerRecording>) -> String {
        self.count += 1;
        let id = format!("replay-{}", self.count);
        if self.by_id.len() == MAX_SESSIONS {
            self.by_id.pop_front();
        }
        self.by_id.push_back((id.clone(), ReplaySession::new(recording)));
        id
    }

    /// The session with this id, or the shared one of requests without a session.
    fn session(&mut self, recording: &Arc<ServerRecording>, id: Option<&str>) -> &mut ReplaySession {
        match self.by_id.iter_mut().find(|(known, _)| Some(known.as_str()) == id) {
            Some((_, session)) => session,
            None => self.stateless.get_or_insert_with(|| ReplaySession::new(recording)),
        }
    }
}

impl ReplaySession {
    fn new(recording: &Arc<ServerRecording>) -> ReplaySession {
        ReplaySession { replayer: Replayer::new(Arc::clone(recording)), streams: HashMap::new() }
    }

    /// Passes a message to the replayer and sends the resulting messages on the streams of their requests.
    fn replay_message(&mut self, body: &[u8], request_id: Option<&str>) {
        let replayed = self.replayer.receive(body);
        // Messages without a request are sent on the current stream, before its response closes it.
        let (unrelated, related): (Vec<ReplayedMessage>, Vec<ReplayedMessage>) =
            replayed.into_iter().partition(|message| message.request_id.is_none());
        for ReplayedMessage { request_id: target, message, is_response, .. } in
            unrelated.into_iter().chain(related)
        {
            let Some(id) = target.as_deref().or(request_id) else { continue };
            if let Some(stream) = self.streams.get(id) {
                // Fails if the client has disconnected.
                let _ = stream.send(message);
            }
            if is_response {
                self.streams.remove(id);
            }
        }
    }
}
