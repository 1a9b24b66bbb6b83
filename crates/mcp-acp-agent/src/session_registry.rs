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
    #[expect(dead_code, reason = "it is held, and given back when it is dropped")]
    permit: OwnedSemaphorePermit,
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
    pub fn with_capacity(most: usize) -> SessionRegistry {
        let most = most.min(Semaphore::MAX_PERMITS);
        SessionRegistry { state: Mutex::default(), slots: Arc::new(Semaphore::new(most)), capacity: most }
    }

    /// Reserves a slot for a session's servers before they are connected. Fails with
    /// [`SessionSetupError::TooManySessions`] if none is free. A replacement needs a second slot until the previous
    /// set is closed.
    pub fn reserve(&self, session: impl Into<String>) -> Result<SessionSlot, SessionSetupError> {
        let session = session.into();
        let permit = Arc::clone(&self.slots).try_acquire_owned();
        let permit = permit.map_err(|_| SessionSetupError::TooManySessions { most: self.capacity })?;
        let mut open = self.lock();
        open.generations.retain(|_, it| it.strong_count() > 0);
        let known = open.generations.get(&session).and_then(Weak::upgrade);
        let generation = known.unwrap_or_else(|| {
            let generation = Arc::new(Generation);
            open.generations.insert(session.clone(), Arc::downgrade(&generation));
            generation
        });
        Ok(SessionSlot { session, generation, permit })
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
        place: SessionSlot,
    ) -> Result<ReplacedServers, SessionSetupError> {
        let servers = Arc::new(servers);
        let mut open = self.lock();
        let now = open.generations.get(&place.session).and_then(Weak::upgrade);
        if !now.is_some_and(|it| Arc::ptr_eq(&it, &place.generation)) {
            open.close_in_background((servers, place));
            return Err(SessionSetupError::Closed);
        }
        let former = open.servers.insert(place.session.clone(), (Arc::clone(&servers), place));
        let former = former.map(|it| open.close_in_background(it));
        Ok(ReplacedServers { servers, previous: former })
    }

    /// Returns the servers of a session.
    pub fn get(&self, session: &str) -> Option<Arc<SessionMcp>> {
        self.lock().servers.get(session).map(|it| Arc::clone(&it.0))
    }

    /// Removes a session. Its servers are being closed ([`SessionMcp::close`] waits for that), and servers that are
    /// being connected for it cannot be installed. `None` if it had no servers.
    ///
    /// # Panics
    ///
    /// When called outside of a Tokio runtime.
    pub fn remove(&self, session: &str) -> Option<Arc<SessionMcp>> {
        let mut open = self.lock();
        open.generations.remove(session);
        let former = open.servers.remove(session)?;
        Some(open.close_in_background(former))
    }

    /// Removes a session and waits until its servers are closed. False if there is no such session. Cancel-safe.
    pub async fn close(&self, session: &str) -> bool {
        let former = self.remove(session);
        match former {
            Some(former) => {
                former.close().await;
                true
            }
            None => false,
        }
    }

    /// Closes all sessions concurrently and waits, including those that were already being closed.
    pub async fn close_all(&self) {
        let mut parting = {
            let mut open = self.lock();
            open.generations.clear();
            let all: Vec<_> = open.servers.drain().map(|it| it.1).collect();
            for set in all {
                open.close_in_background(set);
            }
            std::mem::take(&mut open.closing)
        };
        while parting.join_next().await.is_some() {}
    }

    fn lock(&self) -> MutexGuard<'_, RegistryState> {
        // A panic cannot leave the maps inconsistent: each change is one call.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RegistryState {
    /// Closes a set in the background. It keeps its slot until then.
    fn close_in_background(&mut self, (servers, place): (Arc<SessionMcp>, SessionSlot)) -> Arc<SessionMcp> {
        // Reaps finished tasks.
        while self.closing.try_join_next().is_some() {}
        let closing = Arc::clone(&servers);
        self.closing.spawn(async move {
            closing.close().await;
            drop(place);
        });
        servers
    }
}
