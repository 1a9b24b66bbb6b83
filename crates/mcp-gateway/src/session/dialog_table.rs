//! The table of the dialogs of clients without sessions, by the names that the clients chose. A client that names none
//! has one for its token or, without tokens, for its connection.
//!
//! A name is valid only for its client, so it cannot be guessed by others. Without tokens all clients count as one,
//! and equal names share a dialog. An unused dialog ends, and with it its leases.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use mcp_host_model::{MethodName, RawJson};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::access::principal::Principal;
use crate::limits::bounds::Bounds;
use crate::limits::byte_budget::Account;
use crate::session::client_dialog::ClientDialog;
use crate::session::usage::{CapacityError, TableEntry, TableLimits, Usage, is_call};

/// Maximum size of a dialog's name in bytes.
pub(crate) const MAX_NAME_BYTES: usize = 256;

/// The name of a dialog. A default dialog is for clients with equal capabilities, because a leased server receives the
/// capabilities of one client.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum DialogName {
    /// Named by the client.
    Named(String),
    /// The default with a token, for a client with these capabilities.
    PerPrincipal(RawJson),
    /// The default without tokens, for a client with these capabilities.
    PerConnection(ConnectionId, RawJson),
}

/// The client that a dialog belongs to, and the dialog's name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct DialogKey {
    pub(crate) principal: Principal,
    pub(crate) name: DialogName,
}

/// Identifies a connection of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ConnectionId(u64);

impl ConnectionId {
    /// Returns an id that is unique in this process.
    pub(crate) fn unique() -> ConnectionId {
        static LAST: AtomicU64 = AtomicU64::new(0);
        ConnectionId(LAST.fetch_add(1, Ordering::Relaxed))
    }

    /// The account of a connection whose client has no token.
    pub(crate) fn account(self) -> Account {
        Account::Connection(self.0)
    }
}

/// The dialogs of all clients.
#[derive(Debug)]
pub(crate) struct DialogTable {
    table: Mutex<HashMap<DialogKey, DialogEntry>>,
    limits: TableLimits,
}

/// A dialog, and when it was used.
#[derive(Debug)]
struct DialogEntry {
    dialog: Arc<ClientDialog>,
    usage: Usage,
}

impl DialogTable {
    /// An empty table with these limits.
    pub(crate) fn new(bounds: &Bounds) -> DialogTable {
        DialogTable {
            table: Mutex::default(),
            limits: TableLimits { total: bounds.sessions, per_client: bounds.sessions_per_client },
        }
    }

    /// Returns the dialog with this key for a request with this method. `start` creates it if it is missing. At a
    /// limit, one that is not active is evicted.
    pub(crate) fn get_or_create(
        &self,
        key: DialogKey,
        method: &MethodName,
        now: Instant,
        start: impl FnOnce() -> Arc<ClientDialog>,
    ) -> Result<Arc<ClientDialog>, CapacityError> {
        let mut table = self.table.lock();
        if let Some(entry) = table.get_mut(&key) {
            entry.usage.last_used = now;
            entry.usage.has_called |= is_call(method);
            return Ok(Arc::clone(&entry.dialog));
        }
        let own = table.keys().filter(|other| other.principal == key.principal).count();
        if !self.limits.have_room(table.len(), own) {
            let entries = table.iter().map(|(key, entry)| TableEntry {
                key,
                principal: &key.principal,
                usage: entry.is_unused().then_some(entry.usage),
            });
            if let Some(oldest) = self.limits.make_room(entries, &key.principal, now)? {
                table.remove(&oldest);
            }
        }
        let dialog = start();
        let owner = match key.name {
            DialogName::Named(_) => None,
            DialogName::PerPrincipal(_) => Some("its token"),
            DialogName::PerConnection(..) => Some("its connection"),
        };
        if let Some(owner) = owner {
            let dialog = dialog.id();
            tracing::info!(%dialog, "a client without a session uses leased servers: it has a dialog for {owner}");
        }
        let usage = Usage { has_called: is_call(method), last_used: now };
        table.insert(key, DialogEntry { dialog: Arc::clone(&dialog), usage });
        Ok(dialog)
    }

    /// Removes the dialogs of a connection. Running calls keep theirs.
    pub(crate) fn end_connection(&self, connection: ConnectionId) {
        let is_other =
            |name: &DialogName| !matches!(name, DialogName::PerConnection(id, _) if *id == connection);
        self.table.lock().retain(|key, _| is_other(&key.name));
    }

    /// Removes dialogs that were unused for `idle`.
    pub(crate) fn drop_unused(&self, now: Instant, idle: Duration) {
        self.table.lock().retain(|_, entry| {
            if !entry.is_unused() {
                entry.usage.last_used = now;
            }
            now.saturating_duration_since(entry.usage.last_used) < idle
        });
    }

    /// Removes the dialogs of these clients.
    pub(crate) fn drop_clients(&self, principals: &[Principal]) {
        self.table.lock().retain(|key, _| !principals.contains(&key.principal));
    }

    /// Removes all dialogs.
    pub(crate) fn drop_all(&self) {
        self.table.lock().clear();
    }

    /// The number of dialogs.
    pub(crate) fn len(&self) -> usize {
        self.table.lock().len()
    }
}

impl DialogEntry {
    /// Whether no request of the dialog is running.
    fn is_unused(&self) -> bool {
        Arc::strong_count(&self.dialog) == 1
    }
}
