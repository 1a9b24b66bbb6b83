//! What a user has approved of each server, and how a server differs from it: the lock, as values.
//!
//! A server may change what its tools say after somebody has looked at them, and a model obeys what they say. So what
//! was approved is written down: of every item a hash for each of its parts, over an encoding of our own (see
//! [`JsonDigest`]), and the text of its description, so that a change can be shown. Names are the server's own: filters and
//! transforms are the user's, and change nothing here.
//!
//! Nothing is decided about a server that is merely not there.

mod digest;
mod drift;
mod item_snapshot;
mod text;

use std::collections::BTreeMap;

use mcp_model::ServerId;

use crate::catalog::lists::ServerLists;

pub use digest::JsonDigest;
pub(crate) use drift::NEVER_APPROVED;
pub use drift::{Drift, DriftPolicy, Enforcement, IdentityPart, ItemChange, ItemDrift};
pub use item_snapshot::{DefinitionPart, ItemKind, ItemSnapshot};
pub use text::LockParseError;

/// What was approved, by server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LockFile {
    /// By the names that the configuration has.
    pub servers: BTreeMap<String, ServerSnapshot>,
}

/// What was approved of one server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerSnapshot {
    /// What it said about itself.
    pub about: ServerIdentity,
    /// Its items, by kind and by what the server knows them by: the name, of resources the URI, of templates the URI
    /// template.
    pub items: BTreeMap<ItemKind, BTreeMap<String, ItemSnapshot>>,
}

/// What a server says about itself, as far as it is approved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerIdentity {
    /// Its name.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// The hash of its instructions, where it gives any.
    pub instructions: Option<JsonDigest>,
}

impl ServerIdentity {
    /// What a server says, with its instructions as they came.
    pub fn of(name: Option<&str>, version: Option<&str>, instructions: Option<&str>) -> ServerIdentity {
        ServerIdentity {
            name: name.map(item_snapshot::shorten_name),
            version: version.map(item_snapshot::shorten_name),
            instructions: instructions.filter(|it| !it.is_empty()).map(JsonDigest::of_text),
        }
    }
}

impl ServerSnapshot {
    /// Approves of everything in these lists. Of two items that are known by the same, both count as one.
    pub fn of(about: ServerIdentity, lists: &ServerLists) -> ServerSnapshot {
        let ServerLists { tools, prompts, resources, templates, rejected: _ } = lists;
        let mut items: BTreeMap<ItemKind, BTreeMap<String, ItemSnapshot>> = BTreeMap::new();
        let mut add = |item: ItemKind, key: &str, raw| {
            let print = ItemSnapshot::of(item, raw);
            let known = items.entry(item).or_default();
            match known.get_mut(key) {
                Some(twin) => twin.merge(&print),
                None => drop(known.insert(key.to_owned(), print)),
            }
        };
        tools.iter().for_each(|it| add(ItemKind::Tool, &it.name, &it.raw));
        prompts.iter().for_each(|it| add(ItemKind::Prompt, &it.name, &it.raw));
        resources.iter().for_each(|it| add(ItemKind::Resource, &it.uri, &it.raw));
        templates.iter().for_each(|it| add(ItemKind::Template, &it.uri_template, &it.raw));
        ServerSnapshot { about, items }
    }

    /// What is approved of this item.
    pub fn item(&self, item: ItemKind, key: &str) -> Option<&ItemSnapshot> {
        self.items.get(&item)?.get(key)
    }
}

impl LockFile {
    /// What was approved of this server.
    pub fn server(&self, server: &ServerId) -> Option<&ServerSnapshot> {
        self.servers.get(server.as_str())
    }

    /// Approves of one item as it is now: it replaces what was approved, and where it is gone nothing is left of it.
    pub fn approve(&mut self, server: &ServerId, item: ItemKind, key: &str, now: &ServerSnapshot) {
        let approved = self
            .servers
            .entry(server.as_str().to_owned())
            .or_insert_with(|| ServerSnapshot { about: now.about.clone(), items: BTreeMap::new() });
        let items = approved.items.entry(item).or_default();
        match now.item(item, key) {
            Some(print) => drop(items.insert(key.to_owned(), print.clone())),
            None => drop(items.remove(key)),
        }
    }
}

#[cfg(test)]
mod tests;
