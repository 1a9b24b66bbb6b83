//! The states of a session's servers, as data and as a stream.
//!
//! A slow reader of a stream sees only the latest state, and delays nothing.

pub(crate) mod update;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use mcp_host_acp::{AcpTransport, ServerStartError};
use mcp_host_model::RpcError;
use mcp_host_runtime::{HostSnapshot, ServerState, ServerStatus};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use tokio::sync::watch;

use crate::login::{LoginChanges, LoginPage, LoginStates};
use crate::options::RequiredServers;
use crate::servers::{ServerDescription, ServerSource};
use crate::start_error::{self, FailureContext};

/// The status of one server (ACPX-14).
///
/// Serializes as `{"name", "source", "transport", "status", "tools"}`, and `"error"` with code, message and data if it
/// failed, or `"loginUrl"` if it requires a login.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionServerStatus {
    /// Its name.
    pub name: String,
    /// Whether the client or the agent has configured it.
    pub source: ServerSource,
    /// The transport.
    pub transport: AcpTransport,
    /// The state.
    pub state: ConnectionState,
    /// The number of its exposed tools.
    pub tools: usize,
}

impl SessionServerStatus {
    /// Returns whether the session requires the server. The agent's own servers never are.
    pub(crate) fn is_required_by(&self, required: &RequiredServers) -> bool {
        self.source == ServerSource::Client && required.contains(&self.name)
    }
}

/// The state of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionState {
    /// Starting or connecting.
    Connecting,
    /// Ready for calls.
    Connected,
    /// Failed. It may be retried and become [`ConnectionState::Connected`].
    Failed(ServerStartError),
    /// The user has to log in at this page. The server is connected when that is done.
    LoginRequired(LoginPage),
    /// Not started yet ([`StartPolicy::FirstUse`](crate::StartPolicy::FirstUse)). It starts with the first
    /// [`SessionRegistry::acquire`](crate::SessionRegistry::acquire).
    NotStarted,
    /// Stopped to make room for other sessions. It starts with the next
    /// [`SessionRegistry::acquire`](crate::SessionRegistry::acquire).
    Idle,
    /// Its session is closed, or it was disabled.
    Closed,
}

impl ConnectionState {
    /// Returns `connecting`, `connected`, `failed`, `login_required`, `not_started`, `idle` or `closed`.
    pub fn as_str(&self) -> &'static str {
        match self {
            ConnectionState::Connecting => "connecting",
            ConnectionState::Connected => "connected",
            ConnectionState::Failed(_) => "failed",
            ConnectionState::LoginRequired(_) => "login_required",
            ConnectionState::NotStarted => "not_started",
            ConnectionState::Idle => "idle",
            ConnectionState::Closed => "closed",
        }
    }
}

impl Serialize for SessionServerStatus {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let SessionServerStatus { name, source, transport, state, tools } = self;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", name)?;
        map.serialize_entry("source", source)?;
        map.serialize_entry("transport", transport)?;
        map.serialize_entry("status", state.as_str())?;
        map.serialize_entry("tools", tools)?;
        match state {
            ConnectionState::Failed(error) => map.serialize_entry("error", &RpcError::from(error))?,
            ConnectionState::LoginRequired(page) => map.serialize_entry("loginUrl", page.as_str())?,
            ConnectionState::Connecting
            | ConnectionState::Connected
            | ConnectionState::NotStarted
            | ConnectionState::Idle
            | ConnectionState::Closed => {}
        }
        map.end()
    }
}

/// Whether a session uses its servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionPhase {
    /// They are being started for the first time.
    Starting,
    /// They start with the first use.
    NotStarted,
    /// They run.
    Active,
    /// They are stopped until the next use.
    Idle,
    /// The session is closed.
    Closed,
}

/// Computes the statuses of the servers of one session: from the host's snapshot, the logins and the session's phase.
pub(crate) struct StatusBoard {
    /// In the order of the request; then the agent's own.
    pub(crate) descriptions: Vec<ServerDescription>,
    startup_timeout: Duration,
    logins: Arc<LoginStates>,
    phase: watch::Sender<SessionPhase>,
}

impl StatusBoard {
    pub(crate) fn new(
        descriptions: Vec<ServerDescription>,
        startup_timeout: Duration,
        logins: Arc<LoginStates>,
        phase: SessionPhase,
    ) -> StatusBoard {
        let phase = watch::Sender::new(phase);
        StatusBoard { descriptions, startup_timeout, logins, phase }
    }

    pub(crate) fn phase(&self) -> SessionPhase {
        *self.phase.borrow()
    }

    /// Changes the phase, unless the session is closed. Returns the previous phase.
    pub(crate) fn replace_phase(&self, phase: SessionPhase) -> SessionPhase {
        let mut previous = phase;
        self.phase.send_if_modified(|current| {
            previous = *current;
            let changes = previous != phase && previous != SessionPhase::Closed;
            if changes {
                *current = phase;
            }
            changes
        });
        previous
    }

    /// Returns a receiver of everything that changes the statuses. `snapshots` are those of the host.
    pub(crate) fn changes(&self, snapshots: watch::Receiver<Arc<HostSnapshot>>) -> StatusChanges {
        StatusChanges { snapshots, logins: self.logins.subscribe(), phase: self.phase.subscribe() }
    }

    /// Returns whether the servers run for the session.
    pub(crate) fn is_active(&self) -> bool {
        matches!(self.phase(), SessionPhase::Active | SessionPhase::Starting)
    }

