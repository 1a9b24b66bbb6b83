//! The states of a session's servers, as data and as a stream.
//!
//! A slow reader of a stream sees only the latest state, and delays nothing.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_acp::{AcpTransport, ServerStartError};
use mcp_host::{HostSnapshot, ServerState};
use mcp_model::RpcError;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use tokio::sync::watch;

use crate::options::RequiredServers;
use crate::servers::ServerDescription;
use crate::start_error::{self, RecordedConnectError};

/// The status of one server (ACPX-14).
///
/// Serializes as `{"name", "transport", "status", "tools"}`, and `"error"` with code, message and data if it failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    /// The client's name for it.
    pub name: String,
    /// The transport.
    pub transport: AcpTransport,
    /// The state.
    pub state: ConnectionState,
    /// The number of its exposed tools.
    pub tools: usize,
}

/// The state of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionState {
    /// Starting or connecting.
    Connecting,
    /// Ready for calls.
    Connected,
    /// Failed. It may be retried and become [`ConnectionState::Connected`].
    Failed(ServerStartError),
    /// Stopped to make room for other sessions. It starts with the next
    /// [`SessionRegistry::acquire`](crate::SessionRegistry::acquire).
    Idle,
    /// Its session is closed, or it was disabled.
    Closed,
}

impl ConnectionState {
    /// Returns `connecting`, `connected`, `failed`, `idle` or `closed`.
    pub fn as_str(&self) -> &'static str {
        match self {
            ConnectionState::Connecting => "connecting",
            ConnectionState::Connected => "connected",
            ConnectionState::Failed(_) => "failed",
            ConnectionState::Idle => "idle",
            ConnectionState::Closed => "closed",
        }
    }
}

impl Serialize for ServerStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ServerStatus { name, transport, state, tools } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", name)?;
        map.serialize_entry("transport", transport)?;
        map.serialize_entry("status", state.as_str())?;
        map.serialize_entry("tools", tools)?;
        if let ConnectionState::Failed(error) = state {
            map.serialize_entry("error", &RpcError::from(error))?;
        }
        map.end()
    }
}

/// The servers of one session and their recorded errors.
pub(crate) struct StatusBoard {
    /// In the order of the request.
    pub(crate) descriptions: Vec<ServerDescription>,
    startup_timeout: Duration,
    connect_errors: Arc<ConnectErrors>,
    is_idle: AtomicBool,
}

/// The last connection error of each server, by name.
#[derive(Default)]
pub(crate) struct ConnectErrors(Mutex<HashMap<String, RecordedConnectError>>);

impl ConnectErrors {
    pub(crate) fn insert(&self, server: &str, error: RecordedConnectError) {
        // A panic cannot leave the map inconsistent: each change is one call.
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(server.to_owned(), error);
    }

    fn get(&self, server: &str) -> Option<RecordedConnectError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(server).cloned()
    }
}

impl StatusBoard {
    pub(crate) fn new(
        descriptions: Vec<ServerDescription>,
        startup_timeout: Duration,
        connect_errors: Arc<ConnectErrors>,
    ) -> StatusBoard {
        StatusBoard { descriptions, startup_timeout, connect_errors, is_idle: AtomicBool::new(false) }
    }

    /// Returns whether the servers are stopped until their session uses them.
    pub(crate) fn is_idle(&self) -> bool {
        self.is_idle.load(Ordering::Acquire)
    }

    pub(crate) fn set_idle(&self, is_idle: bool) {
        self.is_idle.store(is_idle, Ordering::Release);
    }

