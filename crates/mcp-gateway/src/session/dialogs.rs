//! The dialogs of clients without sessions, by the names that the clients chose.
//!
//! A name is valid only for its client, so it cannot be guessed by others. Without tokens all clients count as one,
//! and equal names share a dialog. An unused dialog ends, and with it its leases.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use mcp_host::{Dialog, DialogId, Host};
use mcp_transport::CallerId;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::access::principal::Principal;
use crate::access::secret_id::secret_id;
use crate::limits::bounds::Bounds;
use crate::session::registry::{CapacityError, is_evictable};

/// Maximum size of a dialog's name in bytes.
pub(crate) const MAX_NAME_BYTES: usize = 256;

/// The dialogs of all clients.
#[derive(Debug)]
pub(crate) struct Dialogs {
    table: Mutex<HashMap<(Principal, String), Entry>>,
    max_dialogs: usize,
    max_per_client: usize,
}

#[derive(Debug)]
struct Entry {
    dialog: Arc<Dialog>,
    owner: CallerId,
    last_used: Instant,
}

impl Dialogs {
    /// An empty table with these limits.
    pub(crate) fn new(bounds: &Bounds) -> Dialogs {
        Dialogs {
            table: Mutex::default(),
            max_dialogs: bounds.sessions,
            max_per_client: bounds.sessions_per_client,
        }
    }

    /// The dialog of this name, which is created if it is missing.
    pub(crate) fn get_or_create(
        &self,
        host: &Host,
        principal: &Principal,
        name: &str,
        now: Instant,
    ) -> Result<(Arc<Dialog>, CallerId), CapacityError> {
        let mut table = self.table.lock();
        let key = (principal.clone(), name.to_owned());
        if let Some(entry) = table.get_mut(&key) {
            entry.last_used = now;
            return Ok((Arc::clone(&entry.dialog), entry.owner));
        }
        let own = || table.iter().filter(|((owner, _), _)| owner == principal);
        if table.len() >= self.max_dialogs || own().count() >= self.max_per_client {
            let unused = own().filter(|(_, entry)| entry.is_unused());
            let (oldest, entry) = unused.min_by_key(|(_, entry)| entry.last_used).ok_or(CapacityError)?;
            if !is_evictable(principal, entry.last_used, now) {
                return Err(CapacityError);
            }
            let oldest = oldest.clone();
            table.remove(&oldest);
        }
        // The internal id is random, because two clients may choose the same name.
        let dialog = Arc::new(host.dialog(DialogId::new(secret_id())));
        let owner = CallerId::unique();
        table.insert(key, Entry { dialog: Arc::clone(&dialog), owner, last_used: now });
        Ok((dialog, owner))
    }

    /// Removes dialogs that were unused for `idle`.
    pub(crate) fn drop_unused(&self, now: Instant, idle: Duration) {
        self.table.lock().retain(|_, entry| {
            if !entry.is_unused() {
                entry.last_used = now;
            }
            now.saturating_duration_since(entry.last_used) < idle
        });
    }

    /// Removes the dialogs of some clients.
    pub(crate) fn drop_of(&self, is_dropped: impl Fn(&Principal) -> bool) {
        self.table.lock().retain(|(principal, _), _| !is_dropped(principal));
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

impl Entry {
    /// Whether no request of the dialog is running.
    fn is_unused(&self) -> bool {
        Arc::strong_count(&self.dialog) == 1
    }
}
