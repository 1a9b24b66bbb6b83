//! The registry of the callers that respond to server requests of each dialog.

use std::collections::HashMap;
use std::sync::Arc;

use mcp_host_transport::{Caller, Handlers};
use parking_lot::RwLock;

use crate::state::dialog_id::DialogId;

/// The registered caller of each dialog.
#[derive(Default)]
pub(crate) struct DialogCallers(RwLock<HashMap<DialogId, Arc<Caller>>>);

/// The registration of a dialog's caller. Dropping it removes the caller.
pub(crate) struct CallerRegistration {
    callers: Arc<DialogCallers>,
    dialog: DialogId,
    caller: Arc<Caller>,
}

impl DialogCallers {
    /// Registers `caller` for `dialog`, replacing an earlier one.
    pub(crate) fn register(
        self: &Arc<DialogCallers>,
        dialog: DialogId,
        caller: Arc<Caller>,
    ) -> CallerRegistration {
        let mut callers = self.0.write();
        callers.insert(dialog.clone(), Arc::clone(&caller));
        CallerRegistration { callers: Arc::clone(self), dialog, caller }
    }

    /// Returns the registered caller of `dialog`.
    pub(crate) fn caller(&self, dialog: &DialogId) -> Option<Arc<Caller>> {
        let callers = self.0.read();
        callers.get(dialog).cloned()
    }
}

impl Drop for CallerRegistration {
    fn drop(&mut self) {
        let mut callers = self.callers.0.write();
        // A dialog with the same name may have registered another caller since.
        if callers.get(&self.dialog).is_some_and(|it| Arc::ptr_eq(it, &self.caller)) {
            callers.remove(&self.dialog);
        }
    }
}

/// Returns the handlers of a dialog, completed with those of the host. The listener is always that of the host.
pub(crate) fn merge_handlers(own: &Handlers, host: &Handlers) -> Handlers {
    let Handlers { sampling, elicitation, roots, listener: _, raw_requests, .. } = own.clone();
    let mut handlers = Handlers::default();
    handlers.sampling = sampling.or_else(|| host.sampling.clone());
    handlers.elicitation = elicitation.or_else(|| host.elicitation.clone());
    handlers.roots = roots.or_else(|| host.roots.clone());
    handlers.listener = host.listener.clone();
    handlers.raw_requests = raw_requests.or_else(|| host.raw_requests.clone());
    handlers
}
