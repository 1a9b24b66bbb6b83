//! Stopped dialogs: a provider refused a request that a retry cannot fix (DM-066).
//!
//! A dialog is stopped until it is resumed or ends. mcp-registry decides about the failure.

use std::sync::Arc;

use super::state::{DialogStop, Machine};
use crate::state::dialog_id::DialogId;
use crate::supervisor::dialog_end::DialogEnd;

/// The maximum number of stopped dialogs. Beyond it the first by name is resumed.
const MAX_STOPPED_DIALOGS: usize = 4096;

impl<I: Clone> Machine<I> {
    /// Stops a dialog; a new reason replaces the old one.
    pub(super) fn stop(&mut self, dialog: DialogId, stop: DialogStop) {
        if self.stopped.get(&dialog) == Some(&stop) {
            return;
        }
        let stopped = Arc::make_mut(&mut self.stopped);
        stopped.insert(dialog, stop);
        if stopped.len() > MAX_STOPPED_DIALOGS {
            stopped.pop_first();
        }
        self.changed = true;
    }

    /// Handles the end of a dialog: resumes it, unless a later dialog with the same id is stopped.
    pub(super) fn forget_stopped_dialog(&mut self, end: &DialogEnd) {
        if self.stopped.get(&end.dialog).is_some_and(|it| it.ends_seen <= end.number) {
            self.resume(&end.dialog);
        }
    }

    /// Resumes a dialog.
    pub(super) fn resume(&mut self, dialog: &DialogId) {
        if self.stopped.contains_key(dialog) {
            Arc::make_mut(&mut self.stopped).remove(dialog);
            self.changed = true;
        }
    }
}
