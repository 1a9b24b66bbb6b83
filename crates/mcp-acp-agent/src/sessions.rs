//! Which session has which servers. A session has one set: another one takes its place, and the former is closed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::SessionMcp;

/// The sessions of an agent, or of one connection, by their ids.
///
/// Dropping it ends the servers of all of them, unless somebody else holds a set.
#[derive(Default)]
pub struct Sessions {
    open: Mutex<HashMap<String, Arc<SessionMcp>>>,
}

impl Sessions {
    /// None yet.
    pub fn new() -> Sessions {
        Sessions::default()
    }

    /// These are the servers of the session from now on; those that it had are closed (ACPX-10). Returns when they are.
    ///
    /// For `session/load` and `session/resume` this comes after the new ones are connected: a request that fails, or is
    /// cancelled, leaves the session as it was. Cancel-safe: the exchange is done with the first poll, and former
    /// servers that are not waited for end all the same.
    pub async fn put(&self, session: impl Into<String>, servers: SessionMcp) -> Arc<SessionMcp> {
        let servers = Arc::new(servers);
        let former = self.lock().insert(session.into(), Arc::clone(&servers));
        if let Some(former) = former {
            former.close().await;
        }
        servers
    }

    /// The servers of a session.
    pub fn get(&self, session: &str) -> Option<Arc<SessionMcp>> {
        self.lock().get(session).cloned()
    }

    /// Ends the servers of a session and returns when nothing is left of them. False where there is no such session.
    pub async fn close(&self, session: &str) -> bool {
        let former = self.lock().remove(session);
        match former {
            Some(former) => {
                former.close().await;
                true
            }
            None => false,
        }
    }

    /// Ends the servers of all sessions beside each other, and returns when nothing is left.
    pub async fn close_all(&self) {
        let all: Vec<_> = self.lock().drain().map(|it| it.1).collect();
        futures_util::future::join_all(all.iter().map(|it| it.close())).await;
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<SessionMcp>>> {
        // A panic elsewhere leaves the map whole: each change is one call.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
