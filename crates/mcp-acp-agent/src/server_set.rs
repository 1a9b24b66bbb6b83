//! A set of servers: of one session, or of all sessions that share it.
//!
//! The servers run while a session uses them. Every session of a shared set is a dialog with a caller of its own: a
//! server request is handled by the session whose call it belongs to, and refused if that is unknown.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use mcp_config::ResolvedServer;
use mcp_host::{DesiredServers, Dialer, Host, HostOptions, HostSnapshot};
use mcp_model::ServerSpec;

use crate::login::LoginStates;
#[cfg(feature = "oauth")]
use crate::login::oauth::BackgroundLogins;
use crate::start_error::ConnectErrors;

/// Servers that sessions share. Clones share them, too.
///
/// Sessions use the same servers if their lists are equal: names, order, commands and URLs, variables, headers, folders
/// and limits. The host options of the first such session apply. These are not separated any more: what a server
/// remembers of its callers, its end when it fails, its status, and the logins to it. Separate are the catalogs of
/// different lists, the leases of servers that are not shared by their configuration, and server requests.
#[derive(Clone, Default)]
pub struct SharedServers(Arc<Mutex<Vec<Weak<ServerSet>>>>);

/// A set of servers.
pub(crate) struct ServerSet {
    /// Started when it is first needed: a session without servers has none.
    host: OnceLock<Host>,
    host_options: HostOptions,
    dialer: Dialer,
    desired: DesiredServers,
    pub(crate) connect_errors: Arc<ConnectErrors>,
    pub(crate) login_states: Arc<LoginStates>,
    #[cfg(feature = "oauth")]
    logins: Option<Arc<BackgroundLogins>>,
    /// The number of sessions that use the servers. Locked while they are started or stopped.
    users: tokio::sync::Mutex<usize>,
    shared: Option<SharedServers>,
}

/// The parts of a set.
pub(crate) struct ServerSetParts {
    pub(crate) host_options: HostOptions,
    pub(crate) dialer: Dialer,
    pub(crate) desired: DesiredServers,
    pub(crate) connect_errors: Arc<ConnectErrors>,
    pub(crate) login_states: Arc<LoginStates>,
    #[cfg(feature = "oauth")]
    pub(crate) logins: Option<Arc<BackgroundLogins>>,
    pub(crate) shared: Option<SharedServers>,
}

impl SharedServers {
    /// Creates an empty collection.
    pub fn new() -> SharedServers {
        SharedServers::default()
    }

    /// Returns the set that is equal to `set`, or adds it.
    fn join(&self, set: ServerSet) -> Arc<ServerSet> {
        let mut sets = self.lock();
        sets.retain(|known| known.strong_count() > 0);
        if let Some(known) = sets.iter().filter_map(Weak::upgrade).find(|known| known.is_same(&set)) {
            return known;
        }
        let set = Arc::new(set);
        sets.push(Arc::downgrade(&set));
        set
    }

    /// Removes a set that only the caller holds. False if another session holds it.
    fn remove_unused(&self, set: &Arc<ServerSet>) -> bool {
        let mut sets = self.lock();
        // Others take a set only under this lock.
        let is_unused = Arc::strong_count(set) == 1;
        if is_unused {
            sets.retain(|known| known.as_ptr() != Arc::as_ptr(set));
        }
        is_unused
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<ServerSet>>> {
        // A panic cannot leave the list inconsistent: each change is one call.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerSet {
    /// Creates a set, or returns the equal one that other sessions use.
    pub(crate) fn new(parts: ServerSetParts) -> Arc<ServerSet> {
        let set = ServerSet {
            host: OnceLock::new(),
            host_options: parts.host_options,
            dialer: parts.dialer,
            desired: parts.desired,
            connect_errors: parts.connect_errors,
            login_states: parts.login_states,
            #[cfg(feature = "oauth")]
            logins: parts.logins,
            users: tokio::sync::Mutex::default(),
            shared: parts.shared.clone(),
        };
        let set = match parts.shared {
            Some(shared) => shared.join(set),
            None => Arc::new(set),
        };
        #[cfg(feature = "oauth")]
        if let Some(logins) = &set.logins {
            let weak = Arc::downgrade(&set);
            logins.set_on_login(Box::new(move || {
                let weak = Weak::clone(&weak);
                Box::pin(async move {
                    if let Some(set) = weak.upgrade() {
                        set.start_failed().await;
                    }
                })
            }));
        }
        set
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Returns the host, and starts it if necessary.
    pub(crate) fn host(&self) -> &Host {
        self.host.get_or_init(|| Host::with_dialer(self.host_options.clone(), Arc::clone(&self.dialer)))
    }

    /// Returns the current snapshot; `None` if the host is not started.
    pub(crate) fn snapshot(&self) -> Option<Arc<HostSnapshot>> {
        self.host.get().map(Host::snapshot)
    }

    /// Starts the servers for a session, also those that have failed. `is_used` is whether the session uses them.
    pub(crate) async fn start(&self, is_used: &AtomicBool) {
        let mut users = self.users.lock().await;
        // Counted first, because a cancelled `apply` may be executed all the same.
        *users += usize::from(!is_used.swap(true, Ordering::AcqRel));
        self.host().apply(self.desired.clone()).await;
    }

    /// Ends the use by a session. The servers stop with the last one.
    pub(crate) async fn stop(&self, is_used: &AtomicBool) {
        let mut users = self.users.lock().await;
        if !is_used.swap(false, Ordering::AcqRel) {
            return;
        }
        *users -= 1;
        if let Some(host) = self.host.get().filter(|_| *users == 0) {
            host.apply(DesiredServers::default()).await;
        }
    }

    /// Starts those that have failed, if the servers are in use.
    #[cfg(feature = "oauth")]
    async fn start_failed(&self) {
        let users = self.users.lock().await;
        if *users > 0 {
            self.host().apply(self.desired.clone()).await;
        }
    }

    /// Ends the servers with their process groups, unless another session holds them.
    pub(crate) async fn shut_down(self: &Arc<ServerSet>) {
        if self.shared.as_ref().is_some_and(|shared| !shared.remove_unused(self)) {
            return;
        }
        #[cfg(feature = "oauth")]
        if let Some(logins) = &self.logins {
            logins.abort();
        }
        if let Some(host) = self.host.get() {
            host.shutdown().await;
        }
    }

    fn is_same(&self, other: &ServerSet) -> bool {
        let (ours, theirs) = (&self.desired, &other.desired);
        ours.servers.len() == theirs.servers.len()
            && ours.servers.iter().zip(&theirs.servers).all(|(ours, theirs)| is_same_server(ours, theirs))
            && ours.failed == theirs.failed
            && declared(&self.host_options) == declared(&other.host_options)
    }
}

/// Compares everything but where the entries are written.
fn is_same_server(ours: &ResolvedServer, theirs: &ResolvedServer) -> bool {
    if ours.endpoint != theirs.endpoint || ours.config != theirs.config {
        return false;
    }
    let (origin, metadata) = (theirs.spec.origin.clone(), theirs.spec.metadata.clone());
    ServerSpec { origin, metadata, ..ours.spec.clone() } == theirs.spec
}

fn declared(options: &HostOptions) -> Option<&mcp_transport::ClientCapabilities> {
    options.server_requests.declared_capabilities.as_ref()
}
