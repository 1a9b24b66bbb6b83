//! What a user has approved of each server, and how a server differs from it: the lock, as values.
//!
//! A server may change what its tools say after somebody has looked at them, and a model obeys what they say. So what
//! was approved is written down: of every item a hash for each of its parts, over an encoding of our own (see
//! [`Digest`]), and the text of its description, so that a change can be shown. Names are the server's own: filters and
//! transforms are the user's, and change nothing here.
//!
//! Nothing is decided about a server that is merely not there.

mod digest;
mod drift;
mod print;
mod text;

use std::collections::BTreeMap;

use mcp_model::ServerId;

use crate::catalog::lists::Lists;

pub use digest::Digest;
pub(crate) use drift::NEVER_APPROVED;
pub use drift::{AboutPart, Change, Drift, Drifted, Enforcement, LockPolicy};
pub use print::{Item, Part, Print};
pub use text::LockError;

/// What was approved, by server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lock {
    /// By the names that the configuration has.
    pub servers: BTreeMap<String, Approved>,
}

/// What was approved of one server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Approved {
    /// What it said about itself.
    pub about: About,
    /// Its items, by kind and by what the server knows them by: the name, of resources the URI, of templates the URI
    /// template.
    pub items: BTreeMap<Item, BTreeMap<String, Print>>,
}

/// What a server says about itself, as far as it is approved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct About {
    /// Its name.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// The hash of its instructions, where it gives any.
    pub instructions: Option<Digest>,
}

impl About {
    /// What a server says, with its instructions as they came.
    pub fn of(name: Option<&str>, version: Option<&str>, instructions: Option<&str>) -> About {
        About {
            name: name.map(print::short),
            version: version.map(print::short),
            instructions: instructions.filter(|it| !it.is_empty()).map(Digest::of_text),
        }
    }
}

impl Approved {
    /// Approves of everything in these lists. Of two items that are known by the same, both count as one.
    pub fn of(about: About, lists: &Lists) -> Approved {
        let Lists { tools, prompts, resources, templates, rejected: _ } = lists;
        let mut items: BTreeMap<Item, BTreeMap<String, Print>> = BTreeMap::new();
        let mut add = |item: Item, key: &str, raw| {
            let print = Print::of(item, raw);
            let known = items.entry(item).or_default();
            match known.get_mut(key) {
                Some(twin) => twin.join(&print),
                None => drop(known.insert(key.to_owned(), print)),
            }
        };
        tools.iter().for_each(|it| add(Item::Tool, &it.name, &it.raw));
        prompts.iter().for_each(|it| add(Item::Prompt, &it.name, &it.raw));
        resources.iter().for_each(|it| add(Item::Resource, &it.uri, &it.raw));
        templates.iter().for_each(|it| add(Item::Template, &it.uri_template, &it.raw));
        Approved { about, items }
    }

    /// What is approved of this item.
    pub fn item(&self, item: Item, key: &str) -> Option<&Print> {
        self.items.get(&item)?.get(key)
    }
}

impl Lock {
    /// What was approved of this server.
    pub fn server(&self, server: &ServerId) -> Option<&Approved> {
        self.servers.get(server.as_str())
    }

    /// Approves of one item as it is now: it replaces what was approved, and where it is gone nothing is left of it.
    pub fn approve(&mut self, server: &ServerId, item: Item, key: &str, now: &Approved) {
        let approved = self
            .servers
            .entry(server.as_str().to_owned())
            .or_insert_with(|| Approved { about: now.about.clone(), items: BTreeMap::new() });
        let items = approved.items.entry(item).or_default();
        match now.item(item, key) {
            Some(print) => drop(items.insert(key.to_owned(), print.clone())),
            None => drop(items.remove(key)),
        }
    }
}

#[cfg(test)]
mod tests;
