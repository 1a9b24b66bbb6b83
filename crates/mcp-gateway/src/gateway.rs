//! The gateway's state, shared by its stdio and HTTP transports.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use governor::clock::DefaultClock;
use mcp_host_model::{Era, RawJson, RpcError, ServerId, code};
use mcp_host_runtime::{Host, HostSnapshot, ServerState, ServerStatus};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::access::principal::Principal;
use crate::access::scope::Scope;
use crate::audit::record::AuditLog;
use crate::limits::bounds::Bounds;
use crate::limits::byte_budget::{Account, BudgetExceeded, ByteBudget};
use crate::limits::rate_limits::{RateLimiters, RateLimits};
use crate::lists::cache::ListingCache;
use crate::lists::gateway_resources::GatewayResource;
use crate::lists::listing::{Audience, ListFilter, Listing};
use crate::lists::resolution::Resolution;
use crate::metrics::call_counters::CallSeries;
use crate::metrics::counters::Counters;
use crate::protocol::frame::ClientRequest;
use crate::protocol::message_writer;
use crate::protocol::request_state::StateSealer;
use crate::protocol::result_body::HandlerResult;
use crate::protocol::task_ids::{TaskIdSealer, TaskKey};
use crate::session::client_dialog::ClientDialog;
use crate::session::client_session::{ClientSession, Handshake};
use crate::session::dialog_table::DialogTable;
use crate::session::features::{ClientFeatures, FeaturesCache};
use crate::session::known_lists::KnownLists;
use crate::session::pending_input::PendingInputs;
use crate::session::resource_origins::ResourceOrigins;
use crate::session::session_table::{Insertion, SessionTable};
use crate::session::usage::CapacityError;

/// How long requests wait for the first of the servers that start together with the gateway.
const STARTUP_WAIT: Duration = Duration::from_secs(15);

/// How long requests wait for the other servers once one is ready.
const FURTHER_SERVERS_WAIT: Duration = Duration::from_secs(2);

/// Options of a gateway.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct GatewayOptions {
    /// The scope of a client without restrictions.
    pub scope: Scope,
    /// The name in `serverInfo`.
    pub name: String,
    /// The version in `serverInfo`.
    pub version: String,
    /// The resources about the gateway itself that are listed.
    pub gateway_resources: Vec<GatewayResource>,
    /// Limits on clients.
    pub bounds: Bounds,
    /// Rate limits of calls.
    pub rates: RateLimits,
    /// The key that seals the ids of tasks. With a random key, which is the default, ids are void after a restart.
    pub task_key: TaskKey,
    /// The log that records each call, without its content; `None` for no audit log.
    pub audit: Option<AuditLog>,
}

impl Default for GatewayOptions {
    /// The whole catalog under the name `mcp-host`, without resources about the gateway.
    fn default() -> GatewayOptions {
        GatewayOptions {
            scope: Scope::default(),
            name: "mcp-host".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            gateway_resources: Vec::new(),
            bounds: Bounds::default(),
            rates: RateLimits::default(),
            task_key: TaskKey::random(),
            audit: None,
        }
    }
}

/// Serves the catalog of a host. Cheap to clone. [`serve_stdio`](crate::stdio::serve_stdio) and
/// [`HttpServer`](crate::http::HttpServer) connect clients to it.
#[derive(Clone)]
pub struct Gateway(Arc<GatewayInner>);

/// The number of clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ClientCounts {
    /// The number of sessions.
    pub sessions: usize,
    /// The number of dialogs of clients without sessions.
    pub dialogs: usize,
}

