//! The MCP servers of one session.
//!
//! Each session has its own host, so sessions share no tool, process or name, unless the agent shares equal lists of
//! servers. A session without servers starts none. Dropping the session, or the future that connects it, ends
//! everything that was started for it: cancelling a request ends everything that it started.

pub(crate) mod registry;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcp_host_acp::{AcpTransport, RequestWarning, ServerStartError, ValidatedRequest};
use mcp_host_model::{CallFailure, CallMetadata, CallResult, ErrorKind};
use mcp_host_registry::{Catalog, ExposedTool};
use mcp_host_runtime::{Dialog, DialogId, Host, HostOptions, PinnedGeneration, ToolCall};
use mcp_host_transport::{Caller, CallerId, ClientCapabilities};
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;
use tokio::sync::Mutex;

use crate::error::SessionSetupError;
#[cfg(feature = "oauth")]
use crate::login::oauth::BackgroundLogins;
use crate::options::{ConnectOptions, FoldersAsRoots, RequiredServers, StartPolicy};
use crate::roots::SessionRoots;
use crate::server_set::{Membership, ServerSet, ServerSetParts};
use crate::servers::{AgentSettings, ConvertedServers, ServerDescription, ServerSource, convert_servers};
use crate::start_error;
use crate::status::update::{NoticeSupport, StatusUpdates};
use crate::status::{ConnectionState, SessionPhase, SessionServerStatus, StatusBoard, StatusStream};

/// The servers of a session.
///
/// All methods may be called concurrently. Dropping it ends all servers and process groups without waiting, except
/// those that other sessions use; [`SessionServers::close`] waits.
pub struct SessionServers {
    set: Arc<ServerSet>,
    /// The use of the set by this session.
    membership: Membership,
    /// Handles the server requests of this session's calls; `None` if the host has this session only.
    caller: Option<Arc<Caller>>,
    /// The session's dialog with the host of a shared set, created by its first call.
    dialog: OnceLock<Dialog>,
    /// [`ConnectOptions::total_timeout`].
    total_timeout: Duration,
    /// The states of the servers, as the client sees them.
    board: Arc<StatusBoard>,
    /// Held while the servers are started or stopped for this session.
    transition: Mutex<()>,
    warnings: Vec<RequestWarning>,
}

/// A session whose servers are not started yet.
pub struct PendingSession {
    session: SessionServers,
    required: RequiredServers,
    max_servers: usize,
}

