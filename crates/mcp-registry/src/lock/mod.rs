//! The lock file: approved definitions of servers, and the drift from them, as values.
//!
//! A server may change its tool definitions after a user has reviewed them, and a model follows their text. The lock
//! file records the approved definitions: for each item a hash of each part (see [`JsonDigest`]), and the text of its
//! description, so that a change can be displayed. Names are the server's own; filters and transforms do not apply
//! here.
//!
//! A server that is not running has no drift.

mod digest;
mod drift;
pub(crate) mod findings;
mod item_snapshot;
mod program;
mod text;

use std::collections::BTreeMap;

use mcp_host_model::ServerId;

use crate::lists::ServerLists;

pub use digest::JsonDigest;
pub use drift::{Drift, DriftConsequence, DriftPolicy, Enforcement, IdentityPart, ItemChange, ItemDrift};
pub use item_snapshot::{DefinitionPart, ItemKind, ItemSnapshot};
pub use program::{ProgramPart, ProgramRecord};
pub use text::LockParseError;

/// The approved definitions, by server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LockFile {
    /// The definitions by server id.
    pub servers: BTreeMap<String, ServerSnapshot>,
    /// What each server starts or connects to, by server id. `None` in a file of version 1, which does not bind it.
    pub programs: Option<BTreeMap<String, ProgramRecord>>,
}

/// The definitions of one server at one time: approved, or current.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ServerSnapshot {
    /// The identity of the server.
    pub identity: ServerIdentity,
    /// The items, by kind and key. The key is the name, the URI of a resource, or the URI template of a template.
    pub items: BTreeMap<ItemKind, BTreeMap<String, ItemSnapshot>>,
}

/// A server's self-description, as far as it is approved.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ServerIdentity {
    /// Its name.
    pub name: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// The hash of its instructions, if it has any.
    pub instructions: Option<JsonDigest>,
}

impl ServerIdentity {
    /// Creates an identity. Instructions are hashed.
    pub fn of(name: Option<&str>, version: Option<&str>, instructions: Option<&str>) -> ServerIdentity {
        ServerIdentity {
            name: name.map(item_snapshot::shorten_name),
            version: version.map(item_snapshot::shorten_name),
            instructions: instructions.filter(|it| !it.is_empty()).map(JsonDigest::of_text),
        }
    }
}

impl ServerSnapshot {
    /// Records everything in these lists. Two items with one key are merged.
    pub fn of(identity: ServerIdentity, lists: &ServerLists) -> ServerSnapshot {
        let ServerLists { tools, prompts, resources, templates, rejected: _ } = lists;
        let mut items: BTreeMap<ItemKind, BTreeMap<String, ItemSnapshot>> = BTreeMap::new();
        let mut add = |item: ItemKind, key: &str, raw| {
            let snapshot = ItemSnapshot::of(item, raw);
            let items_of_kind = items.entry(item).or_default();
            match items_of_kind.get_mut(key) {
                Some(duplicate) => duplicate.merge(&snapshot),
                None => drop(items_of_kind.insert(key.to_owned(), snapshot)),
            }
        };
        tools.iter().for_each(|it| add(ItemKind::Tool, &it.name, &it.raw));
        prompts.iter().for_each(|it| add(ItemKind::Prompt, &it.name, &it.raw));
        resources.iter().for_each(|it| add(ItemKind::Resource, &it.uri, &it.raw));
        templates.iter().for_each(|it| add(ItemKind::Template, &it.uri_template, &it.raw));
        ServerSnapshot { identity, items }
    }

    /// Returns an item.
    pub fn item(&self, item: ItemKind, key: &str) -> Option<&ItemSnapshot> {
        self.items.get(&item)?.get(key)
    }
}

impl LockFile {
    /// Returns the approved definitions of a server.
    pub fn server(&self, server: &ServerId) -> Option<&ServerSnapshot> {
        self.servers.get(server.as_str())
    }

    /// Returns how what a server starts differs from what is approved; empty if it does not, or if the file does not
    /// bind programs.
    pub fn program_changes(&self, server: &str, now: &ProgramRecord) -> Vec<String> {
        match self.programs.as_ref().map(|it| it.get(server)) {
            None => Vec::new(),
            Some(None) => vec!["it is not in the lock file".to_owned()],
            Some(Some(approved)) => approved.describe_changes(now),
        }
    }

    /// Approves the current state of one item, or its removal.
    pub fn approve(&mut self, server: &ServerId, item: ItemKind, key: &str, now: &ServerSnapshot) {
        let approved = self
            .servers
            .entry(server.as_str().to_owned())
            .or_insert_with(|| ServerSnapshot { identity: now.identity.clone(), items: BTreeMap::new() });
        let items = approved.items.entry(item).or_default();
        match now.item(item, key) {
            Some(snapshot) => drop(items.insert(key.to_owned(), snapshot.clone())),
            None => drop(items.remove(key)),
        }
    }
}

#[cfg(test)]
mod tests;
