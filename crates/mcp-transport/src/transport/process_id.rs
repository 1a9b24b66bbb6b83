//! The process id of a transport that starts a process, and what the process writes to standard error.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;

use crate::transport::stderr_tail::{StderrLines, StderrTail};

/// A shared cell with the process that a transport started last.
#[derive(Debug, Clone, Default)]
pub struct ProcessIdCell(Arc<StartedProcess>);

#[derive(Debug, Default)]
struct StartedProcess {
    id: AtomicU32,
    stderr: Mutex<StderrTail>,
}

impl ProcessIdCell {
    /// The id; `None` before the process is started, and for a transport without one.
    pub fn id(&self) -> Option<u32> {
        Some(self.0.id.load(Ordering::Relaxed)).filter(|id| *id != 0)
    }

    /// Stores the id of a started process.
    pub fn set(&self, id: u32) {
        self.0.id.store(id, Ordering::Relaxed);
    }

    /// The last lines that the process wrote to standard error.
    pub fn stderr(&self) -> StderrLines {
        self.0.stderr.lock().snapshot()
    }

    /// Stores where the lines of the process are kept.
    #[cfg(feature = "stdio")]
    pub(crate) fn set_stderr(&self, tail: StderrTail) {
        *self.0.stderr.lock() = tail;
    }
}
