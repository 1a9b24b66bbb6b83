//! Cache of the protocol era of each server, so that the next start needs no probe.
//!
//! An entry may be outdated. The session then tries the other era, and the result replaces the entry.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcp_model::{Era, ServerId};

/// The maximum number of entries. Only endless reloads with new names reach it.
const MAX_SERVERS: usize = 4096;

/// Eras by server id and command or URL, because another command is another server.
#[derive(Debug, Default)]
pub(crate) struct KnownEras(Mutex<HashMap<(ServerId, String), Era>>);

impl KnownEras {
    /// The last era of a server.
    pub(crate) fn get(&self, id: &ServerId, label: &str) -> Option<Era> {
        self.lock().get(&(id.clone(), label.to_owned())).copied()
    }

    /// Stores the era of a server.
    pub(crate) fn insert(&self, id: &ServerId, label: &str, era: Era) {
        let mut known = self.lock();
        if known.len() >= MAX_SERVERS {
            known.clear();
        }
        known.insert((id.clone(), label.to_owned()), era);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(ServerId, String), Era>> {
        // Every change under the lock is complete before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_keyed_by_id_and_label() {
        let known = KnownEras::default();
        let id = |text: &str| ServerId::parse(text).unwrap();
        known.insert(&id("a"), "npx", Era::Legacy);
        known.insert(&id("a"), "npx", Era::Modern);
        assert_eq!(known.get(&id("a"), "npx"), Some(Era::Modern));
        assert_eq!((known.get(&id("a"), "uvx"), known.get(&id("b"), "npx")), (None, None));
        for number in 0..MAX_SERVERS {
            known.insert(&id(&number.to_string()), "npx", Era::Legacy);
        }
        assert_eq!(known.lock().len(), 1);
    }
}
