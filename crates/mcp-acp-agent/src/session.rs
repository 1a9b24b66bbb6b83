//! The MCP servers of one session.
//!
//! Each session has its own host, so sessions share no tool, process or name. A session without servers has no host.
//! Dropping the session, or the future that connects it, ends everything that was started; a cancelled request leaves
//! nothing.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcp_acp::{RequestWarning, ServerStartError, ValidatedRequest};
use mcp_host::{DesiredServers, Dialer, Host, HostOptions, PinnedGeneration, ToolCall};
use mcp_model::CallResult;
use mcp_registry::{Catalog, ExposedTool};
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use crate::error::SessionSetupError;
use crate::options::{ConnectOptions, FoldersAsRoots, RequiredServers};
use crate::roots::SessionRoots;
use crate::servers::{SessionServers, session_servers};
use crate::start_error::{self, RecordedConnectError};
use crate::status::{ConnectErrors, ConnectionState, ServerStatus, StatusBoard, StatusStream};
use crate::status_update::{NoticeSupport, StatusUpdates};

/// The servers of a session.
///
/// All methods may be called concurrently. Dropping it ends all servers and process groups without waiting;
/// [`SessionMcp::close`] waits.
pub struct SessionMcp {
    /// Started when it is first needed: a session without servers has none.
    host: OnceLock<Host>,
    host_options: HostOptions,
    dialer: Dialer,
    desired: DesiredServers,
    total_timeout: Duration,
    board: Arc<StatusBoard>,
    /// Held while the servers are started or stopped.
    transition: Mutex<()>,
    warnings: Vec<RequestWarning>,
}

/// Servers that are not connected yet. Dropping it ends them.
pub struct PendingSession {
    session: SessionMcp,
    required: RequiredServers,
    max_servers: usize,
}

impl SessionMcp {
    /// Connects the servers of a request concurrently. Returns when each is connected or has failed, or when
    /// [`ConnectOptions::total_timeout`] expires (ACPX-05, ACPX-13). A server that is not connected by then joins the
    /// session when it is ready: its tools appear in [`SessionMcp::tools`], and [`SessionMcp::status_updates`] tells
    /// the client.
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
        let board = StatusBoard::new(descriptions, limits.startup, connect_errors);
        let session = SessionMcp {
            host: OnceLock::new(),
            host_options: host,
            dialer,
            desired,
            total_timeout,
            board: Arc::new(board),
            transition: Mutex::default(),
            warnings: validated.warnings,
        };
        PendingSession { session, required, max_servers }
    }

    /// Returns the host, and starts it if necessary.
    fn host(&self) -> &Host {
        self.host.get_or_init(|| Host::with_dialer(self.host_options.clone(), Arc::clone(&self.dialer)))
    }

    /// Returns the current state of every server, in the order of the request.
    pub fn statuses(&self) -> Vec<ServerStatus> {
        self.board.statuses(self.host.get().map(Host::snapshot).as_deref())
    }

    /// Returns a stream of the current states and their changes.
    ///
    /// # Panics
    ///
    /// When called outside of a Tokio runtime.
    pub fn status_stream(&self) -> StatusStream {
        // Without servers there is nothing to report.
        let snapshots = (!self.is_empty()).then(|| self.host().subscribe());
        StatusStream::new(Arc::clone(&self.board), snapshots)
    }

    /// Returns the `session/update` notifications that tell the client of its servers: those that are not connected
    /// now, and from now on each that fails, is connected, or is stopped. An agent sends them after the response to
    /// the setup.
    ///
    /// # Panics
    ///
    /// When called outside of a Tokio runtime.
    pub fn status_updates(&self, notices: NoticeSupport) -> StatusUpdates {
        StatusUpdates::new(self.status_stream(), notices)
    }

    /// Returns whether the request has no servers.
    pub fn is_empty(&self) -> bool {
        self.board.descriptions.is_empty()
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
        match self.host.get() {
            Some(host) => Arc::clone(&host.snapshot().catalog),
            None => Arc::new(Catalog::empty()),
        }
    }

    /// Calls a tool. Errors are part of the result. Dropping the future cancels the call.
    ///
    /// # Panics
    ///
    /// When polled outside of a Tokio runtime.
    pub async fn call(&self, call: ToolCall) -> CallResult {
        self.host().call(call).await
    }

    /// Pins the current tools, for one turn of a model.
    ///
    /// # Panics
    ///
    /// When called outside of a Tokio runtime.
    pub fn pin(&self) -> PinnedGeneration {
        self.host().pin()
    }

    /// Ends the servers with their process groups, and returns when none is left. May be called repeatedly and
    /// concurrently. Cancel-safe: the shutdown continues while this value exists.
    pub async fn close(&self) {
        if let Some(host) = self.host.get() {
            host.shutdown().await;
        }
    }

    /// Marks the servers as idle. [`SessionMcp::stop_if_idle`] stops them.
    pub(crate) fn set_idle(&self) {
        self.board.set_idle(true);
    }

    /// Stops the servers, unless the session uses them again.
    pub(crate) async fn stop_if_idle(&self) {
        let _transition = self.transition.lock().await;
        if let Some(host) = self.host.get().filter(|_| self.board.is_idle()) {
            host.apply(DesiredServers::default()).await;
        }
    }

    /// Starts idle servers, as [`SessionMcp::connect`] does. Cancel-safe: the next call continues.
    pub(crate) async fn wake(&self) {
        let _transition = self.transition.lock().await;
        if self.board.is_idle() {
            self.start(&RequiredServers::None).await;
        }
    }

    /// Starts the servers. Returns when they are settled, or after the total timeout.
    async fn start(&self, required: &RequiredServers) {
        if self.is_empty() {
            return;
        }
        let host = self.host();
        let mut snapshots = host.subscribe();
        let settled = async {
            host.apply(self.desired.clone()).await;
            self.board.set_idle(false);
            // An error means that the host is gone, which also ends the wait.
            let _ = snapshots.wait_for(|snapshot| self.board.is_settled(snapshot, required)).await;
        };
        // After a timeout, the current state counts.
        let _ = tokio::time::timeout(self.total_timeout, settled).await;
    }
}

impl PendingSession {
    /// Returns a stream of the current states and their changes.
    pub fn changes(&self) -> StatusStream {
        self.session.status_stream()
    }

    /// Starts and connects the servers; see [`SessionMcp::connect`].
    pub async fn connect(self) -> Result<SessionMcp, SessionSetupError> {
        let PendingSession { session, required, max_servers } = self;
        let requested = session.board.descriptions.len();
        if requested > max_servers {
            return Err(SessionSetupError::TooManyServers { requested, limit: max_servers });
        }
        session.start(&required).await;
        let failures = session.missing_required(&required);
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
    fn missing_required(&self, required: &RequiredServers) -> Vec<ServerStartError> {
        let mut statuses = self.statuses();
        statuses.retain(|status| required.contains(&status.name));
        let has_failed = statuses.iter().any(|status| matches!(status.state, ConnectionState::Failed(_)));
        let error = |ServerStatus { name, state, .. }: ServerStatus| match state {
            ConnectionState::Connected => None,
            ConnectionState::Failed(error) => Some(error),
            ConnectionState::Connecting | ConnectionState::Idle | ConnectionState::Closed if has_failed => {
                None
            }
            ConnectionState::Connecting | ConnectionState::Idle | ConnectionState::Closed => {
                let server = self.board.descriptions.iter().find(|server| server.name == name)?;
                Some(start_error::startup_timeout(server, self.total_timeout))
            }
        };
        statuses.into_iter().filter_map(error).collect()
    }
}
