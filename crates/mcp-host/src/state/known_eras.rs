//! The era in which each server was met last, so that the next start costs no probe.
//!
//! What is known may be wrong: a session that finds it so tries everything else, and what it finds is learnt.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use mcp_model::{Era, ServerId};

/// How many servers are remembered. A host has fewer; only one that is reloaded for ever with new names meets more.
const MOST: usize = 4096;

/// What is known, by the server's id and its command or URL: under another command it is another server.
#[derive(Debug, Default)]
pub(crate) struct KnownEras(Mutex<HashMap<(ServerId, String), Era>>);

impl KnownEras {
    /// The era of a server, where it was met before.
    pub(crate) fn of(&self, id: &ServerId, label: &str) -> Option<Era> {
        self.lock().get(&(id.clone(), label.to_owned())).copied()
    }

    /// A server was met in this era.
    pub(crate) fn learn(&self, id: &ServerId, label: &str, era: Era) {
        let mut known = self.lock();
        if known.len() >= MOST {
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
    fn a_server_is_known_by_its_id_and_its_place() {
        let known = KnownEras::default();
        let id = |text: &str| ServerId::parse(text).unwrap();
        known.learn(&id("a"), "npx", Era::Legacy);
        known.learn(&id("a"), "npx", Era::Modern);
        assert_eq!(known.of(&id("a"), "npx"), Some(Era::Modern));
        assert_eq!((known.of(&id("a"), "uvx"), known.of(&id("b"), "npx")), (None, None));
        for number in 0..MOST {
            known.learn(&id(&number.to_string()), "npx", Era::Legacy);
        }
        assert_eq!(known.lock().len(), 1);
    }
}
