//! The versions of the lists that a client knows, to detect changes.

use crate::lists::definitions::CatalogList;
use crate::lists::listing::Listing;

/// The hashes of the lists that a client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KnownLists([blake3::Hash; 4]);

impl KnownLists {
    /// The current hashes.
    pub(crate) fn of(listing: &Listing) -> KnownLists {
        KnownLists(CatalogList::ALL.map(|kind| listing.hash(kind)))
    }

    /// Remembers the current lists. Returns those that have changed; changed templates are reported as resources.
    pub(crate) fn update(&mut self, listing: &Listing) -> Vec<CatalogList> {
        let previous = std::mem::replace(self, KnownLists::of(listing));
        let is_changed = |kind: CatalogList| previous.0[kind as usize] != self.0[kind as usize];
        let mut changed = CatalogList::ALL.to_vec();
        changed.retain(|kind| match kind {
            CatalogList::Tools | CatalogList::Prompts => is_changed(*kind),
            CatalogList::Resources => {
                is_changed(CatalogList::Resources) || is_changed(CatalogList::Templates)
            }
            CatalogList::Templates => false,
        });
        changed
    }
}
