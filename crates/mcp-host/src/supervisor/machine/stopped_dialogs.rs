//! Stopped dialogs: dialogs whose provider refused a request in a way that a retry cannot fix (DM-066).
//!
//! A dialog is stopped until it is resumed or ends. mcp-registry decides which failures stop a dialog.

use std::sync::Arc;

use super::state::{DialogStop, Machine};
use crate::state::dialog_id::DialogId;
use crate::supervisor::dialog_end::DialogEnd;

/// The maximum number of stopped dialogs. If it is exceeded, the first one by name is resumed.
const MAX_STOPPED_DIALOGS: usize = 4096;

impl<I: Clone> Machine<I> {
    /// Stops a dialog. A new reason replaces the old one.
    pub(super) fn stop_dialog(&mut self, dialog: DialogId, stop: DialogStop) {
        if self.stopped_dialogs.get(&dialog) == Some(&stop) {
            return;
        }
        let stopped = Arc::make_mut(&mut self.stopped_dialogs);
        stopped.insert(dialog, stop);
        if stopped.len() > MAX_STOPPED_DIALOGS {
            stopped.pop_first();
        }
        self.is_changed = true;
    }

    /// Handles the end of a dialog: removes its stop, unless that is one of a later dialog with the same id.
    pub(super) fn forget_stopped_dialog(&mut self, end: &DialogEnd) {
        if self.stopped_dialogs.get(&end.dialog).is_some_and(|it| it.ends_seen <= end.number) {
            self.resume_dialog(&end.dialog);
        }
    }

    /// Resumes a dialog.
    pub(super) fn resume_dialog(&mut self, dialog: &DialogId) {
        if self.stopped_dialogs.contains_key(dialog) {
            Arc::make_mut(&mut self.stopped_dialogs).remove(dialog);
            self.is_changed = true;
        }
    }
}
