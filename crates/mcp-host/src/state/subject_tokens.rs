//! The access tokens of users, by dialog. They are exchanged for tokens of servers, and sent to no server.

use std::collections::HashMap;
use std::sync::Arc;

use mcp_host_model::Secret;
use parking_lot::{Mutex, RwLock};

use crate::state::dialog_id::DialogId;

/// The latest access token of a dialog's user. Instances of the dialog have weak references to it, so it is dropped
/// with the dialog.
pub(crate) type SubjectToken = Mutex<Secret>;

/// The access tokens of users by dialog.
#[derive(Default)]
pub(crate) struct SubjectTokens(RwLock<HashMap<DialogId, Arc<SubjectToken>>>);

impl SubjectTokens {
    /// Returns the token of a dialog's user, if there is one.
    pub(crate) fn get(&self, dialog: &DialogId) -> Option<Arc<SubjectToken>> {
        self.0.read().get(dialog).cloned()
    }

    /// Sets or replaces the token of a dialog's user.
    pub(crate) fn set(&self, dialog: &DialogId, token: Secret) {
        match self.0.write().entry(dialog.clone()) {
            std::collections::hash_map::Entry::Occupied(entry) => *entry.get().lock() = token,
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(Arc::new(Mutex::new(token)));
            }
        }
    }

    /// Drops the token of an ended dialog.
    pub(crate) fn remove(&self, dialog: &DialogId) {
        self.0.write().remove(dialog);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_replaced_and_ends_with_its_dialog() {
        let (tokens, dialog) = (SubjectTokens::default(), DialogId::new("a"));
        assert!(tokens.get(&dialog).is_none());
        tokens.set(&dialog, Secret::from("first"));
        let held = Arc::downgrade(&tokens.get(&dialog).unwrap());
        tokens.set(&dialog, Secret::from("second"));
        assert_eq!(held.upgrade().unwrap().lock().expose(), "second");
        assert!(tokens.get(&DialogId::new("b")).is_none());

        // A later dialog of the same id may belong to another user.
        tokens.remove(&dialog);
        tokens.set(&dialog, Secret::from("third"));
        assert!(held.upgrade().is_none());
    }
}
