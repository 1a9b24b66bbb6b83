//! Who speaks for a dialog: whoever its host has said, for as long as the dialog goes on.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use mcp_transport::{Caller, Handlers};

use crate::supervisor::dialog::DialogId;

/// The callers of all dialogs that have one.
#[derive(Default)]
pub(crate) struct Voices(RwLock<HashMap<DialogId, Arc<Caller>>>);

/// That somebody speaks for a dialog. Dropped when that is over.
pub(crate) struct Voice {
    voices: Arc<Voices>,
    dialog: DialogId,
    caller: Arc<Caller>,
}

impl Voices {
    /// `caller` speaks for `dialog` from now on.
    pub(crate) fn raise(self: &Arc<Voices>, dialog: DialogId, caller: Arc<Caller>) -> Voice {
        let mut voices = self.0.write().unwrap_or_else(PoisonError::into_inner);
        voices.insert(dialog.clone(), Arc::clone(&caller));
        Voice { voices: Arc::clone(self), dialog, caller }
    }

    /// Who speaks for `dialog`.
    pub(crate) fn of(&self, dialog: &DialogId) -> Option<Arc<Caller>> {
        let voices = self.0.read().unwrap_or_else(PoisonError::into_inner);
        voices.get(dialog).cloned()
    }
}

impl Drop for Voice {
    fn drop(&mut self) {
        let mut voices = self.voices.0.write().unwrap_or_else(PoisonError::into_inner);
        // Somebody else may speak for a dialog of the same name by now.
        if voices.get(&self.dialog).is_some_and(|it| Arc::ptr_eq(it, &self.caller)) {
            voices.remove(&self.dialog);
        }
    }
}

impl fmt::Debug for Voice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Voice").field("dialog", &self.dialog).finish_non_exhaustive()
    }
}

/// A dialog's handlers, and where it has none, the host's. What is said on its own is heard by the host.
pub(crate) fn joined(own: &Handlers, host: &Handlers) -> Handlers {
    let Handlers { sampling, elicitation, roots, listener: _, raw_requests: questions } = own.clone();
    Handlers {
        sampling: sampling.or_else(|| host.sampling.clone()),
        elicitation: elicitation.or_else(|| host.elicitation.clone()),
        roots: roots.or_else(|| host.roots.clone()),
        listener: host.listener.clone(),
        raw_requests: questions.or_else(|| host.raw_requests.clone()),
    }
}
