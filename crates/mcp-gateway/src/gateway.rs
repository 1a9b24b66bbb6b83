//! The catalog of a host as one MCP server, without its wires.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mcp_host::{Dialog, DialogId, Host, HostSnapshot};
use mcp_model::{Era, RawJson, ServerId, Sharing};
use tokio::time::{Instant, timeout_at};

use crate::access::principal::Principal;
use crate::access::scope::Scope;
use crate::access::secret_id::secret_id;
use crate::limits::bounds::Bounds;
use crate::limits::byte_budget::Budget;
use crate::limits::counters::Counts;
use crate::lists::cache::Shelf;
use crate::lists::gateway_resources::OwnResource;
use crate::lists::listing::Listing;
use crate::methods::initialize::Agreed;
use crate::protocol::request_state::Seal;
use crate::session::dialogs::Dialogs;
use crate::session::known_lists::Told;
use crate::session::pending_input::Parked;
use crate::session::registry::{Added, Full, Sessions};
use crate::session::state::{Beginning, Session};

/// How long servers that start with the gateway are waited for before it answers without them.
const SETTLING: Duration = Duration::from_secs(15);

/// How a gateway is to be.
#[derive(Debug, Clone)]
pub struct GatewayOptions {
    /// What everybody sees at most.
    pub scope: Scope,
    /// Who it says it is.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it tells of itself as resources.
    pub own_resources: Vec<OwnResource>,
    /// How much it takes on.
    pub bounds: Bounds,
}

impl Default for GatewayOptions {
    /// Everything, as `mcp-host`, nothing of itself.
    fn default() -> GatewayOptions {
        GatewayOptions {
            scope: Scope::default(),
            name: "mcp-host".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            own_resources: Vec::new(),
            bounds: Bounds::default(),
        }
    }
}

/// The catalog of a host as one MCP server. Cheap to clone; [`serve_stdio`](crate::stdio::serve_stdio) and
/// [`HttpServer`](crate::http::HttpServer) put it on a wire.
#[derive(Clone)]
pub struct Gateway(Arc<Inner>);

/// What all wires share.
pub(crate) struct Inner {
    pub(crate) host: Arc<Host>,
    pub(crate) options: GatewayOptions,
    pub(crate) sessions: Sessions,
    pub(crate) dialogs: Dialogs,
    pub(crate) parked: Parked,
    pub(crate) seal: Seal,
    /// What has happened so far.
    pub(crate) counts: Arc<Counts>,
    /// What is held of messages and answers.
    pub(crate) budget: Arc<Budget>,
    shelf: Shelf,
    /// Set once all servers have had their time to start.
    settled: AtomicBool,
    /// When they have had it: counted from the gateway's beginning, for a client that is waited with may not wait.
    settled_by: Instant,
}

impl Gateway {
    /// A gateway to what `host` runs, whatever that comes to be.
    pub fn new(host: Arc<Host>, options: GatewayOptions) -> Gateway {
        let sessions = Sessions::new(&options.bounds);
        let dialogs = Dialogs::new(&options.bounds);
        let parked = Parked::new(&options.bounds);
        let budget = Budget::new(options.bounds.held_bytes);
        Gateway(Arc::new(Inner {
            host,
            options,
            sessions,
            dialogs,
            parked,
            seal: Seal::new(),
            counts: Arc::default(),
            budget,
            shelf: Shelf::default(),
            settled: AtomicBool::new(false),
            settled_by: Instant::now() + SETTLING,
        }))
    }

    /// How many sessions there are, and how many dialogs of the stateless era.
    pub fn clients(&self) -> (usize, usize) {
        (self.0.sessions.len(), self.0.dialogs.len())
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.0
    }
}

impl Inner {
    /// The latest generation.
    pub(crate) fn published(&self) -> Arc<HostSnapshot> {
        self.host.snapshot()
    }

    /// The lists that `scope` sees now.
    pub(crate) fn listing(&self, scope: &Arc<Scope>) -> Arc<Listing> {
        let published = self.published();
        // Of a server that is gone meanwhile the next generation shows nothing.
        let is_shared = |it: &ServerId| self.is_shared(it);
        self.shelf.listing(&published, scope, &self.options.own_resources, is_shared)
    }

    /// May everybody use one instance of the server?
    pub(crate) fn is_shared(&self, server: &ServerId) -> bool {
        self.host.details(server).is_none_or(|it| it.sharing == Sharing::Shared)
    }

    /// The era in which a server is spoken with; `None` where it has no connection for all.
    pub(crate) fn era(&self, server: &ServerId) -> Option<Era> {
        self.published().servers.iter().find(|it| it.id == server.as_str())?.era
    }

    /// Waits for servers that are just being started, once and not for long: a client who lists at once should see them,
    /// and one of them that hangs should not be in his way.
    pub(crate) async fn settle(&self) {
        if !self.settled.load(Ordering::Relaxed) {
            // Whoever is not there by then comes with the next generation.
            let _ = timeout_at(self.settled_by, self.host.ready()).await;
            self.settled.store(true, Ordering::Relaxed);
        }
    }

    /// A session that begins now.
    pub(crate) fn begin(
        &self,
        principal: Principal,
        scope: Arc<Scope>,
        agreed: Agreed,
    ) -> Result<Arc<Session>, Full> {
        let id = secret_id();
        // The dialog has a name of its own: it may stand in a log, and the session's id must not.
        let dialog = Arc::new(self.host.dialog(DialogId::new(secret_id())));
        let told = Told::of(&self.listing(&scope));
        let Agreed { version, capabilities } = agreed;
        let beginning = Beginning { id, principal, scope, version, capabilities, dialog, told };
        let now = Instant::now();
        let Added { session, gone } = self.sessions.add(Session::new(beginning, now), now)?;
        if let Some(gone) = gone {
            self.end(&gone);
        }
        Ok(session)
    }

    /// Ends a session that was taken out. What it wanted to hear nobody needs to say any more.
    pub(crate) fn end(&self, session: &Session) {
        session.end();
        let (Some(_), Some(lowest)) = (session.log_level(), self.sessions.lowest_level()) else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let host = Arc::clone(&self.host);
        runtime.spawn(async move { host.set_log_level(lowest).await });
    }

    /// The one session of a pipe.
    pub(crate) fn session_of(
        &self,
        principal: Principal,
        dialog: Arc<Dialog>,
        scope: Arc<Scope>,
        agreed: Agreed,
    ) -> Arc<Session> {
        let told = Told::of(&self.listing(&scope));
        let Agreed { version, capabilities } = agreed;
        let id = secret_id();
        let beginning = Beginning { id, principal, scope, version, capabilities, dialog, told };
        Arc::new(Session::new(beginning, Instant::now()))
    }

    /// Ends what nobody has used for as long as the bounds allow.
    pub(crate) fn sweep(&self, now: Instant) {
        let idle = self.options.bounds.idle;
        for session in self.sessions.take_unused(now, idle) {
            tracing::info!(dialog = %session.dialog.id(), "a session ends that nobody uses");
            self.end(&session);
        }
        self.parked.drop_expired(now);
        self.dialogs.drop_unused(now, idle);
    }

    /// Who it says it is, as JSON.
    pub(crate) fn introduction(&self) -> RawJson {
        let GatewayOptions { name, version, .. } = &self.options;
        RawJson::from_value(&serde_json::json!({ "name": name, "version": version }))
            .expect("its keys are strings")
    }
}