impl SessionServers {
    /// Connects the servers of a request concurrently. Returns when each is connected or has failed, or when
    /// [`ConnectOptions::total_timeout`] expires (ACPX-05, ACPX-13). A server that is not connected by then joins the
    /// session when it is ready: its tools appear in [`SessionServers::tools`], and [`SessionServers::status_updates`]
    /// notifies the client. With [`StartPolicy::FirstUse`] it returns at once and starts nothing.
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
    ) -> Result<SessionServers, SessionSetupError> {
        SessionServers::prepare(validated, options).connect().await
    }

    /// Prepares the servers without starting any, so that a caller can observe the progress
    /// ([`PendingSession::status_stream`]). [`PendingSession::connect`] starts them.
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
            start,
            own_servers,
            shared,
            #[cfg(feature = "oauth")]
            logins,
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
        // Servers over the ACP connection are not shared: another session has another connection.
        let has_acp_server = validated.servers.iter().any(|server| server.transport() == AcpTransport::Acp);
        let shared = shared.filter(|_| !has_acp_server);
        let startup = limits.startup;
        let has_one_user = shared.is_none();
        let settings = AgentSettings { limits, environment, has_over_acp, own_servers, has_one_user };
        let ConvertedServers { descriptions, desired, over_acp: acp_server_ids, warnings } =
            convert_servers(&validated, settings);
        let roots = &mut host.server_requests.handlers.roots;
        if roots.is_none() && folders == FoldersAsRoots::Offered {
            *roots = Some(Arc::new(SessionRoots::of(&validated)));
        }
        let caller = shared.is_some().then(|| Arc::new(take_caller(&mut host)));
        let dialer = dialer.unwrap_or_else(|| {
            Arc::new(|server, options| mcp_host_transport::dialer(&server.endpoint, options))
        });
        #[cfg(feature = "mcp-over-acp")]
        let dialer = match over_acp {
            Some(over_acp) => over_acp.dialer(acp_server_ids, dialer),
            None => dialer,
        };
        #[cfg(not(feature = "mcp-over-acp"))]
        drop(acp_server_ids);
        let login_states = Arc::default();
        #[cfg(feature = "oauth")]
        let logins = logins.map(|logins| Arc::new(BackgroundLogins::new(logins, Arc::clone(&login_states))));
        #[cfg(feature = "oauth")]
        let dialer = match &logins {
            Some(logins) => logins.dialer(dialer),
            None => dialer,
        };
        let set = ServerSet::new(ServerSetParts {
            host_options: host,
            dialer,
            desired,
            login_states,
            #[cfg(feature = "oauth")]
            logins,
            shared,
        });
        let phase = match start {
            StartPolicy::AtSession => SessionPhase::Starting,
            StartPolicy::FirstUse => SessionPhase::NotStarted,
        };
        // The set may be that of other sessions, with their logins.
        let login_states = Arc::clone(&set.parts.login_states);
        let session = SessionServers {
            set,
            membership: Membership::new(),
            caller,
            dialog: OnceLock::new(),
            total_timeout,
            board: Arc::new(StatusBoard::new(descriptions, startup, login_states, phase)),
            transition: Mutex::default(),
            warnings: validated.warnings.into_iter().chain(warnings).collect(),
        };
        PendingSession { session, required, max_servers }
    }

    /// Returns the host, which the first call creates.
    fn host(&self) -> &Host {
        self.set.host()
    }

    /// Returns the session as a dialog of the host; `None` if the host has this session only.
    fn dialog(&self) -> Option<&Dialog> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let caller = self.caller.as_ref()?;
        Some(self.dialog.get_or_init(|| {
            let id = DialogId::new(format!("session-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
            self.host().dialog_with_caller(id, Arc::clone(caller))
        }))
    }

    /// Returns the current state of every server, in the order of the request; then the agent's own.
    pub fn statuses(&self) -> Vec<SessionServerStatus> {
        self.board.statuses(self.set.snapshot().as_deref())
    }

    /// Returns a stream of the current states and their changes.
    ///
    /// # Panics
    ///
    /// When called outside of a Tokio runtime.
    pub fn status_stream(&self) -> StatusStream {
        // Without servers there is nothing to report.
        let changes = (!self.is_empty()).then(|| self.board.changes(self.host().subscribe()));
        StatusStream::new(Arc::clone(&self.board), changes)
    }

    /// Returns `session/update` notifications: first one for each server that is connecting, has failed, is idle or
    /// requires a login; then one each time that a server fails, requires a login, becomes idle or is connected.
    /// `notices` states whether the client supports notices. An agent sends the notifications after the response to
    /// the setup.
    ///
    /// # Panics
    ///
    /// When called outside of a Tokio runtime.
    pub fn status_updates(&self, notices: NoticeSupport) -> StatusUpdates {
        StatusUpdates::new(self.status_stream(), notices)
    }

    /// Returns whether the session has no servers.
    pub fn is_empty(&self) -> bool {
        self.board.descriptions.is_empty()
    }

    /// Returns the warnings about the request, including dropped entries.
    pub fn warnings(&self) -> &[RequestWarning] {
        &self.warnings
    }

    /// Returns the content for a response's `_meta`: `{"mcpServers": [status…], "mcpReports": [warning…]}`. The reports
    /// are those of [`SessionServers::warnings`]; without any, their key is omitted.
    pub fn to_meta(&self) -> Map<String, Value> {
        let mut meta = Map::from_iter([("mcpServers".to_owned(), json!(self.statuses()))]);
        if !self.warnings.is_empty() {
            meta.insert("mcpReports".to_owned(), json!(self.warnings));
        }
        meta
    }

    /// Returns the current tools, in the order of [`SessionServers::statuses`]. Tools of servers that the client
    /// requested have names that every model provider accepts. The names of the agent's own servers are made by the
    /// rules of its configuration.
    pub fn tools(&self) -> Vec<ExposedTool> {
        self.catalog().tools().iter().cloned().collect()
    }

    /// Returns the current catalog.
    pub fn catalog(&self) -> Arc<Catalog> {
        match self.set.snapshot().filter(|_| self.board.is_active()) {
            Some(snapshot) => Arc::clone(&snapshot.catalog),
            None => Arc::new(Catalog::empty()),
        }
    }

    /// Calls a tool. Errors are part of the result. Dropping the future cancels the call.
    ///
    /// # Panics
    ///
    /// When polled outside of a Tokio runtime.
    pub async fn call(&self, call: ToolCall) -> CallResult {
        match self.dialog() {
            None => self.host().call(call).await,
            Some(dialog) if self.board.is_active() => dialog.call(call).await,
            // The host runs for other sessions.
            Some(_) => inactive_result(call),
        }
    }

    /// Pins the current tools, for one turn of a model. In a session with shared servers it remains usable
    /// after the end of the session, so drop it then.
    ///
    /// # Panics
    ///
    /// When called outside of a Tokio runtime.
    pub fn pin(&self) -> PinnedGeneration {
        match self.dialog() {
            Some(dialog) => dialog.pin(),
            None => self.host().pin(),
        }
    }

    /// Ends the servers with their process groups, and returns when none is left. Servers that other sessions
    /// use continue to run. May be called repeatedly and concurrently. Cancel-safe: the shutdown continues
    /// while this value exists.
    pub async fn close(&self) {
        self.board.replace_phase(SessionPhase::Closed);
        self.set.close(&self.membership).await;
    }

    /// Marks the servers as idle. [`SessionServers::stop_if_idle`] stops them.
    pub(crate) fn set_idle(&self) {
        self.board.replace_phase(SessionPhase::Idle);
    }

    /// Stops the servers, unless the session uses them again.
    pub(crate) async fn stop_if_idle(&self) {
        let _transition = self.transition.lock().await;
        if self.board.phase() == SessionPhase::Idle {
            self.set.stop(&self.membership).await;
        }
    }

    /// Starts servers that are idle, or that start with the first use. Returns as [`SessionServers::connect`] does. Use
    /// [`SessionRegistry::acquire`](crate::SessionRegistry::acquire) for a session of a registry. Cancel-safe: the next
    /// call continues.
    ///
    /// # Panics
    ///
    /// When polled outside of a Tokio runtime.
    pub async fn wake(&self) {
        let _transition = self.transition.lock().await;
        if matches!(self.board.phase(), SessionPhase::Idle | SessionPhase::NotStarted) {
            self.start(&RequiredServers::None).await;
        }
    }

    /// Starts the servers. Returns when they are settled, or after the total timeout.
    async fn start(&self, required: &RequiredServers) {
        if self.is_empty() {
            return;
        }
        let mut changes = self.board.changes(self.host().subscribe());
        let settled = async {
            self.set.start(&self.membership).await;
            let previous = self.board.replace_phase(SessionPhase::Active);
            if previous == SessionPhase::Closed {
                return self.set.stop(&self.membership).await;
            }
            while !self.board.is_settled(&changes.snapshot(), required) {
                // The end of the host also ends the wait.
                if !changes.changed().await {
                    return;
                }
            }
        };
        // After a timeout, the current state counts.
        let _ = tokio::time::timeout(self.total_timeout, settled).await;
    }
}

