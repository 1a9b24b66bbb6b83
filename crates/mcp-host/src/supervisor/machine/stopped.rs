//! Dialogs that are stopped: their model's provider refused a request that a repeat cannot mend (DM-066).
//!
//! One is stopped until somebody says that it may go on, or it is over. Nothing here judges a refusal: mcp-registry does.

use std::sync::Arc;

use mcp_registry::Problem;

use super::{Action, Machine};
use crate::supervisor::dialog::DialogEnd;
use crate::supervisor::dialog::DialogId;

/// How many dialogs can be stopped at once. A host that stops more of them has lost count, and the one with the first
/// name goes on.
const MOST: usize = 4096;

/// Why a dialog is stopped.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stop {
    /// In words.
    pub(crate) problem: Problem,
    /// How many dialogs had ended when it was stopped.
    pub(super) asked: u64,
}

impl<I: Clone> Machine<I> {
    /// Stops a dialog for this reason; one that is stopped already has the new reason.
    pub(super) fn stop(&mut self, dialog: DialogId, stop: Stop) -> Vec<Action<I>> {
        if self.stopped.get(&dialog) == Some(&stop) {
            return Vec::new();
        }
        let stopped = Arc::make_mut(&mut self.stopped);
        stopped.insert(dialog, stop);
        if stopped.len() > MOST {
            stopped.pop_first();
        }
        self.changed = true;
        Vec::new()
    }

    /// A dialog is over. A later one of that name stays as it is.
    pub(super) fn stopped_over(&mut self, end: &DialogEnd) {
        if self.stopped.get(&end.dialog).is_some_and(|it| it.asked <= end.number) {
            self.resume(&end.dialog);
        }
    }

    /// Lets a dialog go on.
    pub(super) fn resume(&mut self, dialog: &DialogId) -> Vec<Action<I>> {
        if self.stopped.contains_key(dialog) {
            Arc::make_mut(&mut self.stopped).remove(dialog);
            self.changed = true;
        }
        Vec::new()
    }
}
