//! The MCP servers of one session.
//!
//! Each session has its own host, so sessions share no tool, process or name. Dropping the session, or the future
//! that connects it, ends everything that was started; a cancelled request leaves nothing.

use std::sync::Arc;
use std::time::Duration;

use mcp_acp::{RequestWarning, ServerStartError, ValidatedRequest};
use mcp_host::{DesiredServers, Host, PinnedGeneration, ToolCall};
use mcp_model::{CallResult, Limits};
use mcp_registry::{Catalog, ExposedTool};
use serde_json::{Map, Value, json};

use crate::error::SessionSetupError;
use crate::options::{ConnectOptions, FoldersAsRoots, RequiredServers};
use crate::roots::SessionRoots;
use crate::servers::{SessionServers, session_servers};
use crate::start_error::{self, RecordedConnectError};
use crate::status::{ConnectErrors, ConnectionState, ServerStatus, StatusBoard, StatusStream};

/// The servers of a session.
///
/// All methods may be called concurrently. Dropping it ends all servers and process groups without waiting;
/// [`SessionMcp::close`] waits.
pub struct SessionMcp {
    host: Host,
    board: Arc<StatusBoard>,
    warnings: Vec<RequestWarning>,
}

/// Servers that are not connected yet. Dropping it ends them.
pub struct PendingSession {
    session: SessionMcp,
    desired: DesiredServers,
    required: RequiredServers,
    total_timeout: Duration,
    max_servers: usize,
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
            total_timeout,
            max_servers,
            required,
            mut host,
            folders,
            environment,
            dialer,
            #[cfg(feature = "mcp-over-acp")]
            over_acp,
        } = options;
        #[cfg(feature = "mcp-over-acp")]
        let has_over_acp = over_acp.is_some();
        #[cfg(not(feature = "mcp-over-acp"))]
        let has_over_acp = false;
        let limits = Limits { startup: limits.startup.min(total_timeout), ..limits };
        let SessionServers { descriptions, desired, over_acp: servers } =
            session_servers(&validated, &limits, environment, has_over_acp);
        let connect_errors = Arc::new(ConnectErrors::default());
        if host.server_requests.handlers.roots.is_none() && folders == FoldersAsRoots::Offered {
            host.server_requests.handlers.roots = Some(Arc::new(SessionRoots::of(&validated)));
        }
        let (recorded, other_handler) =
            (Arc::clone(&connect_errors), host.connections.on_connect_failure.take());
        host.connections.on_connect_failure = Some(Arc::new(move |failure| {
            recorded.insert(failure.server.as_str(), RecordedConnectError::of(failure));
            if let Some(other_handler) = &other_handler {
                other_handler(failure);
            }
        }));
        let dialer = dialer
            .unwrap_or_else(|| Arc::new(|server, options| mcp_transport::dialer(&server.endpoint, options)));
        #[cfg(feature = "mcp-over-acp")]
        let dialer = match over_acp {
            Some(over_acp) => over_acp.dialer(servers, dialer),
            None => dialer,
        };
        #[cfg(not(feature = "mcp-over-acp"))]
        drop(servers);
        let host = Host::with_dialer(host, dialer);
        let board = Arc::new(StatusBoard { descriptions, startup_timeout: limits.startup, connect_errors });
        let session = SessionMcp { host, board, warnings: validated.warnings };
        PendingSession { session, desired, required, total_timeout, max_servers }
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
        &self.warnings
    }

    /// Returns the content for a response's `_meta`: `{"mcpServers": [status…], "mcpReports": [warning…]}`, the latter
    /// only if there are some.
    pub fn to_meta(&self) -> Map<String, Value> {
        let mut meta = Map::from_iter([("mcpServers".to_owned(), json!(self.statuses()))]);
        if !self.warnings.is_empty() {
            meta.insert("mcpReports".to_owned(), json!(self.warnings));
        }
        meta
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
        let PendingSession { session, desired, required, total_timeout, max_servers } = self;
        let requested = session.board.descriptions.len();
        if requested > max_servers {
            return Err(SessionSetupError::TooManyServers { requested, limit: max_servers });
        }
        let mut snapshots = session.host.subscribe();
        let settled = async {
            session.host.apply(desired).await;
            // An error means that the host is gone, which also ends the wait.
            let _ = snapshots.wait_for(|snapshot| session.board.is_settled(snapshot, &required)).await;
        };
        // After a timeout, the current state counts.
        let _ = tokio::time::timeout(total_timeout, settled).await;
        let failures = session.missing_required(&required, total_timeout);
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
    fn missing_required(&self, required: &RequiredServers, timeout: Duration) -> Vec<ServerStartError> {
        let mut statuses = self.statuses();
        statuses.retain(|status| required.contains(&status.name));
        let has_failed = statuses.iter().any(|status| matches!(status.state, ConnectionState::Failed(_)));
        let error = |ServerStatus { name, state, .. }: ServerStatus| match state {
            ConnectionState::Connected => None,
            ConnectionState::Failed(error) => Some(error),
            ConnectionState::Connecting | ConnectionState::Closed if has_failed => None,
            ConnectionState::Connecting | ConnectionState::Closed => {
                let server = self.board.descriptions.iter().find(|server| server.name == name)?;
                Some(start_error::startup_timeout(server, timeout))
            }
        };
        statuses.into_iter().filter_map(error).collect()
    }
}