/// The state that all transports share.
pub(crate) struct GatewayInner {
    pub(crate) host: Arc<Host>,
    pub(crate) options: GatewayOptions,
    pub(crate) sessions: SessionTable,
    pub(crate) dialogs: DialogTable,
    pub(crate) pending_inputs: PendingInputs,
    pub(crate) state_sealer: StateSealer,
    pub(crate) task_id_sealer: TaskIdSealer,
    /// The servers that sent the URIs that clients know.
    pub(crate) resource_origins: ResourceOrigins,
    /// Counters since the start.
    pub(crate) counters: Arc<Counters>,
    /// Counters of calls since the start, by tool and by client.
    pub(crate) call_series: CallSeries,
    /// Limits the rates of calls.
    pub(crate) rate_limiters: RateLimiters,
    /// Bounds the bytes of messages and responses in memory.
    pub(crate) budget: Arc<ByteBudget>,
    /// The parsed capabilities of clients without sessions.
    pub(crate) features_cache: FeaturesCache,
    listings: ListingCache,
    /// Set once the wait for starting servers is over.
    started: OnceCell<()>,
    /// The end of the wait for starting servers. It is set when the gateway is created, not by the first request
    /// that waits, because that request may be dropped.
    startup_deadline: Instant,
}

impl Gateway {
    /// A gateway to the servers of `host`.
    pub fn new(host: Arc<Host>, options: GatewayOptions) -> Gateway {
        let sessions = SessionTable::new(&options.bounds);
        let dialogs = DialogTable::new(&options.bounds);
        let pending_inputs = PendingInputs::new(&options.bounds);
        let task_id_sealer = TaskIdSealer::new(options.task_key.clone());
        let budget = ByteBudget::new(options.bounds.held_bytes);
        let rate_limiters = RateLimiters::new(options.rates, DefaultClock::default());
        Gateway(Arc::new(GatewayInner {
            host,
            options,
            sessions,
            dialogs,
            pending_inputs,
            state_sealer: StateSealer::new(),
            task_id_sealer,
            resource_origins: ResourceOrigins::default(),
            counters: Arc::new(Counters::new()),
            call_series: CallSeries::new(),
            rate_limiters,
            budget,
            features_cache: FeaturesCache::default(),
            listings: ListingCache::default(),
            started: OnceCell::new(),
            startup_deadline: Instant::now() + STARTUP_WAIT,
        }))
    }

    /// The number of clients that are served now.
    pub fn client_counts(&self) -> ClientCounts {
        ClientCounts { sessions: self.0.sessions.len(), dialogs: self.0.dialogs.len() }
    }

    pub(crate) fn inner(&self) -> &Arc<GatewayInner> {
        &self.0
    }
}

impl GatewayInner {
    /// The latest snapshot.
    pub(crate) fn snapshot(&self) -> Arc<HostSnapshot> {
        self.host.snapshot()
    }

    /// The lists of a scope and an audience in the latest snapshot.
    pub(crate) fn listing(&self, scope: &Arc<Scope>, audience: Audience) -> Arc<Listing> {
        self.listing_of(&self.snapshot(), scope, audience)
    }

    /// Resolves what a request refers to, for a client with this scope, in the latest snapshot.
    pub(crate) fn resolve(
        &self,
        scope: &Arc<Scope>,
        audience: Audience,
        request: &ClientRequest,
    ) -> Resolution {
        let snapshot = self.snapshot();
        let listing = self.listing_of(&snapshot, scope, audience);
        Resolution::new(snapshot, listing, request)
    }

    /// The lists of a scope and an audience in a snapshot.
    pub(crate) fn listing_of(
        &self,
        snapshot: &HostSnapshot,
        scope: &Arc<Scope>,
        audience: Audience,
    ) -> Arc<Listing> {
        let filter = ListFilter { scope, audience, budget: self.host.tool_budget() };
        self.listings.listing(snapshot, filter, &self.options.gateway_resources)
    }

    /// The era of the shared connection to a server; `None` without one.
    pub(crate) fn era(&self, server: &ServerId) -> Option<Era> {
        self.snapshot().server(server)?.era
    }

