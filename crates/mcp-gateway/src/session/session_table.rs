//! The table of HTTP sessions, by id. Their number is bounded, in total and for each client.

use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::LogLevel;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::access::principal::Principal;
use crate::limits::bounds::Bounds;
use crate::session::client_session::ClientSession;
use crate::session::usage::{CapacityError, TableEntry, TableLimits};

/// The sessions.
#[derive(Debug)]
pub(crate) struct SessionTable {
    table: Mutex<ahash::HashMap<String, Arc<ClientSession>>>,
    limits: TableLimits,
}

/// An inserted session, and the session that was evicted for it and must be ended.
pub(crate) struct Insertion {
    pub(crate) session: Arc<ClientSession>,
    pub(crate) evicted: Option<Arc<ClientSession>>,
}

impl SessionTable {
    /// An empty table with these limits.
    pub(crate) fn new(bounds: &Bounds) -> SessionTable {
        SessionTable {
            table: Mutex::default(),
            limits: TableLimits { total: bounds.sessions, per_client: bounds.sessions_per_client },
        }
    }

    /// Adds a session. At a limit, one that is not active is evicted.
    pub(crate) fn add(&self, session: Arc<ClientSession>, now: Instant) -> Result<Insertion, CapacityError> {
        let mut evicted = None;
        let mut table = self.table.lock();
        let own = table.values().filter(|other| other.principal == session.principal).count();
        if !self.limits.have_room(table.len(), own) {
            let entries = table.iter().map(|(key, session)| TableEntry {
                key,
                principal: &session.principal,
                usage: session.idle_usage(),
            });
            let oldest = self.limits.make_room(entries, &session.principal, now)?;
            evicted = oldest.and_then(|oldest| table.remove(&oldest));
        }
        table.insert(session.id.clone(), Arc::clone(&session));
        Ok(Insertion { session, evicted })
    }

    /// The session of this id, if it belongs to the client.
    pub(crate) fn get(&self, id: &str, principal: &Principal) -> Option<Arc<ClientSession>> {
        self.table.lock().get(id).filter(|session| session.principal == *principal).cloned()
    }

    /// Removes and returns the session of this id, if it belongs to the client.
    pub(crate) fn take(&self, id: &str, principal: &Principal) -> Option<Arc<ClientSession>> {
        let mut table = self.table.lock();
        table.get(id).filter(|session| session.principal == *principal)?;
        table.remove(id)
    }

    /// Removes and returns the sessions that were unused for `idle`.
    pub(crate) fn take_unused(&self, now: Instant, idle: Duration) -> Vec<Arc<ClientSession>> {
        self.take_if(|session| {
            session.idle_usage().is_some_and(|usage| now.saturating_duration_since(usage.last_used) >= idle)
        })
    }

    /// Removes and returns the sessions of these clients.
    pub(crate) fn take_clients(&self, principals: &[Principal]) -> Vec<Arc<ClientSession>> {
        self.take_if(|session| principals.contains(&session.principal))
    }

    fn take_if(&self, is_taken: impl Fn(&ClientSession) -> bool) -> Vec<Arc<ClientSession>> {
        self.table.lock().extract_if(|_, session| is_taken(session)).map(|(_, session)| session).collect()
    }

    /// Removes and returns all sessions.
    pub(crate) fn take_all(&self) -> Vec<Arc<ClientSession>> {
        self.table.lock().drain().map(|(_, session)| session).collect()
    }

    /// The lowest log level of all sessions.
    pub(crate) fn lowest_log_level(&self) -> Option<LogLevel> {
        // A session without a level gets all messages.
        self.table.lock().values().map(|session| session.log_level().unwrap_or(LogLevel::Debug)).min()
    }

    /// The number of sessions.
    pub(crate) fn len(&self) -> usize {
        self.table.lock().len()
    }
}
