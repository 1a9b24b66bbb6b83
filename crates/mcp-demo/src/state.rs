//! What a server remembers between requests: the tools added at run time and the log level.
//!
//! One state serves a process over pipes; over HTTP each legacy session has its own, and the sessionless era shares
//! one, because there nothing on the wire tells two clients apart.

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

/// How many tools may be added to one state: enough for a demonstration, too few to fill the memory.
pub(crate) const MOST_ADDED: usize = 100;

/// What [`State::toggle`] did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Toggled {
    /// The tool is new in the list.
    Added,
    /// The tool was in the list, and is no more.
    Removed,
    /// There are [`MOST_ADDED`] tools already.
    Full,
}

/// Tools that stand in the place of the server's own, for tests that need names of their choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// Their names, which may be any. One that has the name of an own tool is that tool; the others say who they are.
    pub tools: Vec<String>,
    /// How many of them a page of the list has.
    pub page: Option<NonZeroUsize>,
    /// How long those take that only say who they are.
    pub delay: Duration,
}

/// The memory of one server process or session.
pub(crate) struct State {
    added: Mutex<BTreeSet<String>>,
    threshold: AtomicU8,
    changes: watch::Sender<u64>,
    offer: Option<Offer>,
}

impl Default for State {
    fn default() -> State {
        let (added, threshold, changes) = (Mutex::default(), AtomicU8::new(0), watch::Sender::new(0));
        State { added, threshold, changes, offer: None }
    }
}

impl State {
    /// A memory of a server that offers this and nothing else.
    pub(crate) fn offering(offer: Offer) -> State {
        State { offer: Some(offer), ..State::default() }
    }

    /// What stands in the place of the server's own tools.
    pub(crate) fn offer(&self) -> Option<&Offer> {
        self.offer.as_ref()
    }

    /// The tools added at run time, by name.
    pub(crate) fn added(&self) -> Vec<String> {
        self.lock().iter().cloned().collect()
    }

    /// Whether a tool of this name was added at run time.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.lock().contains(name)
    }

    /// Adds the tool, or removes it when it is there.
    pub(crate) fn toggle(&self, name: &str) -> Toggled {
        let mut added = self.lock();
        let res = if added.remove(name) {
            Toggled::Removed
        } else if added.len() == MOST_ADDED {
            return Toggled::Full;
        } else {
            added.insert(name.to_owned());
            Toggled::Added
        };
        drop(added);
        self.changes.send_modify(|number| *number += 1);
        res
    }

    /// Sees every change of the tool list from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The rank of the lowest log level a legacy client wants; all of them until it says otherwise.
    pub(crate) fn threshold(&self) -> u8 {
        self.threshold.load(Ordering::Relaxed)
    }

    /// Sets what [`State::threshold`] answers.
    pub(crate) fn set_threshold(&self, rank: u8) {
        self.threshold.store(rank, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<String>> {
        // A set of names is whole after any panic.
        self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_comes_and_goes_and_the_number_of_tools_is_bounded() {
        let state = State::default();
        assert_eq!(state.toggle("a"), Toggled::Added);
        assert_eq!(state.toggle("a"), Toggled::Removed);
        for number in 0..MOST_ADDED {
            assert_eq!(state.toggle(&format!("t{number}")), Toggled::Added);
        }
        assert_eq!(state.toggle("one_more"), Toggled::Full);
        assert_eq!(state.toggle("t0"), Toggled::Removed);
    }
}
