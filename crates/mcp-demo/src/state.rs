//! The state between requests: tools added at run time, and the log level.
//!
//! Over stdio there is one state. Over HTTP, each legacy session has its own, and modern requests share one,
//! because they do not identify a client.

use std::{
    collections::BTreeSet,
    num::NonZeroUsize,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use tokio::sync::watch;

/// The maximum number of tools that can be added.
pub(crate) const MAX_ADDED_TOOLS: usize = 100;

/// The era of the client that sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    /// Up to 2025-11-25: with `initialize`; the server may send requests.
    Legacy,
    /// From 2026-07-28: stateless.
    Modern,
}

/// The result of [`DemoState::toggle`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ToggleOutcome {
    /// The tool was added.
    Added,
    /// The tool was removed.
    Removed,
    /// There are already [`MAX_ADDED_TOOLS`] tools.
    Full,
}

/// Tools that replace the built-in ones, for tests that choose the names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CustomTools {
    /// The names. A name of a built-in tool selects that tool; other tools return their name.
    pub tools: Vec<String>,
    /// The page size of the list.
    pub page_size: Option<NonZeroUsize>,
    /// How long a tool that returns its name takes.
    pub delay: Duration,
}

impl CustomTools {
    /// Tools with these names, in one page and without a delay.
    pub fn new(tools: Vec<String>) -> CustomTools {
        CustomTools { tools, ..CustomTools::default() }
    }
}

/// The state of a session, or of all modern requests.
#[derive(Default)]
pub(crate) struct DemoState {
    /// The names of the tools added at run time.
    added: Mutex<BTreeSet<String>>,
    /// The rank of the lowest log level that is sent.
    threshold: AtomicU8,
    /// The number of changes of the tool list.
    changes: watch::Sender<u64>,
    custom_tools: Option<CustomTools>,
}

impl DemoState {
    /// The state of a server with only these tools.
    pub(crate) fn with_custom_tools(custom_tools: CustomTools) -> DemoState {
        DemoState { custom_tools: Some(custom_tools), ..DemoState::default() }
    }

    /// The tools that replace the built-in ones.
    pub(crate) fn custom_tools(&self) -> Option<&CustomTools> {
        self.custom_tools.as_ref()
    }

    /// The tools added at run time, by name.
    pub(crate) fn added(&self) -> Vec<String> {
        self.lock().iter().cloned().collect()
    }

    /// Whether a tool of this name was added at run time.
    pub(crate) fn has_added(&self, name: &str) -> bool {
        self.lock().contains(name)
    }

    /// Adds the tool, or removes it if it exists.
    pub(crate) fn toggle(&self, name: &str) -> ToggleOutcome {
        let mut added = self.lock();
        let outcome = if added.remove(name) {
            ToggleOutcome::Removed
        } else if added.len() == MAX_ADDED_TOOLS {
            return ToggleOutcome::Full;
        } else {
            added.insert(name.to_owned());
            ToggleOutcome::Added
        };
        drop(added);
        self.changes.send_modify(|number| *number += 1);
        outcome
    }

    /// Subscribes to changes of the tool list.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The rank of the lowest log level that a legacy client requested; 0 by default.
    pub(crate) fn threshold(&self) -> u8 {
        self.threshold.load(Ordering::Relaxed)
    }

    /// Sets the lowest log level.
    pub(crate) fn set_threshold(&self, rank: u8) {
        self.threshold.store(rank, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        // The set is consistent after any panic.
        self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_toggled_and_bounded() {
        let state = DemoState::default();
        assert_eq!(state.toggle("a"), ToggleOutcome::Added);
        assert_eq!(state.toggle("a"), ToggleOutcome::Removed);
        for number in 0..MAX_ADDED_TOOLS {
            assert_eq!(state.toggle(&format!("t{number}")), ToggleOutcome::Added);
        }
        assert_eq!(state.toggle("one_more"), ToggleOutcome::Full);
        assert_eq!(state.toggle("t0"), ToggleOutcome::Removed);
    }
}
