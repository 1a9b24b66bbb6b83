//! The registry of sessions and their servers. A session has one set of servers; a new set replaces and closes the
//! previous one.
//!
//! The number of sets is bounded, including those that are being connected. If all slots are taken, the servers of the
//! least recently used idle session are stopped until it is used again; if no session is idle, the request is refused
//! before anything starts. Sessions without servers need no slot. A slot belongs to a session until it is closed;
//! servers that were connected for a session that was closed meanwhile are closed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use mcp_host_acp::ValidatedRequest;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::SessionServers;
use crate::error::SessionSetupError;
use crate::options::{ConnectOptions, StartPolicy};

/// The default capacity.
const DEFAULT_CAPACITY: usize = 64;

/// The sessions of an agent or a connection, by id.
///
/// Dropping it ends the servers of all sessions, unless their sets are also held elsewhere.
pub struct SessionRegistry {
    state: Mutex<RegistryState>,
    slots: Arc<Semaphore>,
    capacity: usize,
}

#[derive(Default)]
struct RegistryState {
    sessions: HashMap<String, InstalledServers>,
    /// The identity of each session that has a slot. Removed when the session is closed.
    identities: HashMap<String, Weak<SessionIdentity>>,
    /// Sets that are being closed or stopped. Those being closed keep their slots until then.
    closing: JoinSet<()>,
    /// The number of uses so far, of all sessions.
    uses: u64,
}

/// The servers of a session. Without a permit they are stopped, or there are none.
struct InstalledServers {
    servers: Arc<SessionServers>,
    slot: SessionSlot,
    /// The number of its last use, from [`RegistryState::uses`].
    last_used: u64,
}

/// The identity of a session from its first slot until it is closed; compared by address.
#[derive(Debug)]
struct SessionIdentity;

/// A reserved slot for one set of servers. Dropping it releases the slot.
#[derive(Debug)]
pub struct SessionSlot {
    session: String,
    identity: Arc<SessionIdentity>,
    /// `None` if nothing runs.
    permit: Option<OwnedSemaphorePermit>,
}

/// The result of installing a set of servers.
#[non_exhaustive]
pub struct ReplacedServers {
    /// The new servers.
    pub servers: Arc<SessionServers>,
    /// The previous servers. They are being closed, whether or not [`SessionServers::close`] is awaited.
    pub previous: Option<Arc<SessionServers>>,
}

impl Default for SessionRegistry {
    /// Creates a registry with capacity 64.
    fn default() -> SessionRegistry {
        SessionRegistry::with_capacity(DEFAULT_CAPACITY)
    }
}

impl SessionRegistry {
    /// Creates an empty registry with capacity 64.
    pub fn new() -> SessionRegistry {
        SessionRegistry::default()
    }

    /// Creates an empty registry with this capacity.
    pub fn with_capacity(capacity: usize) -> SessionRegistry {
        let capacity = capacity.min(Semaphore::MAX_PERMITS);
        SessionRegistry { state: Mutex::default(), slots: Arc::new(Semaphore::new(capacity)), capacity }
    }

    /// Reserves a slot for a session's servers before they are connected with these options. A session without servers
    /// needs none, and one whose servers start with the first use needs it then.
    ///
    /// If all are taken, the idle session that was not used for longest loses its slot: its servers are stopped, and
    /// [`SessionRegistry::acquire`] starts them again. A session is idle while nothing but the registry holds its
    /// [`SessionServers`]. Fails with [`SessionSetupError::TooManySessions`] if none is idle. A replacement needs a
    /// second slot until the previous set is closed.
    ///
    /// # Panics
    ///
    /// When called outside of a Tokio runtime.
    pub fn reserve(
        &self,
        session: impl Into<String>,
        request: &ValidatedRequest,
        options: &ConnectOptions,
    ) -> Result<SessionSlot, SessionSetupError> {
        let session = session.into();
        let mut state = self.lock();
        let own = &options.own_servers;
        let is_empty = request.servers.is_empty() && own.servers.is_empty() && own.failed.is_empty();
        let permit = match options.start {
            StartPolicy::AtSession if !is_empty => Some(self.take_permit(&mut state, &session)?),
            StartPolicy::AtSession | StartPolicy::FirstUse => None,
        };
        state.identities.retain(|_, identity| identity.strong_count() > 0);
        let current = state.identities.get(&session).and_then(Weak::upgrade);
        let identity = current.unwrap_or_else(|| {
            let identity = Arc::new(SessionIdentity);
            state.identities.insert(session.clone(), Arc::downgrade(&identity));
            identity
        });
        Ok(SessionSlot { session, identity, permit })
    }

    /// Takes the permit of a free slot for a session, or that of an idle session.
    fn take_permit(
        &self,
        state: &mut RegistryState,
        session: &str,
    ) -> Result<OwnedSemaphorePermit, SessionSetupError> {
        let free = Arc::clone(&self.slots).try_acquire_owned().ok();
        let permit = free.or_else(|| state.stop_least_recently_used(session));
        permit.ok_or(SessionSetupError::TooManySessions { limit: self.capacity })
    }

