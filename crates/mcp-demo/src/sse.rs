//! The server over HTTP with server-sent events, the transport of 2024-11-05: a stream for each client, and a path to
//! post messages to.
//!
//! A session is its stream: it begins with the GET, its id is known to nobody else, and it ends when the client goes.
//! How many there are and how much waits in each is bounded. A browser's page is turned away, as everywhere here.

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
    connection::Connection, life::Life, neighbour::is_neighbour, serve::serve, server::Demo, state::State,
};

/// Where a client gets its stream.
pub(crate) const PATH: &str = "/sse";

/// Where it posts its messages.
const MESSAGES: &str = "/messages";

/// How many clients there may be at once.
const MOST_SESSIONS: usize = 64;

/// How many messages may wait in a session, each way. Who sends more waits, too.
const MOST_WAITING: usize = 64;

/// The two paths.
pub(crate) fn router(address: SocketAddr, life: Arc<Life>) -> Router {
    let sessions = Arc::new(Sessions { address, life, open: Mutex::default() });
    Router::new().route(PATH, get(open)).route(MESSAGES, post(take)).with_state(sessions)
}

/// The clients of one server.
struct Sessions {
    address: SocketAddr,
    life: Arc<Life>,
    open: Mutex<HashMap<String, mpsc::Sender<ClientJsonRpcMessage>>>,
}

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, mpsc::Sender<ClientJsonRpcMessage>>> {
        // The map is whole after any panic.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session that is in the list for as long as this is there.
struct Listed {
    id: String,
    sessions: Arc<Sessions>,
}

impl Drop for Listed {
    fn drop(&mut self) {
        // Its sender goes with it, which the server takes as the end of the client.
        self.sessions.lock().remove(&self.id);
    }
}

/// A session id that nobody guesses: the keys of a [`RandomState`] come from the system.
fn fresh_id() -> String {
    let half = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", half(), half())
}

/// Opens a session and gives its stream.
async fn open(Shared(sessions): Shared<Arc<Sessions>>, headers: HeaderMap) -> Response {
    if !is_neighbour(&headers, sessions.address.ip()) {
        return StatusCode::FORBIDDEN.into_response();
    }
    let (from_client, incoming) = mpsc::channel(MOST_WAITING);
    let (outgoing, to_client) = mpsc::channel(MOST_WAITING);
    let id = fresh_id();
    {
        let mut open = sessions.lock();
        if open.len() >= MOST_SESSIONS {
            return (StatusCode::SERVICE_UNAVAILABLE, "too many clients").into_response();
        }
        open.insert(id.clone(), from_client);
    }
    let life = Arc::new(sessions.life.of_a_session());
    let listed = Listed { id, sessions: Arc::clone(&sessions) };
    let endpoint = Event::default().event("endpoint").data(format!("{MESSAGES}?session={}", listed.id));
    let state = Arc::new(State::default());
    let demo = Demo::new(Arc::clone(&state), state, Arc::clone(&life));
    let session = Session { incoming, outgoing, life: Arc::clone(&life) };
    // It ends with the life of the session: how, is nobody's concern but the client's, who is gone then.
    tokio::spawn(async move { drop(serve(demo, Connection::new(session, life)).await) });
    let stopping = Arc::clone(&sessions.life);
    let events = stream::unfold(
        (Some(endpoint), to_client, listed, stopping),
        |(endpoint, mut to_client, listed, stopping)| async move {
            if let Some(endpoint) = endpoint {
                return Some((Ok::<_, Infallible>(endpoint), (None, to_client, listed, stopping)));
            }
            let message: String = tokio::select! {
                message = to_client.recv() => message?,
                () = stopping.over() => return None,
            };
            Some((Ok(Event::default().event("message").data(message)), (None, to_client, listed, stopping)))
        },
    );
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

/// Takes a message for a session.
async fn take(
    Shared(sessions): Shared<Arc<Sessions>>,
    RawQuery(query): RawQuery,
    parts: Parts,
    body: Bytes,
) -> Response {
    if !is_neighbour(&parts.headers, sessions.address.ip()) {
        return StatusCode::FORBIDDEN.into_response();
    }
    let query = query.unwrap_or_default();
    let id = query.split('&').find_map(|it| it.strip_prefix("session="));
    let sender = id.and_then(|it| sessions.lock().get(it).cloned());
    let Some(sender) = sender else {
        return (StatusCode::NOT_FOUND, "there is no such session").into_response();
    };
    let mut message: ClientJsonRpcMessage = match serde_json::from_slice(&body) {
        Ok(message) => message,
        Err(error) => {
            return (StatusCode::BAD_REQUEST, format!("this is no message: {error}")).into_response();
        }
    };
    // A tool tells the headers that its call came with; rmcp's Streamable HTTP leaves them in the same place.
    if let ClientJsonRpcMessage::Request(request) = &mut message {
        request.request.extensions_mut().insert(parts);
    }
    match sender.send(message).await {
        Ok(()) => StatusCode::ACCEPTED.into_response(),
        Err(_) => (StatusCode::NOT_FOUND, "the session is over").into_response(),
    }
}

/// One client, as rmcp's server sees it.
struct Session {
    incoming: mpsc::Receiver<ClientJsonRpcMessage>,
    outgoing: mpsc::Sender<String>,
    life: Arc<Life>,
}

impl Transport<RoleServer> for Session {
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
            () = self.life.over() => None,
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.incoming.close();
        Ok(())
    }
}