impl Drop for SessionServers {
    fn drop(&mut self) {
        self.board.replace_phase(SessionPhase::Closed);
        self.set.leave(&self.membership);
        // The servers of a set that is not shared end with it.
        if self.set.is_shared()
            && self.membership.uses_servers()
            && let Ok(runtime) = Handle::try_current()
        {
            // The task outlives this value, so it takes the membership over.
            let membership = std::mem::replace(&mut self.membership, Membership::new());
            let set = Arc::clone(&self.set);
            runtime.spawn(async move { set.stop(&membership).await });
        }
    }
}

/// Takes the handlers of a session that shares its host. The host has several callers, so the handlers belong to the
/// session's caller, not to the host. The host still declares to servers what they support.
fn take_caller(host: &mut HostOptions) -> Caller {
    let handlers = std::mem::take(&mut host.server_requests.handlers);
    let declared = ClientCapabilities::from_handlers(&handlers);
    host.server_requests.declared_capabilities.get_or_insert(declared);
    Caller::new(CallerId::unique(), handlers)
}

/// The result of a call in a session that is closed, or that has stopped its servers.
fn inactive_result(call: ToolCall) -> CallResult {
    let error = CallFailure::new(ErrorKind::Connection, "the session does not use its servers now");
    CallResult::failure(error, CallMetadata::new(call.name()))
}

impl PendingSession {
    /// Returns a stream of the current states and their changes.
    pub fn status_stream(&self) -> StatusStream {
        self.session.status_stream()
    }

    /// Starts and connects the servers; see [`SessionServers::connect`].
    pub async fn connect(self) -> Result<SessionServers, SessionSetupError> {
        let PendingSession { session, required, max_servers } = self;
        let of_client = |server: &&ServerDescription| server.source == ServerSource::Client;
        let requested = session.board.descriptions.iter().filter(of_client).count();
        if requested > max_servers {
            return Err(SessionSetupError::TooManyServers { requested, limit: max_servers });
        }
        if session.board.phase() == SessionPhase::NotStarted {
            return Ok(session);
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

impl SessionServers {
    /// Returns the errors of required servers that are not connected.
    ///
    /// If a required server has failed, those that are still connecting are not reported.
    fn missing_required(&self, required: &RequiredServers) -> Vec<ServerStartError> {
        let mut statuses = self.statuses();
        statuses.retain(|status| status.is_required_by(required));
        let has_failed = statuses.iter().any(|status| matches!(status.state, ConnectionState::Failed(_)));
        let error = |SessionServerStatus { name, state, .. }: SessionServerStatus| match state {
            // The user can log in only if there is a session.
            ConnectionState::Connected | ConnectionState::LoginRequired(_) => None,
            ConnectionState::Failed(error) => Some(error),
            ConnectionState::Connecting
            | ConnectionState::NotStarted
            | ConnectionState::Idle
            | ConnectionState::Closed => {
                let server = self.board.descriptions.iter().find(|server| server.name == name)?;
                (!has_failed).then(|| start_error::startup_timeout(server, self.total_timeout))
            }
        };
        statuses.into_iter().filter_map(error).collect()
    }
}
