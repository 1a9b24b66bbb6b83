//! Ends of dialogs, and their order among the requests of dialogs.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::state::dialog_id::DialogId;

/// The end of one dialog. It does not affect later dialogs with the same id.
#[derive(Debug, Clone)]
pub(crate) struct DialogEnd {
    /// The dialog.
    pub(crate) dialog: DialogId,
    /// The number of ends before this one. A request belongs to this dialog if at most so many had happened before it.
    pub(crate) number: u64,
}

/// A counter of ended dialogs. The count at a request shows whether the request precedes the end of a dialog.
#[derive(Debug, Clone, Default)]
pub(crate) struct DialogEndCounter(Arc<DialogCounts>);

/// The counts that all handles of dialogs share.
#[derive(Debug, Default)]
struct DialogCounts {
    /// The number of ends so far.
    ends: AtomicU64,
    /// The number of handles of each dialog.
    handles: Mutex<HashMap<DialogId, usize>>,
}

impl DialogEndCounter {
    /// Returns the number of ends so far.
    pub(crate) fn current(&self) -> u64 {
        self.0.ends.load(Ordering::SeqCst)
    }

    /// Counts a new handle of a dialog.
    pub(crate) fn add_handle(&self, dialog: &DialogId) {
        *self.0.handles.lock().entry(dialog.clone()).or_default() += 1;
    }

    /// Removes a handle of a dialog. If it was the last one, counts an end, and returns the number of ends before it.
    pub(super) fn remove_handle(&self, dialog: &DialogId) -> Option<u64> {
        let mut handles = self.0.handles.lock();
        let count = handles.get_mut(dialog)?;
        *count -= 1;
        if *count > 0 {
            return None;
        }
        handles.remove(dialog);
        // Under the lock, so that a new handle sees this end.
        Some(self.0.ends.fetch_add(1, Ordering::SeqCst))
    }
}