    /// Returns every status, in the order of the descriptions. `snapshot` is `None` if the host is not started.
    pub(crate) fn statuses(&self, snapshot: Option<&HostSnapshot>) -> Vec<SessionServerStatus> {
        // A session whose servers do not run has no tools, even while the host still lists them.
        let snapshot = snapshot.filter(|_| self.is_active());
        let mut tools: HashMap<&str, usize> = HashMap::new();
        for tool in snapshot.iter().flat_map(|snapshot| snapshot.catalog.tools()) {
            *tools.entry(tool.server.as_str()).or_default() += 1;
        }
        let servers = snapshot.iter().flat_map(|snapshot| &snapshot.servers);
        let states: HashMap<&str, &ServerStatus> =
            servers.map(|status| (status.id.as_str(), status)).collect();
        let status = |server: &ServerDescription| SessionServerStatus {
            name: server.name.clone(),
            source: server.source,
            transport: server.transport.clone(),
            state: self.state(server, states.get(server.name.as_str()).copied()),
            tools: tools.get(server.name.as_str()).copied().unwrap_or_default(),
        };
        self.descriptions.iter().map(status).collect()
    }

    /// Returns the state of a server. A server without a status is connecting: the snapshot is older than the request.
    fn state(&self, server: &ServerDescription, status: Option<&ServerStatus>) -> ConnectionState {
        match self.phase() {
            SessionPhase::NotStarted => return ConnectionState::NotStarted,
            SessionPhase::Idle => return ConnectionState::Idle,
            SessionPhase::Closed => return ConnectionState::Closed,
            SessionPhase::Starting | SessionPhase::Active => {}
        }
        if let Some(page) = self.logins.page(&server.name) {
            return ConnectionState::LoginRequired(page);
        }
        let Some(status) = status else { return ConnectionState::Connecting };
        match (status.state, &status.error) {
            (ServerState::Ready, _) => ConnectionState::Connected,
            (ServerState::Disabled | ServerState::Stopped, _) => ConnectionState::Closed,
            (ServerState::Starting, _) | (_, None) => ConnectionState::Connecting,
            (_, Some(error)) => {
                let context = FailureContext {
                    login_failure: self.logins.failure(&server.name),
                    timeout: self.startup_timeout,
                };
                ConnectionState::Failed(start_error::start_error(server, error, context))
            }
        }
    }

    /// Returns whether all servers are settled, or a required one has failed. One that waits for a login is settled.
    pub(crate) fn is_settled(&self, snapshot: &HostSnapshot, required: &RequiredServers) -> bool {
        // The snapshot may be older than the request.
        if snapshot.servers.len() < self.descriptions.len() {
            return false;
        }
        let statuses = self.statuses(Some(snapshot));
        let is_connecting = |status: &SessionServerStatus| status.state == ConnectionState::Connecting;
        let has_failed = |status: &SessionServerStatus| matches!(status.state, ConnectionState::Failed(_));
        !statuses.iter().any(is_connecting)
            || statuses.iter().any(|status| has_failed(status) && status.is_required_by(required))
    }
}

/// A receiver of everything that changes the statuses of a session.
pub(crate) struct StatusChanges {
    snapshots: watch::Receiver<Arc<HostSnapshot>>,
    logins: LoginChanges,
    phase: watch::Receiver<SessionPhase>,
}

impl StatusChanges {
    /// Returns the current snapshot.
    pub(crate) fn snapshot(&mut self) -> Arc<HostSnapshot> {
        Arc::clone(&self.snapshots.borrow_and_update())
    }

    /// Waits for a change. Returns false after the end of the host. Cancel-safe.
    pub(crate) async fn changed(&mut self) -> bool {
        tokio::select! {
            changed = self.snapshots.changed() => changed.is_ok(),
            changed = self.logins.changed() => changed,
            changed = self.phase.changed() => changed.is_ok(),
        }
    }
}

/// A stream of the statuses of a session's servers: the current ones, then each change. It ends with the session.
pub struct StatusStream {
    board: Arc<StatusBoard>,
    /// `None` without servers, and after the end.
    changes: Option<StatusChanges>,
    reported: Vec<SessionServerStatus>,
    queued: VecDeque<SessionServerStatus>,
    is_started: bool,
}

impl StatusStream {
    pub(crate) fn new(board: Arc<StatusBoard>, changes: Option<StatusChanges>) -> StatusStream {
        StatusStream { board, changes, reported: Vec::new(), queued: VecDeque::new(), is_started: false }
    }

    /// Returns the next changed status; `None` after the session has ended and all changes were returned.
    /// Cancel-safe.
    pub async fn next(&mut self) -> Option<SessionServerStatus> {
        loop {
            if let Some(status) = self.queued.pop_front() {
                return Some(status);
            }
            let changes = self.changes.as_mut()?;
            if self.is_started && !changes.changed().await {
                self.changes = None;
                continue;
            }
            self.is_started = true;
            let snapshot = changes.snapshot();
            // Nothing changes after the end, which may come while the host serves other sessions.
            if self.board.phase() == SessionPhase::Closed {
                self.changes = None;
            }
            let statuses = self.board.statuses(Some(&snapshot));
            self.queued.extend(statuses.iter().filter(|status| !self.reported.contains(status)).cloned());
            self.reported = statuses;
        }
    }

    /// Converts to a [`Stream`](futures_util::Stream).
    pub fn into_stream(self) -> futures_util::stream::BoxStream<'static, SessionServerStatus> {
        let next =
            |mut stream: StatusStream| async move { stream.next().await.map(|status| (status, stream)) };
        Box::pin(futures_util::stream::unfold(self, next))
    }
}