    /// Installs the servers of the slot's session. The previous ones are closed (ACPX-10) by a task of the registry,
    /// so the caller need not wait. Fails with [`SessionSetupError::Closed`] if the session was closed since the
    /// reservation; then `servers` are closed.
    ///
    /// For `session/load` and `session/resume`, call this after the new servers are connected: a failed or cancelled
    /// request leaves the session unchanged. The installation is atomic.
    ///
    /// # Panics
    ///
    /// When called outside of a Tokio runtime.
    pub fn install(
        &self,
        servers: SessionServers,
        slot: SessionSlot,
    ) -> Result<ReplacedServers, SessionSetupError> {
        let servers = Arc::new(servers);
        let mut state = self.lock();
        let current = state.identities.get(&slot.session).and_then(Weak::upgrade);
        let is_current = current.is_some_and(|identity| Arc::ptr_eq(&identity, &slot.identity));
        let last_used = state.next_use();
        let installed = InstalledServers { servers: Arc::clone(&servers), slot, last_used };
        if !is_current {
            state.close_in_background(installed);
            return Err(SessionSetupError::Closed);
        }
        let previous = state.sessions.insert(installed.slot.session.clone(), installed);
        let previous = previous.map(|previous| state.close_in_background(previous));
        Ok(ReplacedServers { servers, previous })
    }

    /// Returns the servers of a session. They may be [idle](crate::ConnectionState::Idle).
    pub fn get(&self, session: &str) -> Option<Arc<SessionServers>> {
        self.lock().sessions.get(session).map(|installed| Arc::clone(&installed.servers))
    }

    /// Returns the servers of a session for use, for example in a turn; `None` if there is no such session. Those that
    /// do not run are started first, as [`SessionServers::connect`] does, which may need the slot of another idle
    /// session. Holding the result keeps them running.
    ///
    /// Cancel-safe: the next call continues the start.
    ///
    /// # Panics
    ///
    /// When polled outside of a Tokio runtime.
    pub async fn acquire(&self, session: &str) -> Result<Option<Arc<SessionServers>>, SessionSetupError> {
        let servers = {
            let mut state = self.lock();
            let last_used = state.next_use();
            let Some(installed) = state.sessions.get_mut(session) else { return Ok(None) };
            installed.last_used = last_used;
            let servers = Arc::clone(&installed.servers);
            if installed.slot.permit.is_none() && !servers.is_empty() {
                let permit = self.take_permit(&mut state, session)?;
                state.sessions.get_mut(session).expect("it was found above").slot.permit = Some(permit);
            }
            servers
        };
        servers.wake().await;
        Ok(Some(servers))
    }

    /// Removes a session. Its servers are being closed ([`SessionServers::close`] waits for that), and servers that are
    /// being connected for it cannot be installed. `None` if it had no servers.
    ///
    /// # Panics
    ///
    /// When called outside of a Tokio runtime.
    pub fn remove(&self, session: &str) -> Option<Arc<SessionServers>> {
        let mut state = self.lock();
        state.identities.remove(session);
        let removed = state.sessions.remove(session)?;
        Some(state.close_in_background(removed))
    }

    /// Removes a session and waits until its servers are closed. False if there is no such session. Cancel-safe.
    pub async fn close(&self, session: &str) -> bool {
        let Some(removed) = self.remove(session) else { return false };
        removed.close().await;
        true
    }

    /// Closes all sessions concurrently and waits, including those that were already being closed.
    pub async fn close_all(&self) {
        let mut closing = {
            let mut state = self.lock();
            state.identities.clear();
            for removed in std::mem::take(&mut state.sessions).into_values() {
                state.close_in_background(removed);
            }
            std::mem::take(&mut state.closing)
        };
        while closing.join_next().await.is_some() {}
    }

    fn lock(&self) -> MutexGuard<'_, RegistryState> {
        // A panic cannot leave the maps inconsistent: each change is one call.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RegistryState {
    /// Counts a use, and returns its number.
    fn next_use(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }

    /// Stops the servers of the least recently used idle session in the background, and returns its permit. `session`
    /// keeps its servers.
    fn stop_least_recently_used(&mut self, session: &str) -> Option<OwnedSemaphorePermit> {
        let idle = self.sessions.values_mut().filter(|installed| {
            // Others clone the pointer only under the lock of this state.
            let is_idle = Arc::strong_count(&installed.servers) == 1;
            is_idle && installed.slot.permit.is_some() && installed.slot.session != session
        });
        let longest = idle.min_by_key(|installed| installed.last_used)?;
        let permit = longest.slot.permit.take()?;
        longest.servers.set_idle();
        let servers = Arc::clone(&longest.servers);
        self.spawn(async move { servers.stop_if_idle().await });
        Some(permit)
    }

    /// Closes a set in the background. It keeps its slot until then.
    fn close_in_background(&mut self, installed: InstalledServers) -> Arc<SessionServers> {
        let servers = Arc::clone(&installed.servers);
        self.spawn(async move {
            installed.servers.close().await;
            drop(installed);
        });
        servers
    }

    /// Runs a task in the background until [`SessionRegistry::close_all`].
    fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        // Reaps finished tasks.
        while self.closing.try_join_next().is_some() {}
        self.closing.spawn(task);
    }
}
