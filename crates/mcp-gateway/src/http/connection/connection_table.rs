//! The table of open connections, which bounds their number.
//!
//! At the limit a new connection replaces an idle one. If none is idle, the new one may be one of a few further
//! connections, which serve only health and metrics. So these remain available when clients keep all connections busy.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::access::principal::Principal;
use crate::http::connection::active_requests::ActiveRequests;

/// Maximum number of connections for health and metrics.
const MAX_OPERATOR_CONNECTIONS: usize = 16;

/// What a connection may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionUse {
    /// All requests.
    Any,
    /// Requests for health and metrics.
    Operator,
}

/// The open connections.
#[derive(Debug)]
pub(crate) struct ConnectionTable {
    limit: usize,
    entries: Mutex<OpenConnections>,
}

/// The entries of the table.
#[derive(Debug, Default)]
struct OpenConnections {
    /// The connections in the order of their start.
    open: BTreeMap<u64, ConnectionEntry>,
    next_id: u64,
}

/// One connection, and how to end it.
#[derive(Debug)]
struct ConnectionEntry {
    usage: ConnectionUse,
    requests: ActiveRequests,
    /// The client of its last request; `None` before the first one.
    principal: Option<Principal>,
    /// Sends the eviction.
    evict: oneshot::Sender<()>,
    /// Sends the shutdown of the server; `None` once it was sent.
    shut_down: Option<oneshot::Sender<()>>,
}

/// The signals that end a connection. Each wake-up of the connection polls both, and a one-shot channel is the cheapest
/// to poll.
#[derive(Debug)]
pub(crate) struct EndSignals {
    /// Eviction: the connection ends as soon as it is idle.
    pub(crate) eviction: oneshot::Receiver<()>,
    /// Shutdown of the server: no further request is accepted. An evicted connection receives an error.
    pub(crate) shutdown: oneshot::Receiver<()>,
}

/// A connection's entry in the table. Dropping it removes the entry.
#[derive(Debug)]
pub(crate) struct ConnectionPermit {
    table: Arc<ConnectionTable>,
    id: u64,
    usage: ConnectionUse,
}

/// The error for a request that its connection cannot serve, because there are too many connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionsExceeded;

impl ConnectionTable {
    /// A table for `limit` connections.
    pub(crate) fn new(limit: usize) -> Arc<ConnectionTable> {
        Arc::new(ConnectionTable { limit: limit.max(1), entries: Mutex::default() })
    }

    /// Adds a connection. Evicts an idle one at the limit. `None` if there are too many connections, and none is idle.
    pub(crate) fn add(
        self: &Arc<ConnectionTable>,
        requests: ActiveRequests,
    ) -> Option<(ConnectionPermit, EndSignals)> {
        let has_room = self.entries.lock().make_room(ConnectionUse::Any, self.limit);
        match has_room {
            true => Some(self.insert(ConnectionUse::Any, requests)),
            false => self.add_for_operator(requests),
        }
    }

    /// Adds a connection for health and metrics only. `None` if there are too many of them, and none is idle.
    pub(crate) fn add_for_operator(
        self: &Arc<ConnectionTable>,
        requests: ActiveRequests,
    ) -> Option<(ConnectionPermit, EndSignals)> {
        let has_room = self.entries.lock().make_room(ConnectionUse::Operator, MAX_OPERATOR_CONNECTIONS);
        has_room.then(|| self.insert(ConnectionUse::Operator, requests))
    }

    /// Adds a connection. The caller has made room for it.
    fn insert(
        self: &Arc<ConnectionTable>,
        usage: ConnectionUse,
        requests: ActiveRequests,
    ) -> (ConnectionPermit, EndSignals) {
        let mut entries = self.entries.lock();
        let id = entries.next_id;
        entries.next_id += 1;
        let (evict, eviction) = oneshot::channel();
        let (shut_down, shutdown) = oneshot::channel();
        let entry = ConnectionEntry { usage, requests, principal: None, evict, shut_down: Some(shut_down) };
        entries.open.insert(id, entry);
        let permit = ConnectionPermit { table: Arc::clone(self), id, usage };
        (permit, EndSignals { eviction, shutdown })
    }

    /// Tells all connections that the server shuts down.
    pub(crate) fn shut_down(&self) {
        let mut entries = self.entries.lock();
        for sender in entries.open.values_mut().filter_map(|entry| entry.shut_down.take()) {
            // Fails if the connection ends at the same time.
            let _ = sender.send(());
        }
    }
}

impl OpenConnections {
    /// Evicts an idle connection if `limit` is reached. Returns whether there is room for one more connection. A
    /// connection without a request so far is evicted first, then one of the client with the most connections.
    fn make_room(&mut self, usage: ConnectionUse, limit: usize) -> bool {
        let of_use = || self.open.iter().filter(|(_, entry)| entry.usage == usage);
        if of_use().count() < limit {
            return true;
        }
        let mut counts: HashMap<&Principal, usize> = HashMap::new();
        for principal in self.open.values().filter_map(|entry| entry.principal.as_ref()) {
            *counts.entry(principal).or_default() += 1;
        }
        let rank = |entry: &ConnectionEntry| {
            entry.principal.as_ref().map_or(usize::MAX, |principal| counts[principal])
        };
        let evicted = of_use()
            .filter(|(_, entry)| entry.requests.is_idle())
            .max_by_key(|(id, entry)| (rank(entry), Reverse(**id)));
        let Some(id) = evicted.map(|(id, _)| *id) else { return false };
        if let Some(entry) = self.open.remove(&id) {
            // Fails if the connection ends at the same time.
            let _ = entry.evict.send(());
        }
        true
    }
}

impl ConnectionPermit {
    /// Checks that a request of a client may use the connection. A client with a token may have as many busy
    /// connections as remain for the others.
    pub(crate) fn admit(&self, principal: &Principal) -> Result<(), ConnectionsExceeded> {
        if self.usage == ConnectionUse::Operator {
            return Err(ConnectionsExceeded);
        }
        let mut entries = self.table.entries.lock();
        // An evicted connection has no entry any more.
        let Some(entry) = entries.open.get_mut(&self.id) else { return Err(ConnectionsExceeded) };
        if entry.principal.as_ref() != Some(principal) {
            entry.principal = Some(principal.clone());
        }
        // Below half of the limit, no client can have more than its share.
        if principal.is_anonymous() || entries.open.len() <= self.table.limit / 2 {
            return Ok(());
        }
        let busy = || entries.open.values().filter(|entry| !entry.requests.is_idle());
        let own = busy().filter(|entry| entry.principal.as_ref() == Some(principal)).count();
        let free = self.table.limit.saturating_sub(busy().count());
        // Its first connections are always served.
        if own > 1 && own > free { Err(ConnectionsExceeded) } else { Ok(()) }
    }

    /// What the connection may be used for.
    pub(crate) fn usage(&self) -> ConnectionUse {
        self.usage
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.table.entries.lock().open.remove(&self.id);
    }
}
