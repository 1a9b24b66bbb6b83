//! Which session has which servers. A session has one set: another one takes its place, and the former is closed.
//!
//! There is room for so many sets and no more, those that are being connected included: a client that asks for sessions
//! without end is refused before anything is started for it. A place is one of its session as it is now: when the
//! session is closed meanwhile, what was connected for it is closed as well.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::{SessionMcp, SessionSetupError};

/// How many sets there is room for, unless said otherwise.
const DEFAULT_CAPACITY: usize = 64;

/// The sessions of an agent, or of one connection, by their ids.
///
/// Dropping it ends the servers of all of them, unless somebody else holds a set.
pub struct SessionRegistry {
    state: Mutex<RegistryState>,
    slots: Arc<Semaphore>,
    capacity: usize,
}

#[derive(Default)]
struct RegistryState {
    servers: HashMap<String, (Arc<SessionMcp>, SessionSlot)>,
    /// The generation of each session that has a place; closing a session forgets it. As many live as there are places.
    generations: HashMap<String, Weak<Generation>>,
    /// The sets that are being closed. They hold their places until they are.
    closing: JoinSet<()>,
}

/// What a session is from one closing to the next. Two are the same when they are one value.
#[derive(Debug)]
struct Generation;

/// Room for one set of servers of one session, held from before they are connected. Dropping it gives it back.
#[derive(Debug)]
pub struct SessionSlot {
    session: String,
    generation: Arc<Generation>,
    #[expect(dead_code, reason = "it is held, and given back when it is dropped")]
    permit: OwnedSemaphorePermit,
}

/// A session has other servers than before.
pub struct ReplacedServers {
    /// Those that it has now.
    pub servers: Arc<SessionMcp>,
    /// Those that it had. They are being closed, whether anybody waits for [`SessionMcp::close`] or not.
    pub previous: Option<Arc<SessionMcp>>,
}

impl Default for SessionRegistry {
    /// Room for 64.
    fn default() -> SessionRegistry {
        SessionRegistry::with_capacity(DEFAULT_CAPACITY)
    }
}

impl SessionRegistry {
    /// None yet, and room for 64.
    pub fn new() -> SessionRegistry {
        SessionRegistry::default()
    }

    /// None yet, and room for so many sets of servers.
    pub fn with_capacity(most: usize) -> SessionRegistry {
        let most = most.min(Semaphore::MAX_PERMITS);
        SessionRegistry { state: Mutex::default(), slots: Arc::new(Semaphore::new(most)), capacity: most }
    }

    /// Takes room for a set of this session, before it is connected. Fails where there is none, which is
    /// [`SessionSetupError::TooManySessions`]. A set that will take the place of another needs room beside it until that is closed.
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

    /// These are the servers of the place's session from now on; those that it had are closed (ACPX-10), by a task of
    /// this value, so that whoever answers a request need not wait for that. Fails with [`SessionSetupError::Closed`] where the
    /// session was closed since the place was taken; then these are closed.
    ///
    /// For `session/load` and `session/resume` this comes after the new ones are connected: a request that fails, or is
    /// cancelled, leaves the session as it was. It is one step: a request is cancelled before it, or has succeeded.
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

    /// The servers of a session.
    pub fn get(&self, session: &str) -> Option<Arc<SessionMcp>> {
        self.lock().servers.get(session).map(|it| Arc::clone(&it.0))
    }

    /// Closes a session: it has no servers any more, and what is being connected for it will not be put. Those that it
    /// had are being closed; [`SessionMcp::close`] waits for that. `None` where it had none.
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

    /// The same, and returns when nothing is left of them. False where there is no such session. Cancel-safe.
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

    /// Ends the servers of all sessions beside each other, and returns when nothing is left, of those that were being
    /// closed included.
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
        // A panic elsewhere leaves the maps whole: each change is one call.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RegistryState {
    /// Has a set closed, which keeps its place until then.
    fn close_in_background(&mut self, (servers, place): (Arc<SessionMcp>, SessionSlot)) -> Arc<SessionMcp> {
        // Those that are done are not kept.
        while self.closing.try_join_next().is_some() {}
        let closing = Arc::clone(&servers);
        self.closing.spawn(async move {
            closing.close().await;
            drop(place);
        });
        servers
    }
}
