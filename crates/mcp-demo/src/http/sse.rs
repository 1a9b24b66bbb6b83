//! HTTP with server-sent events, the transport of 2024-11-05: one event stream per client, and a path for its messages.
//!
//! A GET request opens a session with a random id; the session ends when the client closes the stream. The number of
//! sessions and their queues are bounded. Requests from web pages of other origins are rejected.

use std::{
    collections::HashMap,
    convert::Infallible,
    hash::{BuildHasher, Hasher, RandomState},
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    Router,
    body::Bytes,
    extract::{RawQuery, State as Shared},
    http::{HeaderMap, StatusCode, request::Parts},
    response::{
        IntoResponse, Response,
        sse::{Event, KeepAlive, Sse},
    },
    routing::{get, post},
};
use futures_util::stream;
use rmcp::{
    RoleServer,
    model::{ClientJsonRpcMessage, GetExtensions, ServerJsonRpcMessage},
    transport::Transport,
};
use tokio::sync::mpsc;

use crate::{
    connection::DemoConnection, http::loopback::is_local_request, lifetime::Lifetime, serve::serve,
    server::DemoHandler, state::DemoState,
};

/// The path of the event stream.
pub(crate) const PATH: &str = "/sse";

/// The path for messages.
const MESSAGES_PATH: &str = "/messages";

/// The maximum number of sessions.
const MAX_SESSIONS: usize = 64;

/// The capacity of a session's queues, in messages, per direction.
const QUEUE_CAPACITY: usize = 64;

/// The routes of the two paths.
pub(crate) fn router(address: SocketAddr, lifetime: Arc<Lifetime>) -> Router {
    let sessions = Arc::new(Sessions { address, lifetime, open: Mutex::default() });
    Router::new()
        .route(PATH, get(open_stream))
        .route(MESSAGES_PATH, post(receive_message))
        .with_state(sessions)
}

/// The open sessions.
struct Sessions {
    address: SocketAddr,
    lifetime: Arc<Lifetime>,
    open: Mutex<HashMap<String, mpsc::Sender<ClientJsonRpcMessage>>>,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, mpsc::Sender<ClientJsonRpcMessage>>> {
        // The map is consistent after any panic.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes a session from the map when it is dropped.
struct SessionGuard {
    id: String,
    sessions: Arc<Sessions>,
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        // This drops the sender, which ends the session.
        self.sessions.lock().remove(&self.id);
    }
}

/// An unpredictable session id: the keys of a [`RandomState`] come from the system's random source.
fn random_id() -> String {
    let half = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", half(), half())
}

/// Opens a session and returns its event stream.
async fn open_stream(Shared(sessions): Shared<Arc<Sessions>>, headers: HeaderMap) -> Response {
    if !is_local_request(&headers, sessions.address.ip()) {
        return StatusCode::FORBIDDEN.into_response();
    }
    let (from_client, incoming) = mpsc::channel(QUEUE_CAPACITY);
    let (outgoing, to_client) = mpsc::channel(QUEUE_CAPACITY);
    let id = random_id();
    {
        let mut open = sessions.lock();
        if open.len() >= MAX_SESSIONS {
            return (StatusCode::SERVICE_UNAVAILABLE, "too many clients").into_response();
        }
        open.insert(id.clone(), from_client);
    }
    let lifetime = Arc::new(sessions.lifetime.for_session());
    let guard = SessionGuard { id, sessions: Arc::clone(&sessions) };
    let endpoint = Event::default().event("endpoint").data(format!("{MESSAGES_PATH}?session={}", guard.id));
    let state = Arc::new(DemoState::default());
    let demo = DemoHandler::new(Arc::clone(&state), state, Arc::clone(&lifetime));
    let session = SseSession { incoming, outgoing, lifetime: Arc::clone(&lifetime) };
    // The task ends with the session. Its result is not needed.
    tokio::spawn(async move { drop(serve(demo, DemoConnection::new(session, lifetime)).await) });
    let stopping = Arc::clone(&sessions.lifetime);
    let events = stream::unfold(
        (Some(endpoint), to_client, guard, stopping),
        |(endpoint, mut to_client, guard, stopping)| async move {
            if let Some(endpoint) = endpoint {
                return Some((Ok::<_, Infallible>(endpoint), (None, to_client, guard, stopping)));
            }
            let message: String = tokio::select! {
                message = to_client.recv() => message?,
                () = stopping.wait_for_end() => return None,
            };
            Some((Ok(Event::default().event("message").data(message)), (None, to_client, guard, stopping)))
        },
    );
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

/// Receives a message for a session.
async fn receive_message(
    Shared(sessions): Shared<Arc<Sessions>>,
    RawQuery(query): RawQuery,
    parts: Parts,
    body: Bytes,
) -> Response {
    if !is_local_request(&parts.headers, sessions.address.ip()) {
        return StatusCode::FORBIDDEN.into_response();
    }
    let query = query.unwrap_or_default();
    let id = query.split('&').find_map(|pair| pair.strip_prefix("session="));
    let sender = id.and_then(|id| sessions.lock().get(id).cloned());
    let Some(sender) = sender else {
        return (StatusCode::NOT_FOUND, "there is no such session").into_response();
    };
    let mut message: ClientJsonRpcMessage = match serde_json::from_slice(&body) {
        Ok(message) => message,
        Err(error) => {
            return (StatusCode::BAD_REQUEST, format!("not a JSON-RPC message: {error}")).into_response();
        }
    };
    // For the tool `header`. rmcp's Streamable HTTP stores the headers in the same place.
    if let ClientJsonRpcMessage::Request(request) = &mut message {
        request.request.extensions_mut().insert(parts);
    }
    match sender.send(message).await {
        Ok(()) => StatusCode::ACCEPTED.into_response(),
        Err(_) => (StatusCode::NOT_FOUND, "the session has ended").into_response(),
    }
}

/// One session, as a transport of rmcp's server.
struct SseSession {
    incoming: mpsc::Receiver<ClientJsonRpcMessage>,
    outgoing: mpsc::Sender<String>,
    lifetime: Arc<Lifetime>,
}

impl Transport<RoleServer> for SseSession {
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let outgoing = self.outgoing.clone();
        async move {
            let text = serde_json::to_string(&message)?;
            outgoing.send(text).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        tokio::select! {
            message = self.incoming.recv() => message,
            () = self.lifetime.wait_for_end() => None,
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.incoming.close();
        Ok(())
    }
}
