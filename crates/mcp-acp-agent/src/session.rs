//! The MCP servers of one session: started beside each other, its own, and gone with it.
//!
//! Each session has a host of its own, so that no tool, process or name of one is seen by another. Whatever drops this,
//! or the making of it, ends what was begun: that is how a cancelled request leaves nothing.

use std::sync::Arc;
use std::time::Duration;

use mcp_acp::{RequestWarning, ServerStartError, ValidatedRequest};
use mcp_host::{Host, PinnedGeneration, ToolCall};
use mcp_model::{CallResult, Limits};
use mcp_registry::{Catalog, ExposedTool};
use serde_json::{Map, Value};

use crate::roots::SessionRoots;
use crate::servers::{OverAcpSupport, SessionServers, session_servers};
use crate::start_error::{self, RecordedConnectError};
use crate::status::{ConnectErrors, StatusBoard, response_meta};
use crate::{
    ConnectOptions, ConnectionState, FoldersAsRoots, RequiredServers, ServerStatus, SessionSetupError,
    StatusStream,
};

/// The servers of a session.
///
/// All methods may be called at once from many tasks. Dropping it ends everything that it runs, process groups
/// included, without waiting for that; [`SessionMcp::close`] waits.
pub struct SessionMcp {
    host: Host,
    board: Arc<StatusBoard>,
    reports: Vec<RequestWarning>,
}

/// Servers that are on their way. Dropping it ends them.
pub struct PendingSession {
    session: SessionMcp,
    wanted: mcp_host::DesiredServers,
    required: RequiredServers,
    whole: Duration,
    most_servers: usize,
}

impl SessionMcp {
    /// Connects the servers of a request beside each other, and returns when each is there or has failed, or their time
    /// is over (ACPX-05, ACPX-13). A server that stalls costs its own limit.
    ///
    /// Fails where more servers are asked for than there may be ([`ConnectOptions::most_servers`]), before any is started,
    /// and as soon as a server has failed that is required; what was started is closed before that is told. Dropping
    /// the future ends what was begun.
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

    /// The same in two steps, for whoever wants to show how it goes ([`PendingSession::status_stream`]). Nothing is started
    /// before [`PendingSession::connect`].
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
        if host.handlers.roots.is_none() && folders == FoldersAsRoots::Offered {
            host.handlers.roots = Some(Arc::new(SessionRoots::of(&validated)));
        }
        let (keeps, others) = (Arc::clone(&seen), host.on_connect_failure.take());
        host.on_connect_failure = Some(Arc::new(move |it| {
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

    /// Every server as it is now, in the order of the session's list.
    pub fn statuses(&self) -> Vec<ServerStatus> {
        self.board.statuses(&self.host.snapshot())
    }

    /// Every server as it is, and as it comes to be.
    pub fn status_stream(&self) -> StatusStream {
        StatusStream::new(Arc::clone(&self.board), self.host.subscribe())
    }

    /// What was to be known about the request, with what became of entries that were dropped.
    pub fn warnings(&self) -> &[RequestWarning] {
        &self.reports
    }

    /// What the response's `_meta` may say of it: `{"mcpServers": [status…], "mcpReports": [report…]}`.
    pub fn to_meta(&self) -> Map<String, Value> {
        response_meta(&self.statuses(), &self.reports)
    }

    /// The tools that a model may be shown now, in the order of the session's list, under names that every provider
    /// takes.
    pub fn tools(&self) -> Vec<ExposedTool> {
        self.catalog().tools().to_vec()
    }

    /// The same with prompts and resources, as they are now.
    pub fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.host.snapshot().catalog)
    }

    /// Calls a tool. Whatever goes wrong is in the result. Dropping the future cancels the call at its server.
    pub async fn call(&self, call: ToolCall) -> CallResult {
        self.host.call(call).await
    }

    /// Keeps the tools as they are, for one turn of a model.
    pub fn pin(&self) -> PinnedGeneration {
        self.host.pin()
    }

    /// Ends the session's servers with their process groups, and returns when nothing is left. May be called again, and
    /// by many at once. Cancel-safe: what was begun goes on as long as this value is there.
    pub async fn close(&self) {
        self.host.shutdown().await;
    }
}

impl PendingSession {
    /// Every server as it is, and as it comes to be.
    pub fn changes(&self) -> StatusStream {
        self.session.status_stream()
    }

    /// Connects them; see [`SessionMcp::connect`].
    pub async fn connect(self) -> Result<SessionMcp, SessionSetupError> {
        let PendingSession { session, wanted, required, whole, most_servers } = self;
        let asked = session.board.described.len();
        if asked > most_servers {
            return Err(SessionSetupError::TooManyServers { asked, most: most_servers });
        }
        let mut published = session.host.subscribe();
        let settling = async {
            session.host.apply(wanted).await;
            // Fails when the host is gone, which is an end of waiting as well.
            let _ = published.wait_for(|it| session.board.is_settled(it, &required)).await;
        };
        // Whether all are settled or the time is over: what holds then is what counts.
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
    /// The servers that are required and not there.
    ///
    /// One that is still on its way when another has failed is not among them, unless its time is over.
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