    /// Waits for the servers that start together with the gateway, for a limited time. So the first list of a client
    /// has their items, and a server that hangs does not block it.
    pub(crate) async fn wait_for_startup(&self) {
        let further_servers_wait = async {
            let mut snapshots = self.host.subscribe();
            let is_ready = |status: &ServerStatus| status.state == ServerState::Ready;
            let _ = snapshots.wait_for(|snapshot| snapshot.servers.iter().any(is_ready)).await;
            tokio::time::sleep(FURTHER_SERVERS_WAIT).await;
        };
        let wait = || async move {
            // A server that starts later appears in a later generation.
            tokio::select! {
                _ = self.host.wait_until_ready() => {}
                () = further_servers_wait => {}
                () = tokio::time::sleep_until(self.startup_deadline) => {}
            }
        };
        self.started.get_or_init(wait).await;
    }

    /// Writes the response to a request, and counts its bytes for the client's account. A response that does not fit
    /// into the budget is replaced by an error.
    pub(crate) fn track_response(&self, account: &Account, id: &RawJson, result: &HandlerResult) -> Bytes {
        let response = self.budget.track(account, message_writer::write_outcome(id, result));
        response.unwrap_or_else(|BudgetExceeded| {
            let message = format!(
                "the request was executed, but its response was dropped: the unread responses of this client have \
                 reached the limit of {} bytes. Read the responses of fewer requests at once",
                self.options.bounds.held_bytes
            );
            message_writer::write_error(Some(id), &RpcError::new(code::SERVER_ERROR, message))
        })
    }

    /// Starts a dialog of a client with these capabilities.
    pub(crate) fn new_dialog(&self, features: &ClientFeatures) -> Arc<ClientDialog> {
        ClientDialog::start(&self.host, features, self.options.bounds.server_request_timeout)
    }

    /// Creates a session with a dialog of its own.
    pub(crate) fn new_session(
        &self,
        principal: Principal,
        scope: Arc<Scope>,
        handshake: Handshake,
    ) -> Arc<ClientSession> {
        let known_lists = KnownLists::of(&self.listing(&scope, handshake.features.audience));
        let dialog = self.new_dialog(&handshake.features);
        Arc::new(ClientSession::new(principal, scope, handshake, dialog, known_lists))
    }

    /// Creates an HTTP session, and ends the one that was evicted for it.
    pub(crate) fn start_session(
        &self,
        principal: Principal,
        scope: Arc<Scope>,
        handshake: Handshake,
    ) -> Result<Arc<ClientSession>, CapacityError> {
        let session = self.new_session(principal, scope, handshake);
        let Insertion { session, evicted } = self.sessions.add(session, Instant::now())?;
        if let Some(evicted) = evicted {
            self.end_session(&evicted);
        }
        Ok(session)
    }

    /// Ends a session that was removed. Sets the log level of the servers to the one that the other sessions need.
    pub(crate) fn end_session(&self, session: &ClientSession) {
        session.end();
        let (Some(_), Some(lowest)) = (session.log_level(), self.sessions.lowest_log_level()) else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let host = Arc::clone(&self.host);
        runtime.spawn(async move { host.set_log_level(lowest).await });
    }

    /// Ends the sessions, dialogs and pending calls of these clients. Returns the number of sessions.
    pub(crate) fn end_clients(&self, principals: &[Principal]) -> usize {
        let sessions = self.sessions.take_clients(principals);
        sessions.iter().for_each(|session| self.end_session(session));
        self.dialogs.drop_clients(principals);
        principals.iter().for_each(|principal| self.pending_inputs.drop_client(principal));
        sessions.len()
    }

    /// Ends sessions, dialogs and pending calls that were unused for too long.
    pub(crate) fn remove_expired(&self, now: Instant) {
        let idle = self.options.bounds.idle_timeout;
        for session in self.sessions.take_unused(now, idle) {
            tracing::info!(dialog = %session.dialog.id(), "ending a session that was not used for {idle:?}");
            self.end_session(&session);
        }
        self.pending_inputs.drop_expired(now);
        self.dialogs.drop_unused(now, idle);
    }
}
