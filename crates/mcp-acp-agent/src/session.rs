//! The MCP servers of one session.
//!
//! Each session has its own host, so sessions share no tool, process or name. Dropping the session, or the future
//! that connects it, ends everything that was started; a cancelled request leaves nothing.

use std::sync::Arc;
use std::time::Duration;

use mcp_acp::{RequestWarning, ServerStartError, ValidatedRequest};
use mcp_host::{Host, PinnedGeneration, ToolCall};
use mcp_model::{CallResult, Limits};
use mcp_registry::{Catalog, ExposedTool};
use serde_json::{Map, Value};

use crate::error::SessionSetupError;
use crate::options::{ConnectOptions, FoldersAsRoots, RequiredServers};
use crate::roots::SessionRoots;
use crate::servers::{OverAcpSupport, SessionServers, session_servers};
use crate::start_error::{self, RecordedConnectError};
use crate::status::{ConnectErrors, StatusBoard, response_meta};
use crate::status::{ConnectionState, ServerStatus, StatusStream};

/// The servers of a session.
///
/// All methods may be called concurrently. Dropping it ends all servers and process groups without waiting;
/// [`SessionMcp::close`] waits.
pub struct SessionMcp {
    host: Host,
    board: Arc<StatusBoard>,
    reports: Vec<RequestWarning>,
}

/// Servers that are not connected yet. Dropping it ends them.
pub struct PendingSession {
    session: SessionMcp,
    wanted: mcp_host::DesiredServers,
    required: RequiredServers,
    whole: Duration,
    most_servers: usize,
}

impl SessionMcp {
    /// Connects the servers of a request concurrently. Returns when each is connected or has failed, or when the
    /// total timeout expires (ACPX-05, ACPX-13). A hanging server uses only its own timeout.
    ///
    /// Fails if the request has more than [`ConnectOptions::max_servers`] servers, before any is started, and as soon
    /// as a required server has failed, after closing those that were started. Dropping the future ends what was
    /// started.
    ///
    /// # Panics
    ///
    /// When called outside of a Tokio runtime.
    pub async fn connect(
        validated: ValidatedRequest,
        options: ConnectOptions,
    ) -> Result<SessionMcp, SessionSetupError> {
        SessionMcp::prepare(validated, options).connect().await
    }

    /// Prepares the servers without starting any, so that a caller can observe the progress
    /// ([`PendingSession::changes`]). [`PendingSession::connect`] starts them.
    ///
    /// # Panics
    ///
    /// When called outside of a Tokio runtime.
    pub fn prepare(validated: ValidatedRequest, options: ConnectOptions) -> PendingSession {
        let ConnectOptions {
            limits,
            total_timeout: whole,
            max_servers: most_servers,
            required,
            mut host,
            folders,
            dialer,
            #[cfg(feature = "mcp-over-acp")]
            over_acp,
        } = options;
        #[cfg(feature = "mcp-over-acp")]
        let possible =
            if over_acp.is_some() { OverAcpSupport::Available } else { OverAcpSupport::Unavailable };
        #[cfg(not(feature = "mcp-over-acp"))]
        let possible = OverAcpSupport::Unavailable;
        let limits = Limits { startup: limits.startup.min(whole), ..limits };
        let SessionServers { descriptions: described, wanted, over_acp: servers } =
            session_servers(&validated, &limits, possible);
        let seen = Arc::new(ConnectErrors::default());
        if host.server_requests.handlers.roots.is_none() && folders == FoldersAsRoots::Offered {
            host.server_requests.handlers.roots = Some(Arc::new(SessionRoots::of(&validated)));
        }
        let (keeps, others) = (Arc::clone(&seen), host.connections.on_connect_failure.take());
        host.connections.on_connect_failure = Some(Arc::new(move |it| {
            keeps.insert(it.server.as_str(), RecordedConnectError::of(it));
            if let Some(others) = &others {
                others(it);
            }
        }));
        let dialer =
            dialer.unwrap_or_else(|| Arc::new(|it, options| mcp_transport::dialer(&it.endpoint, options)));
        #[cfg(feature = "mcp-over-acp")]
        let dialer = match over_acp {
            Some(over_acp) => over_acp.dialer(servers, dialer),
            None => dialer,
        };
        #[cfg(not(feature = "mcp-over-acp"))]
        drop(servers);
        let host = Host::with_dialer(host, dialer);
        let board = Arc::new(StatusBoard { described, limit: limits.startup, connect_errors: seen });
        let session = SessionMcp { host, board, reports: validated.warnings };
        PendingSession { session, wanted, required, whole, most_servers }
    }

