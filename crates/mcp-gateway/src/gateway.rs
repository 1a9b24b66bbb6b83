//! The gateway's state, shared by its stdio and HTTP transports.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use governor::clock::DefaultClock;
use mcp_host_model::{Era, RawJson, RpcError, ServerId, Sharing, code};
use mcp_host_runtime::{Host, HostSnapshot};
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout_at};

use crate::access::principal::Principal;
use crate::access::scope::Scope;
use crate::audit::record::AuditLog;
use crate::limits::bounds::Bounds;
use crate::limits::byte_budget::{Account, BudgetExceeded, ByteBudget};
use crate::limits::rate_limits::{RateLimiters, RateLimits};
use crate::lists::cache::ListingCache;
use crate::lists::gateway_resources::GatewayResource;
use crate::lists::listing::{Audience, Listing};
use crate::lists::resolution::Resolution;
use crate::metrics::call_counters::CallSeries;
use crate::metrics::counters::Counters;
use crate::protocol::frame::Request;
use crate::protocol::message_writer;
use crate::protocol::request_state::StateSealer;
use crate::protocol::result_body::HandledResult;
use crate::protocol::task_ids::{TaskIds, TaskKey};
use crate::session::client_dialog::ClientDialog;
use crate::session::dialogs::Dialogs;
use crate::session::features::{ClientFeatures, FeaturesCache};
use crate::session::known_lists::KnownLists;
use crate::session::pending_input::PendingInputs;
use crate::session::resource_origins::ResourceOrigins;
use crate::session::session_table::{Insertion, SessionTable};
use crate::session::state::{ClientSession, Handshake};
use crate::session::usage::CapacityError;

/// How long requests wait for servers that start together with the gateway.
const STARTUP_WAIT: Duration = Duration::from_secs(15);

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
    /// Resources about the gateway itself.
    pub gateway_resources: Vec<GatewayResource>,
    /// Limits on clients.
    pub bounds: Bounds,
    /// Rate limits of calls.
    pub rates: RateLimits,
    /// Seals the ids of tasks. With a random key, which is the default, ids are void after a restart.
    pub task_key: TaskKey,
    /// Where each call is recorded, without its content; `None` for no audit log.
    pub audit: Option<AuditLog>,
}

impl Default for GatewayOptions {
    /// The whole catalog, as `mcp-host`, without resources of its own.
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
    /// Sessions.
    pub sessions: usize,
    /// Dialogs of clients without sessions.
    pub dialogs: usize,
}

