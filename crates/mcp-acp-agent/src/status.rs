//! How the servers of a session are, as data and as a stream.
//!
//! A stream never holds a server up: who is slow sees the latest of each, and nothing waits for him.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_acp::{AcpTransport, RequestWarning, ServerStartError};
use mcp_host::{HostSnapshot, ServerState};
use mcp_model::RpcError;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use crate::RequiredServers;
use crate::servers::ServerDescription;
use crate::start_error::{self, RecordedConnectError};

/// One server of a session (ACPX-14).
///
/// Serialised it is `{"name", "transport", "status", "tools"}`, and `"error"` with code, message and data where it has
/// failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    /// Its name, as the client gave it.
    pub name: String,
    /// How it is reached.
    pub transport: AcpTransport,
    /// How it is.
    pub state: ConnectionState,
    /// How many of its tools are shown.
    pub tools: usize,
}

/// How a server of a session is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionState {
    /// It is being started, or reached.
    Connecting,
    /// It can be called.
    Connected,
    /// It is not there. It may be tried again, and be [`ConnectionState::Connected`] later.
    Failed(ServerStartError),
    /// Its session is over, or it was switched off.
    Closed,
}

impl ConnectionState {
    /// `connecting`, `connected`, `failed` or `closed`.
    pub fn as_str(&self) -> &'static str {
        match self {
            ConnectionState::Connecting => "connecting",
            ConnectionState::Connected => "connected",
            ConnectionState::Failed(_) => "failed",
            ConnectionState::Closed => "closed",
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
        if let ConnectionState::Failed(failure) = state {
            res.serialize_entry("error", &RpcError::from(failure))?;
        }
        res.end()
    }
}

/// The servers of one session, and what was seen of them.
pub(crate) struct StatusBoard {
    pub(crate) described: Vec<ServerDescription>,
    pub(crate) limit: Duration,
    pub(crate) connect_errors: Arc<ConnectErrors>,
}

/// The last connection of each server that did not come about, by its name.
#[derive(Default)]
pub(crate) struct ConnectErrors(Mutex<HashMap<String, RecordedConnectError>>);

impl ConnectErrors {
    pub(crate) fn insert(&self, server: &str, seen: RecordedConnectError) {
        // A panic elsewhere leaves the map whole: each entry is put in at once.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(server.to_owned(), seen);
    }

    fn get(&self, server: &str) -> Option<RecordedConnectError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(server).cloned()
    }
}

impl StatusBoard {
    /// Every server, in the order of the session's list.
    pub(crate) fn statuses(&self, published: &HostSnapshot) -> Vec<ServerStatus> {
        let mut tools: HashMap<&str, usize> = HashMap::new();
        for tool in published.catalog.tools() {
            *tools.entry(tool.server.as_str()).or_default() += 1;
        }
        let states: HashMap<&str, &mcp_host::ServerStatus> =
            published.servers.iter().map(|it| (it.id.as_str(), it)).collect();
        let status = |it: &ServerDescription| ServerStatus {
            name: it.name.clone(),
            transport: it.transport.clone(),
            state: self.state(it, states.get(it.name.as_str()).copied()),
            tools: tools.get(it.name.as_str()).copied().unwrap_or_default(),
        };
        self.described.iter().map(status).collect()
    }

    fn state(&self, server: &ServerDescription, status: Option<&mcp_host::ServerStatus>) -> ConnectionState {
        match (ConnectProgress::of(status), status.and_then(|it| it.error.as_ref())) {
            (ConnectProgress::Connecting, _) | (ConnectProgress::Failed, None) => ConnectionState::Connecting,
            (ConnectProgress::Connected, _) => ConnectionState::Connected,
            (ConnectProgress::Closed, _) => ConnectionState::Closed,
            (ConnectProgress::Failed, Some(failure)) => {
                let seen = self.connect_errors.get(&server.name);
                ConnectionState::Failed(start_error::start_error(server, failure, seen.as_ref(), self.limit))
            }
        }
    }

    /// Is there nothing left to wait for: is every server settled, or one gone that is required?
    pub(crate) fn is_settled(&self, published: &HostSnapshot, required: &RequiredServers) -> bool {
        let progress = |it: &mcp_host::ServerStatus| ConnectProgress::of(Some(it));
        let lost = published
            .servers
            .iter()
            .any(|it| progress(it) == ConnectProgress::Failed && required.contains(&it.id));
        // What is published may be older than the wish.
        let known = published.servers.len() >= self.described.len();
        lost || known && published.servers.iter().all(|it| progress(it) != ConnectProgress::Connecting)
    }
}

/// How far a server is, without the words for it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ConnectProgress {
    Connecting,
    Connected,
    Failed,
    Closed,
}

impl ConnectProgress {
    /// A server that is not published yet is wanted, and what is published is older than the wish.
    fn of(status: Option<&mcp_host::ServerStatus>) -> ConnectProgress {
        match status.map(|it| it.state) {
            None | Some(ServerState::Starting) => ConnectProgress::Connecting,
            Some(ServerState::Ready) => ConnectProgress::Connected,
            Some(ServerState::Restarting | ServerState::Failed) => ConnectProgress::Failed,
            Some(ServerState::Disabled | ServerState::Stopped) => ConnectProgress::Closed,
        }
    }
}

/// The servers of a session as they change: every one as it is, then each that is another than before. Ends with the
/// session.
pub struct StatusStream {
    board: Arc<StatusBoard>,
    published: watch::Receiver<Arc<HostSnapshot>>,
    reported: Vec<ServerStatus>,
    queued: VecDeque<ServerStatus>,
    started: bool,
}

impl StatusStream {
    pub(crate) fn new(
        board: Arc<StatusBoard>,
        published: watch::Receiver<Arc<HostSnapshot>>,
    ) -> StatusStream {
        StatusStream { board, published, reported: Vec::new(), queued: VecDeque::new(), started: false }
    }

    /// The next server that is another than before; `None` when the session is over and all was told. Cancel-safe.
    pub async fn next(&mut self) -> Option<ServerStatus> {
        loop {
            if let Some(status) = self.queued.pop_front() {
                return Some(status);
            }
            if self.started && self.published.changed().await.is_err() {
                return None;
            }
            self.started = true;
            let now = self.board.statuses(&self.published.borrow_and_update());
            self.queued.extend(now.iter().filter(|it| !self.reported.contains(it)).cloned());
            self.reported = now;
        }
    }

    /// The same as a stream.
    pub fn stream(self) -> futures_util::stream::BoxStream<'static, ServerStatus> {
        let next = |mut it: StatusStream| async move { it.next().await.map(|status| (status, it)) };
        Box::pin(futures_util::stream::unfold(self, next))
    }
}

/// What a response's `_meta` may say of a session's servers: `{"mcpServers": [status…], "mcpReports": [report…]}`, the
/// reports only where there are some.
pub(crate) fn response_meta(statuses: &[ServerStatus], reports: &[RequestWarning]) -> Map<String, Value> {
    let mut res = Map::new();
    res.insert("mcpServers".to_owned(), json!(statuses));
    if !reports.is_empty() {
        res.insert("mcpReports".to_owned(), json!(reports));
    }
    res
}
