//! The HTTP sessions by id. Their number is bounded, in total and for each client.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_model::LogLevel;
use tokio::time::Instant;

use crate::access::principal::Principal;
use crate::limits::bounds::Bounds;
use crate::session::state::Session;

/// The sessions.
#[derive(Debug)]
pub(crate) struct SessionRegistry {
    table: Mutex<ahash::HashMap<String, Arc<Session>>>,
    most: usize,
    max_per_client: usize,
}

/// An inserted session, and the session that was evicted for it and must be ended.
pub(crate) struct Insertion {
    pub(crate) session: Arc<Session>,
    pub(crate) evicted: Option<Arc<Session>>,
}

/// The error for too many sessions or dialogs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CapacityError;

/// How long an unused session is protected from eviction if there are no tokens, because it may belong to another
/// client.
pub(crate) const EVICTION_PROTECTION: Duration = Duration::from_secs(60);

/// Whether a session or dialog that was last used at `last_used` may be evicted for another one of the same
/// client.
pub(crate) fn is_evictable(principal: &Principal, last_used: Instant, now: Instant) -> bool {
    !principal.is_anybody() || now.saturating_duration_since(last_used) >= EVICTION_PROTECTION
}

impl SessionRegistry {
    /// An empty registry with these limits.
    pub(crate) fn new(bounds: &Bounds) -> SessionRegistry {
        SessionRegistry {
            table: Mutex::default(),
            most: bounds.sessions,
            max_per_client: bounds.sessions_per_client,
        }
    }

    /// Adds a session. At the limit, the client's least recently used session is evicted, so that a client that leaks
    /// sessions harms only itself. Without tokens all clients count as one, so recently used sessions are protected.
    pub(crate) fn add(&self, session: Session, now: Instant) -> Result<Insertion, CapacityError> {
        let mut evicted = None;
        let mut table = self.lock();
        let own = table.values().filter(|it| it.principal == session.principal);
        if table.len() >= self.most || own.count() >= self.max_per_client {
            let own = table.values().filter(|it| it.principal == session.principal);
            let oldest = own.filter_map(|it| Some((it.unused_since()?, it.id.clone()))).min();
            let is_evictable = |(since, _): &(Instant, String)| is_evictable(&session.principal, *since, now);
            let (_, oldest) = oldest.filter(is_evictable).ok_or(CapacityError)?;
            evicted = table.remove(&oldest);
        }
        let session = Arc::new(session);
        table.insert(session.id.clone(), Arc::clone(&session));
        Ok(Insertion { session, evicted })
    }

    /// The session of this id, if it belongs to the client.
    pub(crate) fn get(&self, id: &str, principal: &Principal) -> Option<Arc<Session>> {
        self.lock().get(id).filter(|it| it.principal == *principal).cloned()
    }

    /// Removes the session of this id, if it belongs to the client.
    pub(crate) fn take(&self, id: &str, principal: &Principal) -> Option<Arc<Session>> {
        let mut table = self.lock();
        table.get(id).filter(|it| it.principal == *principal)?;
        table.remove(id)
    }

    /// Removes sessions that were unused for `idle`.
    pub(crate) fn take_unused(&self, now: Instant, idle: Duration) -> Vec<Arc<Session>> {
        let mut table = self.lock();
        let is_old = |it: &Arc<Session>| {
            it.unused_since().is_some_and(|since| now.saturating_duration_since(since) >= idle)
        };
        let old: Vec<String> = table.iter().filter(|(_, it)| is_old(it)).map(|(id, _)| id.clone()).collect();
        old.iter().filter_map(|id| table.remove(id)).collect()
    }

    /// Removes all sessions.
    pub(crate) fn take_all(&self) -> Vec<Arc<Session>> {
        self.lock().drain().map(|(_, it)| it).collect()
    }

    /// The lowest log level of all sessions.
    pub(crate) fn lowest_level(&self) -> Option<LogLevel> {
        // A session without a level gets all messages.
        self.lock().values().map(|it| it.log_level().unwrap_or(LogLevel::Debug)).min()
    }

    /// The number of sessions.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ahash::HashMap<String, Arc<Session>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
