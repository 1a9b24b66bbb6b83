//! The versions of the lists that a client knows, to detect changes.

use crate::lists::definitions::ListKind;
use crate::lists::listing::Listing;

/// The hashes of the lists that a client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KnownLists([blake3::Hash; 4]);

impl KnownLists {
    /// The current hashes.
    pub(crate) fn of(listing: &Listing) -> KnownLists {
        KnownLists(ListKind::ALL.map(|kind| listing.hash(kind)))
    }

    /// Compares with the current lists, and remembers them. Changed templates are returned as resources.
    pub(crate) fn update(&mut self, listing: &Listing) -> Vec<ListKind> {
        let previous = std::mem::replace(self, KnownLists::of(listing));
        let is_changed = |kind: ListKind| previous.0[kind as usize] != self.0[kind as usize];
        let mut changed = ListKind::ALL.to_vec();
        changed.retain(|kind| match kind {
            ListKind::Tools | ListKind::Prompts => is_changed(*kind),
            ListKind::Resources => is_changed(ListKind::Resources) || is_changed(ListKind::Templates),
            ListKind::Templates => false,
        });
        changed
    }
}
