//! How the servers of a session are, as data and as a stream.
//!
//! A stream never holds a server up: who is slow sees the latest of each, and nothing waits for him.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_acp::{Failure, Report, Transport};
use mcp_host::{HostSnapshot, ServerState};
use mcp_model::RpcError;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use crate::Required;
use crate::evidence::{self, Seen};
use crate::wanted::Described;

/// One server of a session (ACPX-14).
///
/// Serialised it is `{"name", "transport", "status", "tools"}`, and `"error"` with code, message and data where it has
/// failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    /// Its name, as the client gave it.
    pub name: String,
    /// How it is reached.
    pub transport: Transport,
    /// How it is.
    pub state: State,
    /// How many of its tools are shown.
    pub tools: usize,
}

/// How a server of a session is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It is being started, or reached.
    Connecting,
    /// It can be called.
    Connected,
    /// It is not there. It may be tried again, and be [`State::Connected`] later.
    Failed(Failure),
    /// Its session is over, or it was switched off.
    Closed,
}

impl State {
    /// `connecting`, `connected`, `failed` or `closed`.
    pub fn as_str(&self) -> &'static str {
        match self {
            State::Connecting => "connecting",
            State::Connected => "connected",
            State::Failed(_) => "failed",
            State::Closed => "closed",
        }
    }
}

impl Serialize for ServerStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ServerStatus { name, transport, state, tools } = self;
        let mut res = serializer.serialize_map(None)?;
        res.serialize_entry("name", name)?;
        res.serialize_entry("transport", transport)?;
        res.serialize_entry("status", state.as_str())?;
        res.serialize_entry("tools", tools)?;
        if let State::Failed(failure) = state {
            res.serialize_entry("error", &RpcError::from(failure))?;
        }
        res.end()
    }
}

/// The servers of one session, and what was seen of them.
pub(crate) struct Board {
    pub(crate) described: Vec<Described>,
    pub(crate) limit: Duration,
    pub(crate) seen: Arc<SeenOf>,
}

/// The last connection of each server that did not come about, by its name.
#[derive(Default)]
pub(crate) struct SeenOf(Mutex<HashMap<String, Seen>>);

impl SeenOf {
    pub(crate) fn keep(&self, server: &str, seen: Seen) {
        // A panic elsewhere leaves the map whole: each entry is put in at once.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(server.to_owned(), seen);
    }

    fn get(&self, server: &str) -> Option<Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(server).cloned()
    }
}

impl Board {
    /// Every server, in the order of the session's list.
    pub(crate) fn statuses(&self, published: &HostSnapshot) -> Vec<ServerStatus> {
        let mut tools: HashMap<&str, usize> = HashMap::new();
        for tool in published.catalog.tools() {
            *tools.entry(tool.server.as_str()).or_default() += 1;
        }
        let states: HashMap<&str, &mcp_host::ServerStatus> =
            published.servers.iter().map(|it| (it.id.as_str(), it)).collect();
        let status = |it: &Described| ServerStatus {
            name: it.name.clone(),
            transport: it.transport.clone(),
            state: self.state(it, states.get(it.name.as_str()).copied()),
            tools: tools.get(it.name.as_str()).copied().unwrap_or_default(),
        };
        self.described.iter().map(status).collect()
    }

    fn state(&self, server: &Described, status: Option<&mcp_host::ServerStatus>) -> State {
        match (Progress::of(status), status.and_then(|it| it.error.as_ref())) {
            (Progress::Connecting, _) | (Progress::Failed, None) => State::Connecting,
            (Progress::Connected, _) => State::Connected,
            (Progress::Closed, _) => State::Closed,
            (Progress::Failed, Some(failure)) => {
                let seen = self.seen.get(&server.name);
                State::Failed(evidence::failure(server, failure, seen.as_ref(), self.limit))
            }
        }
    }

    /// Is there nothing left to wait for: is every server settled, or one gone that is required?
    pub(crate) fn is_settled(&self, published: &HostSnapshot, required: &Required) -> bool {
        let progress = |it: &mcp_host::ServerStatus| Progress::of(Some(it));
        let lost =
            published.servers.iter().any(|it| progress(it) == Progress::Failed && required.holds(&it.id));
        // What is published may be older than the wish.
        let known = published.servers.len() >= self.described.len();
        lost || known && published.servers.iter().all(|it| progress(it) != Progress::Connecting)
    }
}

/// How far a server is, without the words for it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Connecting,
    Connected,
    Failed,
    Closed,
}

impl Progress {
    /// A server that is not published yet is wanted, and what is published is older than the wish.
    fn of(status: Option<&mcp_host::ServerStatus>) -> Progress {
        match status.map(|it| it.state) {
            None | Some(ServerState::Starting) => Progress::Connecting,
            Some(ServerState::Ready) => Progress::Connected,
            Some(ServerState::Restarting | ServerState::Failed) => Progress::Failed,
            Some(ServerState::Disabled | ServerState::Stopped) => Progress::Closed,
        }
    }
}

/// The servers of a session as they change: every one as it is, then each that is another than before. Ends with the
/// session.
pub struct Statuses {
    board: Arc<Board>,
    published: watch::Receiver<Arc<HostSnapshot>>,
    told: Vec<ServerStatus>,
    waiting: VecDeque<ServerStatus>,
    begun: bool,
}

impl Statuses {
    pub(crate) fn new(board: Arc<Board>, published: watch::Receiver<Arc<HostSnapshot>>) -> Statuses {
        Statuses { board, published, told: Vec::new(), waiting: VecDeque::new(), begun: false }
    }

    /// The next server that is another than before; `None` when the session is over and all was told. Cancel-safe.
    pub async fn next(&mut self) -> Option<ServerStatus> {
        loop {
            if let Some(status) = self.waiting.pop_front() {
                return Some(status);
            }
            if self.begun && self.published.changed().await.is_err() {
                return None;
            }
            self.begun = true;
            let now = self.board.statuses(&self.published.borrow_and_update());
            self.waiting.extend(now.iter().filter(|it| !self.told.contains(it)).cloned());
            self.told = now;
        }
    }

    /// The same as a stream.
    pub fn stream(self) -> futures_util::stream::BoxStream<'static, ServerStatus> {
        let next = |mut it: Statuses| async move { it.next().await.map(|status| (status, it)) };
        Box::pin(futures_util::stream::unfold(self, next))
    }
}

/// What a response's `_meta` may say of a session's servers: `{"mcpServers": [status…], "mcpReports": [report…]}`, the
/// reports only where there are some.
pub(crate) fn report(statuses: &[ServerStatus], reports: &[Report]) -> Map<String, Value> {
    let mut res = Map::new();
    res.insert("mcpServers".to_owned(), json!(statuses));
    if !reports.is_empty() {
        res.insert("mcpReports".to_owned(), json!(reports));
    }
    res
}
