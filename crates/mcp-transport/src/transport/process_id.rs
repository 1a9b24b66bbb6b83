//! The process id of a transport that starts a process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A shared cell with the id of the process that a transport started last.
#[derive(Debug, Clone, Default)]
pub struct ProcessIdCell(Arc<AtomicU32>);

impl ProcessIdCell {
    /// The id; `None` before the process is started, and for a transport without one.
    pub fn id(&self) -> Option<u32> {
        Some(self.0.load(Ordering::Relaxed)).filter(|id| *id != 0)
    }

    /// Stores the id of a started process.
    pub fn set(&self, id: u32) {
        self.0.store(id, Ordering::Relaxed);
    }
}
