//! A recording over Streamable HTTP, on this machine alone.
//!
//! A client of the older era gets a session with `initialize`, and in it the recording from its beginning; requests
//! without a session share one that goes on. What belongs to a request comes on that request's stream, before its answer.

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
use mcp_transport::recording::{ReplayedMessage, Replayer, ServerRecording};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::context::Context;
use crate::exit::Exit;
use crate::output::console::Report;
use crate::signals::Signals;

/// The header that names a session.
const SESSION: &str = "mcp-session-id";
/// The most sessions at once; of more, the oldest is forgotten.
const SESSIONS: usize = 64;
/// The largest request.
const LARGEST: usize = 64 << 20;

/// Everything that is served.
struct Site {
    tape: Arc<ServerRecording>,
    visits: Mutex<Visits>,
}

#[derive(Default)]
struct Visits {
    /// How many sessions there were.
    count: u64,
    sessions: VecDeque<(String, Visit)>,
    /// For requests without a session.
    open: Option<Visit>,
}

/// One client's way through the recording.
struct Visit {
    player: Replayer,
    /// Where the messages go that belong to a request, by the JSON text of its id.
    lanes: HashMap<String, mpsc::UnboundedSender<Bytes>>,
}

/// Serves until a signal comes.
pub(super) async fn run(
    context: &Context,
    tape: Arc<ServerRecording>,
    address: SocketAddr,
    signals: &mut Signals,
) -> Exit {
    if !address.ip().is_loopback() {
        let message = format!("{address} is no address of this machine alone; use 127.0.0.1 or [::1]");
        return context.tell(context.console.failure(Exit::Usage, &message, None)).await;
    }
    let bound = async {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        std::io::Result::Ok((listener, address))
    };
    let (listener, address) = match bound.await {
        Ok(bound) => bound,
        Err(error) => {
            let message = format!("could not listen on {address}: {error}");
            let failure =
                context.console.failure(Exit::Wrong, &message, Some("port 0 takes any port that is free"));
            return context.tell(failure).await;
        }
    };
    let err = format!(
        "the recording of {} is served at http://{address}/mcp\n",
        crate::output::plain::line(&tape.server)
    );
    context.tell(Report { out: String::new(), err, exit: Exit::Done, after: String::new() }).await;
    let site = Arc::new(Site { tape, visits: Mutex::default() });
    let routes = Router::new()
        .route("/mcp", post(take).get(refuse_stream).delete(forget))
        .layer(DefaultBodyLimit::max(LARGEST))
        .with_state(site);
    tokio::select! {
        biased;
        signal = signals.next() => Exit::Signal(signal),
        served = axum::serve(listener, routes) => match served {
            Ok(()) => Exit::Done,
            Err(_) => Exit::Wrong,
        },
    }
}

async fn refuse_stream() -> Response {
    // What would come on it comes with the answers.
    (StatusCode::METHOD_NOT_ALLOWED, "there is no stream here but those of requests").into_response()
}

async fn forget(State(site): State<Arc<Site>>, headers: HeaderMap) -> StatusCode {
    let Some(session) = text(&headers, SESSION) else { return StatusCode::BAD_REQUEST };
    let mut visits = site.visits();
    let before = visits.sessions.len();
    visits.sessions.retain(|(id, _)| id != session);
    if visits.sessions.len() < before { StatusCode::OK } else { StatusCode::NOT_FOUND }
}

