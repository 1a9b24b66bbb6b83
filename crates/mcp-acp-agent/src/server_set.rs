//! A set of servers: of one session, or of all sessions that share it.
//!
//! The servers run while a session uses them. Every session of a shared set is a dialog with a caller of its own: a
//! server request is handled by the session whose call it belongs to, and refused if that is unknown.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use mcp_host_config::ResolvedServer;
use mcp_host_runtime::{DesiredServers, Dialer, Host, HostOptions, HostSnapshot};

use crate::login::LoginStates;
#[cfg(feature = "oauth")]
use crate::login::oauth::BackgroundLogins;

/// Servers that sessions share. Clones share them, too.
///
/// Sessions use the same servers if their lists are equal: names, order, commands and URLs, variables, headers, folders
/// and limits. The host options of the first such session apply. These are not separated any more: what a server
/// remembers of its callers, its end when it fails, its status, and the logins to it. Separate are the catalogs of
/// different lists, the leases of servers that are not shared by their configuration, and server requests.
#[derive(Clone, Default)]
pub struct SharedServers(Arc<Mutex<Vec<SharedSet>>>);

/// An entry of [`SharedServers`]: a set that sessions share.
struct SharedSet {
    set: Weak<ServerSet>,
    /// The number of sessions that are not closed. Other holders of the set, such as the handle of a closed session, do
    /// not keep its servers running.
    open_sessions: usize,
}

/// A set of servers, and the host that runs them.
pub(crate) struct ServerSet {
    /// Created when it is first needed.
    host: OnceLock<Host>,
    pub(crate) parts: ServerSetParts,
    /// The number of sessions that use the servers. Locked while they are started or stopped.
    users: tokio::sync::Mutex<usize>,
}

/// The servers of a set, and the options of its host.
pub(crate) struct ServerSetParts {
    pub(crate) host_options: HostOptions,
    pub(crate) dialer: Dialer,
    pub(crate) desired: DesiredServers,
    pub(crate) login_states: Arc<LoginStates>,
    #[cfg(feature = "oauth")]
    pub(crate) logins: Option<Arc<BackgroundLogins>>,
    pub(crate) shared: Option<SharedServers>,
}

/// The membership of one session in a [`ServerSet`], which changes it.
pub(crate) struct Membership {
    /// Whether the session uses the servers. They run while a session uses them.
    uses_servers: AtomicBool,
    /// Whether the session is a member; false once it is closed.
    is_member: AtomicBool,
}

impl Membership {
    /// A member that does not use the servers yet.
    pub(crate) fn new() -> Membership {
        Membership { uses_servers: AtomicBool::new(false), is_member: AtomicBool::new(true) }
    }

    pub(crate) fn uses_servers(&self) -> bool {
        self.uses_servers.load(Ordering::Acquire)
    }
}

impl SharedServers {
    /// Creates an empty collection.
    pub fn new() -> SharedServers {
        SharedServers::default()
    }

    /// Returns the set that is equal to `set`, or adds it, for a session that is open.
    fn join(&self, set: ServerSet) -> Arc<ServerSet> {
        let mut sets = self.lock();
        sets.retain(|known| known.set.strong_count() > 0);
        for known in sets.iter_mut() {
            if let Some(same) = known.set.upgrade().filter(|same| same.is_equal_to(&set)) {
                known.open_sessions += 1;
                return same;
            }
        }
        let set = Arc::new(set);
        sets.push(SharedSet { set: Arc::downgrade(&set), open_sessions: 1 });
        set
    }

    /// Ends the membership of a session in a set, and removes a set without members. Returns whether the set has no
    /// member left.
    fn leave(&self, set: &ServerSet, membership: &Membership) -> bool {
        let mut sets = self.lock();
        let Some(at) = sets.iter().position(|known| std::ptr::eq(known.set.as_ptr(), set)) else {
            return true;
        };
        if membership.is_member.swap(false, Ordering::AcqRel) {
            sets[at].open_sessions -= 1;
        }
        let is_unused = sets[at].open_sessions == 0;
        if is_unused {
            sets.swap_remove(at);
        }
        is_unused
    }

