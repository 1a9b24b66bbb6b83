//! The versions of the lists that a client knows, to detect changes.

use crate::lists::listing::{ListKind, Listing};

/// The hashes of the lists that a client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KnownLists {
    tools: blake3::Hash,
    prompts: blake3::Hash,
    resources: blake3::Hash,
    templates: blake3::Hash,
}

/// A changed list. Changed templates are reported as resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListChange {
    Tools,
    Prompts,
    Resources,
}

impl ListChange {
    /// The method of the notification.
    pub(crate) fn method(self) -> &'static str {
        match self {
            ListChange::Tools => "notifications/tools/list_changed",
            ListChange::Prompts => "notifications/prompts/list_changed",
            ListChange::Resources => "notifications/resources/list_changed",
        }
    }
}

impl KnownLists {
    /// The current hashes.
    pub(crate) fn of(listing: &Listing) -> KnownLists {
        KnownLists {
            tools: listing.hash(ListKind::Tools),
            prompts: listing.hash(ListKind::Prompts),
            resources: listing.hash(ListKind::Resources),
            templates: listing.hash(ListKind::Templates),
        }
    }

    /// Compares with the current lists, and remembers them.
    pub(crate) fn update(&mut self, listing: &Listing) -> Vec<ListChange> {
        let now = KnownLists::of(listing);
        let before = std::mem::replace(self, now);
        let mut res = Vec::new();
        if before.tools != now.tools {
            res.push(ListChange::Tools);
        }
        if before.prompts != now.prompts {
            res.push(ListChange::Prompts);
        }
        if (before.resources, before.templates) != (now.resources, now.templates) {
            res.push(ListChange::Resources);
        }
        res
    }
}
