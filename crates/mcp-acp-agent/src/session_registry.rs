//! The registry of sessions and their servers. A session has one set of servers; a new set replaces and closes the
//! previous one.
//!
//! The number of sets is bounded, including those that are being connected: excess requests are refused before
//! anything starts. A slot belongs to a session until it is closed; servers that were connected for a session that
//! was closed meanwhile are closed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::error::SessionSetupError;
use crate::session::SessionMcp;

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
    servers: HashMap<String, (Arc<SessionMcp>, SessionSlot)>,
    /// The generation of each session with a slot; removed when the session is closed. Bounded by the number of
    /// slots.
    generations: HashMap<String, Weak<Generation>>,
    /// Sets that are being closed. They keep their slots until then.
    closing: JoinSet<()>,
}

/// The identity of a session between two closings; compared by address.
#[derive(Debug)]
struct Generation;

/// A reserved slot for one set of servers. Dropping it releases the slot.
#[derive(Debug)]
pub struct SessionSlot {
    session: String,
    generation: Arc<Generation>,
    _permit: OwnedSemaphorePermit,
}

/// The result of installing a set of servers.
pub struct ReplacedServers {
    /// The new servers.
    pub servers: Arc<SessionMcp>,
    /// The previous servers. They are being closed, whether or not [`SessionMcp::close`] is awaited.
    pub previous: Option<Arc<SessionMcp>>,
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

    /// Reserves a slot for a session's servers before they are connected. Fails with
    /// [`SessionSetupError::TooManySessions`] if none is free. A replacement needs a second slot until the previous
    /// set is closed.
    pub fn reserve(&self, session: impl Into<String>) -> Result<SessionSlot, SessionSetupError> {
        let session = session.into();
        let permit = Arc::clone(&self.slots).try_acquire_owned();
        let permit = permit.map_err(|_| SessionSetupError::TooManySessions { limit: self.capacity })?;
        let mut state = self.lock();
        state.generations.retain(|_, generation| generation.strong_count() > 0);
        let current = state.generations.get(&session).and_then(Weak::upgrade);
        let generation = current.unwrap_or_else(|| {
            let generation = Arc::new(Generation);
            state.generations.insert(session.clone(), Arc::downgrade(&generation));
            generation
        });
        Ok(SessionSlot { session, generation, _permit: permit })
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
        servers: SessionMcp,
        slot: SessionSlot,
    ) -> Result<ReplacedServers, SessionSetupError> {
        let servers = Arc::new(servers);
        let mut state = self.lock();
        let current = state.generations.get(&slot.session).and_then(Weak::upgrade);
        if !current.is_some_and(|generation| Arc::ptr_eq(&generation, &slot.generation)) {
            state.close_in_background((servers, slot));
            return Err(SessionSetupError::Closed);
        }
        let previous = state.servers.insert(slot.session.clone(), (Arc::clone(&servers), slot));
        let previous = previous.map(|set| state.close_in_background(set));
        Ok(ReplacedServers { servers, previous })
    }

    /// Returns the servers of a session.
    pub fn get(&self, session: &str) -> Option<Arc<SessionMcp>> {
        self.lock().servers.get(session).map(|(servers, _)| Arc::clone(servers))
    }

    /// Removes a session. Its servers are being closed ([`SessionMcp::close`] waits for that), and servers that are
    /// being connected for it cannot be installed. `None` if it had no servers.
    ///
    /// # Panics
    ///
    /// When called outside of a Tokio runtime.
    pub fn remove(&self, session: &str) -> Option<Arc<SessionMcp>> {
        let mut state = self.lock();
        state.generations.remove(session);
        let removed = state.servers.remove(session)?;
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
            state.generations.clear();
            for (_, set) in std::mem::take(&mut state.servers) {
                state.close_in_background(set);
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
    /// Closes a set in the background. It keeps its slot until then.
    fn close_in_background(&mut self, (servers, slot): (Arc<SessionMcp>, SessionSlot)) -> Arc<SessionMcp> {
        // Reaps finished tasks.
        while self.closing.try_join_next().is_some() {}
        let closing = Arc::clone(&servers);
        self.closing.spawn(async move {
            closing.close().await;
            drop(slot);
        });
        servers
    }
}
