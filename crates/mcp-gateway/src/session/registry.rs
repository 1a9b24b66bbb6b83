//! The sessions over HTTP, by their ids. How many there are is bounded, in all and for each token.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_model::LogLevel;
use tokio::time::Instant;

use crate::access::principal::Principal;
use crate::limits::bounds::Bounds;
use crate::session::state::Session;

/// The sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    table: Mutex<ahash::HashMap<String, Arc<Session>>>,
    most: usize,
    most_of_one: usize,
}

/// A session that was taken in, and the one that made room for it, which is still to be ended.
pub(crate) struct Added {
    pub(crate) session: Arc<Session>,
    pub(crate) gone: Option<Arc<Session>>,
}

/// There is no room for another session, or dialog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

/// For how long what was used keeps its room, where all clients are one for want of a token: it may be another one's.
pub(crate) const RECENT: Duration = Duration::from_secs(60);

/// May what was last used then make room for another one of its client?
pub(crate) fn makes_room(principal: &Principal, last_used: Instant, now: Instant) -> bool {
    !principal.is_anybody() || now.saturating_duration_since(last_used) >= RECENT
}

impl Sessions {
    /// No sessions, of as many as the bounds allow.
    pub(crate) fn new(bounds: &Bounds) -> Sessions {
        Sessions { table: Mutex::default(), most: bounds.sessions, most_of_one: bounds.sessions_of_one }
    }

    /// Takes one in. Where there is no room, the one that its owner has not used for the longest makes room, so that a
    /// client who forgets his sessions harms nobody but himself. Where there are no tokens the owner is everybody, and
    /// what was used just now stays.
    pub(crate) fn add(&self, session: Session, now: Instant) -> Result<Added, Full> {
        let mut gone = None;
        let mut table = self.lock();
        let own = table.values().filter(|it| it.principal == session.principal);
        if table.len() >= self.most || own.count() >= self.most_of_one {
            let own = table.values().filter(|it| it.principal == session.principal);
            let oldest = own.filter_map(|it| Some((it.unused()?, it.id.clone()))).min();
            let makes_room = |(since, _): &(Instant, String)| makes_room(&session.principal, *since, now);
            let (_, oldest) = oldest.filter(makes_room).ok_or(Full)?;
            gone = table.remove(&oldest);
        }
        let session = Arc::new(session);
        table.insert(session.id.clone(), Arc::clone(&session));
        Ok(Added { session, gone })
    }

    /// The session of this id, if it is this client's.
    pub(crate) fn get(&self, id: &str, principal: &Principal) -> Option<Arc<Session>> {
        self.lock().get(id).filter(|it| it.principal == *principal).cloned()
    }

    /// Takes the session of this id out, if it is this client's.
    pub(crate) fn take(&self, id: &str, principal: &Principal) -> Option<Arc<Session>> {
        let mut table = self.lock();
        table.get(id).filter(|it| it.principal == *principal)?;
        table.remove(id)
    }

    /// Takes out what has not been used for as long as `idle`.
    pub(crate) fn take_unused(&self, now: Instant, idle: Duration) -> Vec<Arc<Session>> {
        let mut table = self.lock();
        let is_old =
            |it: &Arc<Session>| it.unused().is_some_and(|since| now.saturating_duration_since(since) >= idle);
        let old: Vec<String> = table.iter().filter(|(_, it)| is_old(it)).map(|(id, _)| id.clone()).collect();
        old.iter().filter_map(|id| table.remove(id)).collect()
    }

    /// Takes out all of them.
    pub(crate) fn take_all(&self) -> Vec<Arc<Session>> {
        self.lock().drain().map(|(_, it)| it).collect()
    }

    /// The lowest level from which on one of them wants log messages.
    pub(crate) fn lowest_level(&self) -> Option<LogLevel> {
        // Who never said a level hears all.
        self.lock().values().map(|it| it.log_level().unwrap_or(LogLevel::Debug)).min()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ahash::HashMap<String, Arc<Session>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