/// The state that all transports share.
pub(crate) struct GatewayInner {
    pub(crate) host: Arc<Host>,
    pub(crate) options: GatewayOptions,
    pub(crate) sessions: SessionTable,
    pub(crate) dialogs: Dialogs,
    pub(crate) pending_inputs: PendingInputs,
    pub(crate) sealer: StateSealer,
    pub(crate) task_ids: TaskIds,
    /// Which servers sent the URIs that clients know.
    pub(crate) origins: ResourceOrigins,
    /// Counters since the start.
    pub(crate) counters: Arc<Counters>,
    /// Counters of calls since the start, by tool and by client.
    pub(crate) calls: CallSeries,
    /// Limits the rates of calls.
    pub(crate) rates: RateLimiters,
    /// Bounds the bytes of messages and responses in memory.
    pub(crate) budget: Arc<ByteBudget>,
    /// The features of clients without sessions.
    pub(crate) features: FeaturesCache,
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
        let dialogs = Dialogs::new(&options.bounds);
        let pending_inputs = PendingInputs::new(&options.bounds);
        let task_ids = TaskIds::new(options.task_key.clone());
        let budget = ByteBudget::new(options.bounds.held_bytes);
        let rates = RateLimiters::new(options.rates, DefaultClock::default());
        Gateway(Arc::new(GatewayInner {
            host,
            options,
            sessions,
            dialogs,
            pending_inputs,
            sealer: StateSealer::new(),
            task_ids,
            origins: ResourceOrigins::default(),
            counters: Arc::new(Counters::new()),
            calls: CallSeries::new(),
            rates,
            budget,
            features: FeaturesCache::default(),
            listings: ListingCache::default(),
            started: OnceCell::new(),
            startup_deadline: Instant::now() + STARTUP_WAIT,
        }))
    }

    /// How many clients it serves now.
    pub fn clients(&self) -> ClientCounts {
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

    /// The lists that `scope` shows to an audience now.
    pub(crate) fn listing(&self, scope: &Arc<Scope>, audience: Audience) -> Arc<Listing> {
        self.listing_of(&self.snapshot(), scope, audience)
    }

    /// What a request refers to now, for a client with this scope.
    pub(crate) fn resolve(&self, scope: &Arc<Scope>, audience: Audience, request: &Request) -> Resolution {
        let snapshot = self.snapshot();
        let listing = self.listing_of(&snapshot, scope, audience);
        Resolution::new(snapshot, listing, request)
    }

    fn listing_of(&self, snapshot: &HostSnapshot, scope: &Arc<Scope>, audience: Audience) -> Arc<Listing> {
        let is_shared = |server: &ServerId| self.is_shared(server);
        let shown = (&self.options.gateway_resources[..], self.host.tool_budget());
        self.listings.listing(snapshot, (scope, audience), shown, is_shared)
    }

    /// Whether all clients share one instance of the server.
    pub(crate) fn is_shared(&self, server: &ServerId) -> bool {
        // A removed server disappears with the next generation.
        self.host.details(server).is_none_or(|details| details.sharing == Sharing::Shared)
    }

    /// The era of the shared connection to a server; `None` without one.
    pub(crate) fn era(&self, server: &ServerId) -> Option<Era> {
        self.snapshot().servers.iter().find(|status| status.id == server.as_str())?.era
    }

    /// Waits for the servers that start together with the gateway, for a limited time. So a client that lists
    /// immediately sees their items, and a server that hangs does not block it.
    pub(crate) async fn wait_for_startup(&self) {
        let wait = || async {
            // A server that starts later appears in a later generation.
            let _ = timeout_at(self.startup_deadline, self.host.ready()).await;
        };
        self.started.get_or_init(wait).await;
    }

    /// The response to a request, counted for the client's account. A response that does not fit becomes an error.
    pub(crate) fn tracked_response(&self, account: &Account, id: &RawJson, result: &HandledResult) -> Bytes {
        let response = self.budget.track(account, message_writer::outcome(id, result));
        response.unwrap_or_else(|BudgetExceeded| {
            let message = format!(
                "the request was executed, but its response was dropped: the unread responses of this client have \
                 reached the limit of {} bytes. Read the responses of fewer requests at once",
                self.options.bounds.held_bytes
            );
            message_writer::error(Some(id), &RpcError::new(code::SERVER_ERROR, message))
        })
    }

    /// A dialog of a client with these capabilities.
    pub(crate) fn new_dialog(&self, features: &ClientFeatures) -> Arc<ClientDialog> {
        ClientDialog::start(&self.host, features, self.options.bounds.server_request_timeout)
    }

    /// A session with a dialog of its own.
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

    /// Starts a session over HTTP.
    pub(crate) fn start_session(
        &self,
        principal: Principal,
        scope: Arc<Scope>,
        handshake: Handshake,
    ) -> Result<Arc<ClientSession>, CapacityError> {
        let session = self.new_session(principal, scope, handshake);
        let Insertion { session, evicted } = self.sessions.add(session, Instant::now())?;
        if let Some(evicted) = evicted {
            self.end(&evicted);
        }
        Ok(session)
    }

    /// Ends a session that was removed. Sets the log level of the servers to the one that the other sessions need.
    pub(crate) fn end(&self, session: &ClientSession) {
        session.end();
        let (Some(_), Some(lowest)) = (session.log_level(), self.sessions.lowest_level()) else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let host = Arc::clone(&self.host);
        runtime.spawn(async move { host.set_log_level(lowest).await });
    }

    /// Ends the sessions, dialogs and pending calls of these clients. Returns the number of sessions.
    pub(crate) fn end_clients(&self, principals: &[Principal]) -> usize {
        let is_ended = |principal: &Principal| principals.contains(principal);
        let sessions = self.sessions.take_of(is_ended);
        sessions.iter().for_each(|session| self.end(session));
        self.dialogs.drop_of(is_ended);
        principals.iter().for_each(|principal| self.pending_inputs.drop_client(principal));
        sessions.len()
    }

    /// Ends sessions, dialogs and pending calls that were unused for too long.
    pub(crate) fn remove_expired(&self, now: Instant) {
        let idle = self.options.bounds.idle_timeout;
        for session in self.sessions.take_unused(now, idle) {
            tracing::info!(dialog = %session.dialog.id(), "ending a session that was not used for {idle:?}");
            self.end(&session);
        }
        self.pending_inputs.drop_expired(now);
        self.dialogs.drop_unused(now, idle);
    }
}