    /// Returns every status, in the order of the request. `None`: the host is not started.
    pub(crate) fn statuses(&self, snapshot: Option<&HostSnapshot>) -> Vec<ServerStatus> {
        let mut tools: HashMap<&str, usize> = HashMap::new();
        for tool in snapshot.iter().flat_map(|snapshot| snapshot.catalog.tools()) {
            *tools.entry(tool.server.as_str()).or_default() += 1;
        }
        let servers = snapshot.iter().flat_map(|snapshot| &snapshot.servers);
        let states: HashMap<&str, &mcp_host::ServerStatus> =
            servers.map(|status| (status.id.as_str(), status)).collect();
        let status = |server: &ServerDescription| ServerStatus {
            name: server.name.clone(),
            transport: server.transport.clone(),
            state: self.state(server, states.get(server.name.as_str()).copied()),
            tools: tools.get(server.name.as_str()).copied().unwrap_or_default(),
        };
        self.descriptions.iter().map(status).collect()
    }

    /// A server that is missing in the snapshot is connecting: the snapshot is older than the request.
    fn state(&self, server: &ServerDescription, status: Option<&mcp_host::ServerStatus>) -> ConnectionState {
        if self.is_idle() {
            return ConnectionState::Idle;
        }
        let Some(status) = status else { return ConnectionState::Connecting };
        match (status.state, &status.error) {
            (ServerState::Ready, _) => ConnectionState::Connected,
            (ServerState::Disabled | ServerState::Stopped, _) => ConnectionState::Closed,
            (ServerState::Starting, _) | (ServerState::Restarting | ServerState::Failed, None) => {
                ConnectionState::Connecting
            }
            (ServerState::Restarting | ServerState::Failed, Some(error)) => {
                let recorded = self.connect_errors.get(&server.name);
                let timeout = self.startup_timeout;
                ConnectionState::Failed(start_error::start_error(server, error, recorded.as_ref(), timeout))
            }
        }
    }

    /// Returns whether all servers are settled, or a required one has failed.
    pub(crate) fn is_settled(&self, snapshot: &HostSnapshot, required: &RequiredServers) -> bool {
        let has_failed = |status: &mcp_host::ServerStatus| {
            matches!(status.state, ServerState::Restarting | ServerState::Failed)
        };
        let mut servers = snapshot.servers.iter();
        // The snapshot may be older than the request.
        let is_current = servers.len() >= self.descriptions.len();
        let is_starting = servers.clone().any(|status| status.state == ServerState::Starting);
        is_current && !is_starting
            || servers.any(|status| has_failed(status) && required.contains(&status.id))
    }
}

/// A stream of the servers of a session: the current statuses, then each change. Ends with the session.
pub struct StatusStream {
    board: Arc<StatusBoard>,
    /// `None` without servers.
    snapshots: Option<watch::Receiver<Arc<HostSnapshot>>>,
    reported: Vec<ServerStatus>,
    queued: VecDeque<ServerStatus>,
    is_started: bool,
}

impl StatusStream {
    pub(crate) fn new(
        board: Arc<StatusBoard>,
        snapshots: Option<watch::Receiver<Arc<HostSnapshot>>>,
    ) -> StatusStream {
        StatusStream { board, snapshots, reported: Vec::new(), queued: VecDeque::new(), is_started: false }
    }

    /// Returns the next changed status; `None` after the session has ended and all changes were returned.
    /// Cancel-safe.
    pub async fn next(&mut self) -> Option<ServerStatus> {
        let snapshots = self.snapshots.as_mut()?;
        loop {
            if let Some(status) = self.queued.pop_front() {
                return Some(status);
            }
            if self.is_started && snapshots.changed().await.is_err() {
                return None;
            }
            self.is_started = true;
            let statuses = self.board.statuses(Some(&snapshots.borrow_and_update()));
            self.queued.extend(statuses.iter().filter(|status| !self.reported.contains(status)).cloned());
            self.reported = statuses;
        }
    }

    /// Converts to a [`Stream`](futures_util::Stream).
    pub fn stream(self) -> futures_util::stream::BoxStream<'static, ServerStatus> {
        let next =
            |mut stream: StatusStream| async move { stream.next().await.map(|status| (status, stream)) };
        Box::pin(futures_util::stream::unfold(self, next))
    }
}
