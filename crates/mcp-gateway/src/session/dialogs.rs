//! The dialogs of the stateless era, by the names that their clients give them.
//!
//! A name counts for its client alone: nobody reaches another one's dialog by guessing it. Where there are no tokens all
//! clients are one, and two who choose the same name share a dialog. What a dialog has leased goes when it was not used
//! for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mcp_host::{Dialog, DialogId, Host};
use mcp_transport::CallerId;
use tokio::time::Instant;

use crate::access::principal::Principal;
use crate::access::secret_id::secret_id;
use crate::limits::bounds::Bounds;
use crate::session::registry::{Full, makes_room};

/// The longest name of a dialog, in bytes.
pub(crate) const LONGEST_NAME: usize = 256;

/// The dialogs.
#[derive(Debug)]
pub(crate) struct Dialogs {
    table: Mutex<HashMap<(Principal, String), Entry>>,
    most: usize,
    most_of_one: usize,
}

#[derive(Debug)]
struct Entry {
    dialog: Arc<Dialog>,
    owner: CallerId,
    last_used: Instant,
}

impl Dialogs {
    /// No dialogs, of as many as the bounds allow.
    pub(crate) fn new(bounds: &Bounds) -> Dialogs {
        Dialogs { table: Mutex::default(), most: bounds.sessions, most_of_one: bounds.sessions_of_one }
    }

    /// The dialog of this name, which begins where there is none yet.
    pub(crate) fn of(
        &self,
        host: &Host,
        principal: &Principal,
        name: &str,
        now: Instant,
    ) -> Result<(Arc<Dialog>, CallerId), Full> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (principal.clone(), name.to_owned());
        if let Some(entry) = table.get_mut(&key) {
            entry.last_used = now;
            return Ok((Arc::clone(&entry.dialog), entry.owner));
        }
        let own = table.keys().filter(|(it, _)| it == principal).count();
        if table.len() >= self.most || own >= self.most_of_one {
            let own = table.iter().filter(|((it, _), entry)| it == principal && entry.is_free());
            let oldest = own.min_by_key(|(_, it)| it.last_used);
            let oldest = oldest.filter(|(_, it)| makes_room(principal, it.last_used, now));
            let oldest = oldest.map(|(key, _)| key.clone()).ok_or(Full)?;
            table.remove(&oldest);
        }
        // Its own name inside is nobody's to choose: two clients may well choose the same.
        let dialog = Arc::new(host.dialog(DialogId::new(secret_id())));
        let owner = CallerId::unique();
        table.insert(key, Entry { dialog: Arc::clone(&dialog), owner, last_used: now });
        Ok((dialog, owner))
    }

    /// Drops what has not been used for as long as `idle`.
    pub(crate) fn drop_unused(&self, now: Instant, idle: Duration) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.retain(|_, it| {
            if !it.is_free() {
                it.last_used = now;
            }
            now.saturating_duration_since(it.last_used) < idle
        });
    }

    /// Drops all of them.
    pub(crate) fn drop_all(&self) {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Entry {
    /// Does no request of it run?
    fn is_free(&self) -> bool {
        Arc::strong_count(&self.dialog) == 1
    }
}
