//! Which session has which servers. A session has one set: another one takes its place, and the former is closed.
//!
//! There is room for so many sets and no more, those that are being connected included: a client that asks for sessions
//! without end is refused before anything is started for it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{SessionMcp, SetUpError};

/// How many sets there is room for, unless said otherwise.
const MOST: usize = 64;

/// The sessions of an agent, or of one connection, by their ids.
///
/// Dropping it ends the servers of all of them, unless somebody else holds a set.
pub struct Sessions {
    open: Mutex<HashMap<String, (Arc<SessionMcp>, Place)>>,
    room: Arc<Semaphore>,
    most: usize,
}

/// Room for one set of servers, held from before they are connected. Dropping it gives it back.
#[derive(Debug)]
pub struct Place(
    #[expect(dead_code, reason = "it is held, and given back when it is dropped")] OwnedSemaphorePermit,
);

impl Default for Sessions {
    /// Room for 64.
    fn default() -> Sessions {
        Sessions::with_room(MOST)
    }
}

impl Sessions {
    /// None yet, and room for 64.
    pub fn new() -> Sessions {
        Sessions::default()
    }

    /// None yet, and room for so many sets of servers.
    pub fn with_room(most: usize) -> Sessions {
        let most = most.min(Semaphore::MAX_PERMITS);
        Sessions { open: Mutex::default(), room: Arc::new(Semaphore::new(most)), most }
    }

    /// Takes room for a set, before it is connected. Fails where there is none, which is
    /// [`SetUpError::NoRoom`]. A set that will take the place of another needs room beside it until then.
    pub fn place(&self) -> Result<Place, SetUpError> {
        let permit = Arc::clone(&self.room).try_acquire_owned();
        permit.map(Place).map_err(|_| SetUpError::NoRoom { most: self.most })
    }

    /// These are the servers of the session from now on; those that it had are closed (ACPX-10). Returns when they are.
    ///
    /// For `session/load` and `session/resume` this comes after the new ones are connected: a request that fails, or is
    /// cancelled, leaves the session as it was. Cancel-safe: the exchange is done with the first poll, and former
    /// servers that are not waited for end all the same.
    pub async fn put(
        &self,
        session: impl Into<String>,
        servers: SessionMcp,
        place: Place,
    ) -> Arc<SessionMcp> {
        let servers = Arc::new(servers);
        let former = self.lock().insert(session.into(), (Arc::clone(&servers), place));
        if let Some((former, _place)) = former {
            former.close().await;
        }
        servers
    }

    /// The servers of a session.
    pub fn get(&self, session: &str) -> Option<Arc<SessionMcp>> {
        self.lock().get(session).map(|it| Arc::clone(&it.0))
    }

    /// Ends the servers of a session and returns when nothing is left of them. False where there is no such session.
    pub async fn close(&self, session: &str) -> bool {
        let former = self.lock().remove(session);
        match former {
            Some((former, _place)) => {
                former.close().await;
                true
            }
            None => false,
        }
    }

    /// Ends the servers of all sessions beside each other, and returns when nothing is left.
    pub async fn close_all(&self) {
        let all: Vec<_> = self.lock().drain().map(|it| it.1).collect();
        futures_util::future::join_all(all.iter().map(|it| it.0.close())).await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Arc<SessionMcp>, Place)>> {
        // A panic elsewhere leaves the map whole: each change is one call.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
