//! What a client knows of the lists, so that he hears of what has become otherwise and of nothing else.

use crate::lists::listing::{Kind, Listing};

/// The lists as a client knows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Told {
    tools: blake3::Hash,
    prompts: blake3::Hash,
    resources: blake3::Hash,
    templates: blake3::Hash,
}

/// A list whose change is told. Templates are told of as resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Changed {
    Tools,
    Prompts,
    Resources,
}

impl Changed {
    /// The notification's method.
    pub(crate) fn method(self) -> &'static str {
        match self {
            Changed::Tools => "notifications/tools/list_changed",
            Changed::Prompts => "notifications/prompts/list_changed",
            Changed::Resources => "notifications/resources/list_changed",
        }
    }
}

impl Told {
    /// As they are.
    pub(crate) fn of(listing: &Listing) -> Told {
        Told {
            tools: listing.hash(Kind::Tools),
            prompts: listing.hash(Kind::Prompts),
            resources: listing.hash(Kind::Resources),
            templates: listing.hash(Kind::Templates),
        }
    }

    /// What has changed since, which is known from now on.
    pub(crate) fn tell(&mut self, listing: &Listing) -> Vec<Changed> {
        let now = Told::of(listing);
        let before = std::mem::replace(self, now);
        let mut res = Vec::new();
        if before.tools != now.tools {
            res.push(Changed::Tools);
        }
        if before.prompts != now.prompts {
            res.push(Changed::Prompts);
        }
        if (before.resources, before.templates) != (now.resources, now.templates) {
            res.push(Changed::Resources);
        }
        res
    }
}