async fn take(State(site): State<Arc<Site>>, headers: HeaderMap, body: Bytes) -> Response {
    if !is_local(&headers) {
        return (StatusCode::FORBIDDEN, "this is for programs of this machine").into_response();
    }
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow, default)]
        id: Option<&'a RawValue>,
        #[serde(default)]
        method: Option<String>,
    }
    let Ok(Head { id, method }) = serde_json::from_slice::<Head<'_>>(&body) else {
        return (StatusCode::BAD_REQUEST, "this is no JSON-RPC message").into_response();
    };
    let asked = id.filter(|_| method.is_some()).map(|it| it.get().to_owned());
    let opens = method.as_deref() == Some("initialize");
    let mut visits = site.visits();
    let session = match (opens, text(&headers, SESSION)) {
        (true, _) => Some(visits.begin(&site.tape)),
        (false, Some(session)) if visits.sessions.iter().any(|(id, _)| id == session) => {
            Some(session.to_owned())
        }
        (false, Some(_)) => return (StatusCode::NOT_FOUND, "there is no such session").into_response(),
        (false, None) => None,
    };
    let visit = visits.visit(&site.tape, session.as_deref());
    let Some(asked) = asked else {
        visit.hear(&body, None);
        return StatusCode::ACCEPTED.into_response();
    };
    let (sender, lane) = mpsc::unbounded_channel();
    visit.lanes.retain(|_, it| !it.is_closed());
    visit.lanes.insert(asked.clone(), sender);
    visit.hear(&body, Some(&asked));
    drop(visits);
    let events = futures_util::stream::unfold(lane, async |mut lane| {
        let message = lane.recv().await?;
        let event = [b"event: message\ndata: ", &message[..], b"\n\n"].concat();
        Some((Ok::<_, Infallible>(event), lane))
    });
    let mut response = Response::new(Body::from_stream(events));
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/event-stream"));
    if let Some(Ok(session)) = session.map(header::HeaderValue::try_from) {
        response.headers_mut().insert(SESSION, session);
    }
    response
}

/// Is the request for this machine, and no page's of another?
fn is_local(headers: &HeaderMap) -> bool {
    let host = |it: &str| {
        let it = it
            .rsplit_once(':')
            .filter(|(_, port)| port.bytes().all(|it| it.is_ascii_digit()))
            .map_or(it, |(host, _)| host);
        matches!(it, "localhost" | "127.0.0.1" | "[::1]")
    };
    let origin = text(headers, "origin").and_then(|it| it.split_once("://")).map(|(_, it)| it);
    text(headers, "host").is_none_or(host) && origin.is_none_or(host)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

impl Site {
    fn visits(&self) -> std::sync::MutexGuard<'_, Visits> {
        // Every change under the lock is complete before anything can panic.
        self.visits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Visits {
    /// A session that begins.
    fn begin(&mut self, tape: &Arc<ServerRecording>) -> String {
        self.count += 1;
        let id = format!("replay-{}", self.count);
        if self.sessions.len() == SESSIONS {
            self.sessions.pop_front();
        }
        self.sessions.push_back((id.clone(), Visit::new(tape)));
        id
    }

    fn visit(&mut self, tape: &Arc<ServerRecording>, session: Option<&str>) -> &mut Visit {
        let own = self.sessions.iter_mut().find(|(id, _)| Some(id.as_str()) == session);
        match own {
            Some((_, visit)) => visit,
            None => self.open.get_or_insert_with(|| Visit::new(tape)),
        }
    }
}

impl Visit {
    fn new(tape: &Arc<ServerRecording>) -> Visit {
        Visit { player: Replayer::new(Arc::clone(tape)), lanes: HashMap::new() }
    }

    /// Takes a message, and sends what is said to it on the streams that it belongs to.
    fn hear(&mut self, body: &[u8], asked: Option<&str>) {
        let played = self.player.receive(body);
        // What belongs to no request goes where it can be heard: on this stream, before it ends.
        let (loose, own): (Vec<ReplayedMessage>, Vec<ReplayedMessage>) =
            played.into_iter().partition(|it| it.request_id.is_none());
        for ReplayedMessage { request_id: of, message, is_response: is_answer } in
            loose.into_iter().chain(own)
        {
            let Some(lane) = of.as_deref().or(asked) else { continue };
            if let Some(sender) = self.lanes.get(lane) {
                // Who has gone away hears nothing.
                let _ = sender.send(message);
            }
            if is_answer {
                self.lanes.remove(lane);
            }
        }
    }
}