    fn lock(&self) -> MutexGuard<'_, Vec<SharedSet>> {
        // A panic cannot leave the list inconsistent: each change is one call.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerSet {
    /// Creates a set, or returns the equal one that other sessions use.
    pub(crate) fn new(parts: ServerSetParts) -> Arc<ServerSet> {
        let shared = parts.shared.clone();
        let set = ServerSet { host: OnceLock::new(), parts, users: tokio::sync::Mutex::default() };
        let set = match shared {
            Some(shared) => shared.join(set),
            None => Arc::new(set),
        };
        #[cfg(feature = "oauth")]
        if let Some(logins) = &set.parts.logins {
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
        self.parts.shared.is_some()
    }

    /// Returns the host, which is created at the first call.
    pub(crate) fn host(&self) -> &Host {
        self.host.get_or_init(|| {
            Host::with_dialer(self.parts.host_options.clone(), Arc::clone(&self.parts.dialer))
        })
    }

    /// Returns the current snapshot; `None` before the host is created.
    pub(crate) fn snapshot(&self) -> Option<Arc<HostSnapshot>> {
        self.host.get().map(Host::snapshot)
    }

    /// Starts the servers for a session, including those that have failed.
    pub(crate) async fn start(&self, membership: &Membership) {
        let mut users = self.users.lock().await;
        // Counted first, because a cancelled `apply` may be executed all the same.
        *users += usize::from(!membership.uses_servers.swap(true, Ordering::AcqRel));
        self.host().apply(self.parts.desired.clone()).await;
    }

    /// Ends the use by a session. The servers stop when no session uses them.
    pub(crate) async fn stop(&self, membership: &Membership) {
        let mut users = self.users.lock().await;
        if !membership.uses_servers.swap(false, Ordering::AcqRel) {
            return;
        }
        *users -= 1;
        if let Some(host) = self.host.get().filter(|_| *users == 0) {
            host.apply(DesiredServers::default()).await;
        }
    }

    /// Starts the servers that have failed, if the set is in use.
    #[cfg(feature = "oauth")]
    async fn start_failed(&self) {
        let users = self.users.lock().await;
        if *users > 0 {
            self.host().apply(self.parts.desired.clone()).await;
        }
    }

    /// Ends the membership of a session that closes. Returns whether the set has no open session left, as is always the
    /// case for a set that is not shared.
    pub(crate) fn leave(&self, membership: &Membership) -> bool {
        self.parts.shared.as_ref().is_none_or(|shared| shared.leave(self, membership))
    }

    /// Ends the use and the membership of a session that closes. Ends the servers with their process groups, unless
    /// another session is open.
    pub(crate) async fn close(&self, membership: &Membership) {
        // The servers of a set that is not shared end below, with their host.
        if self.is_shared() {
            self.stop(membership).await;
        }
        if !self.leave(membership) {
            return;
        }
        #[cfg(feature = "oauth")]
        if let Some(logins) = &self.parts.logins {
            logins.abort();
        }
        if let Some(host) = self.host.get() {
            host.shutdown().await;
        }
    }

    /// Whether sessions can share one of the two sets.
    fn is_equal_to(&self, other: &ServerSet) -> bool {
        let (ours, theirs) = (&self.parts.desired, &other.parts.desired);
        ours.servers.len() == theirs.servers.len()
            && ours.servers.iter().zip(&theirs.servers).all(|(ours, theirs)| is_equal_server(ours, theirs))
            && ours.failed == theirs.failed
            && declared_capabilities(&self.parts.host_options)
                == declared_capabilities(&other.parts.host_options)
    }
}

/// Whether two servers are equal except for the place of their entries and for metadata.
fn is_equal_server(ours: &ResolvedServer, theirs: &ResolvedServer) -> bool {
    if ours.endpoint != theirs.endpoint || ours.config != theirs.config {
        return false;
    }
    let mut spec = ours.spec.clone();
    (spec.origin, spec.metadata) = (theirs.spec.origin.clone(), theirs.spec.metadata.clone());
    spec == theirs.spec
}

fn declared_capabilities(options: &HostOptions) -> Option<&mcp_host_transport::ClientCapabilities> {
    options.server_requests.declared_capabilities.as_ref()
}
