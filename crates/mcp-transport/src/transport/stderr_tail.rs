//! The last lines that a process wrote to standard error.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;

/// Number of lines that are kept.
#[cfg(feature = "stdio")]
pub(crate) const MAX_TAIL_LINES: usize = 20;

/// The last lines of standard error, shared with the code that reads them.
#[derive(Debug, Clone, Default)]
pub(crate) struct StderrTail(Arc<Mutex<TailLines>>);

#[derive(Debug, Default)]
struct TailLines {
    lines: VecDeque<String>,
    /// The number of lines so far.
    count: u64,
}

/// The last lines that a process wrote to standard error.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct StderrLines {
    /// The number of lines so far.
    pub count: u64,
    /// The last ones of them, without secrets.
    pub lines: Vec<String>,
}

impl StderrTail {
    /// The lines at this moment.
    pub(crate) fn snapshot(&self) -> StderrLines {
        let state = self.0.lock();
        StderrLines { count: state.count, lines: state.lines.iter().cloned().collect() }
    }

    #[cfg(feature = "stdio")]
    pub(crate) fn push(&self, line: String) {
        let mut state = self.0.lock();
        if state.lines.len() == MAX_TAIL_LINES {
            state.lines.pop_front();
        }
        state.lines.push_back(line);
        state.count += 1;
    }
}