    /// Returns the current state of every server, in the order of the request.
    pub fn statuses(&self) -> Vec<ServerStatus> {
        self.board.statuses(&self.host.snapshot())
    }

    /// Returns a stream of the current states and their changes.
    pub fn status_stream(&self) -> StatusStream {
        StatusStream::new(Arc::clone(&self.board), self.host.subscribe())
    }

    /// Returns the warnings about the request, including dropped entries.
    pub fn warnings(&self) -> &[RequestWarning] {
        &self.reports
    }

    /// Returns the content for a response's `_meta`: `{"mcpServers": [status…], "mcpReports": [warning…]}`.
    pub fn to_meta(&self) -> Map<String, Value> {
        response_meta(&self.statuses(), &self.reports)
    }

    /// Returns the current tools, in the order of the request, under names that every provider accepts.
    pub fn tools(&self) -> Vec<ExposedTool> {
        self.catalog().tools().to_vec()
    }

    /// Returns the current catalog.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.host.snapshot().catalog)
    }

    /// Calls a tool. Errors are part of the result. Dropping the future cancels the call.
    pub async fn call(&self, call: ToolCall) -> CallResult {
        self.host.call(call).await
    }

    /// Pins the current tools, for one turn of a model.
    pub fn pin(&self) -> PinnedGeneration {
        self.host.pin()
    }

    /// Ends the servers with their process groups, and returns when none is left. May be called repeatedly and
    /// concurrently. Cancel-safe: the shutdown continues while this value exists.
    pub async fn close(&self) {
        self.host.shutdown().await;
    }
}

impl PendingSession {
    /// Returns a stream of the current states and their changes.
    pub fn changes(&self) -> StatusStream {
        self.session.status_stream()
    }

    /// Starts and connects the servers; see [`SessionMcp::connect`].
    pub async fn connect(self) -> Result<SessionMcp, SessionSetupError> {
        let PendingSession { session, wanted, required, whole, most_servers } = self;
        let asked = session.board.described.len();
        if asked > most_servers {
            return Err(SessionSetupError::TooManyServers { asked, most: most_servers });
        }
        let mut published = session.host.subscribe();
        let settling = async {
            session.host.apply(wanted).await;
            // An error means that the host is gone, which also ends the wait.
            let _ = published.wait_for(|it| session.board.is_settled(it, &required)).await;
        };
        // After a timeout, the current state counts.
        let _ = tokio::time::timeout(whole, settling).await;
        let failures = session.missing_required(&required, whole);
        if failures.is_empty() {
            return Ok(session);
        }
        session.close().await;
        Err(SessionSetupError::Failed(failures))
    }
}

impl SessionMcp {
    /// Returns the errors of required servers that are not connected.
    ///
    /// If another server has failed, connecting servers are omitted until their timeout.
    fn missing_required(&self, required: &RequiredServers, whole: Duration) -> Vec<ServerStartError> {
        let statuses = self.statuses();
        let failed = statuses
            .iter()
            .any(|it| matches!(it.state, ConnectionState::Failed(_)) && required.contains(&it.name));
        let missing =
            self.board.described.iter().zip(&statuses).filter(|(it, _)| required.contains(&it.name));
        let failure =
            |(server, status): (&crate::servers::ServerDescription, &ServerStatus)| match &status.state {
                ConnectionState::Connected => None,
                ConnectionState::Failed(failure) => Some(failure.clone()),
                ConnectionState::Connecting | ConnectionState::Closed if failed => None,
                ConnectionState::Connecting | ConnectionState::Closed => {
                    Some(start_error::startup_timeout(server, whole))
                }
            };
        missing.filter_map(failure).collect()
    }
}
