//! Drift: the difference between a server and its approved definitions, and its consequences by policy.

use std::collections::BTreeMap;

use mcp_host_model::ServerId;

use super::{DefinitionPart, ItemKind, ServerIdentity, ServerSnapshot};
use crate::filter::rules::NEVER_APPROVED;
use crate::lists::ListKind;
use crate::name::display::{escape_name, truncate};
use crate::problem::{Problem, ProblemKind};

/// What happens to an item that differs from the approved one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[expect(clippy::exhaustive_enums, reason = "mcp-cli reports each, so that none is forgotten")]
pub enum Enforcement {
    /// The item is exposed, with a problem.
    Warn,
    /// The item is hidden.
    #[default]
    Withhold,
}

/// What happens to items that differ, by the kind of the difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub struct DriftPolicy {
    /// For changed items.
    pub changed: Enforcement,
    /// For items that were never approved.
    pub added: Enforcement,
}

/// The consequence for an item that differs from the approved one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DriftConsequence {
    /// The consequence.
    pub enforcement: Enforcement,
    /// The reason, as the end of a sentence: `its description is not what was approved`.
    pub reason: String,
}

/// The difference of one present item.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "a present item is new or changed; one that is gone has no change"
)]
pub enum ItemChange {
    /// Never approved.
    New,
    /// These parts changed; never empty.
    Changed(Vec<DefinitionPart>),
}

/// The difference of one item.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ItemDrift {
    /// The kind of item.
    pub item: ItemKind,
    /// The key of the item.
    pub key: String,
    /// The difference; `None` if the approved item was removed.
    pub change: Option<ItemChange>,
}

/// A part of a server's identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[non_exhaustive]
pub enum IdentityPart {
    /// Its name.
    Name,
    /// Its version.
    Version,
    /// Its instructions.
    Instructions,
}

/// The difference between a server and its approved definitions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Drift {
    policy: DriftPolicy,
    /// Whether no definition was ever approved.
    never_approved: bool,
    /// The present items that differ, by kind and key.
    changes: BTreeMap<ItemKind, BTreeMap<String, ItemChange>>,
    /// The approved items that are missing, by kind and key.
    removed: Vec<(ItemKind, String)>,
    identity_changes: Vec<IdentityPart>,
}

/// The maximum number of names in a message.
const MAX_LISTED_NAMES: usize = 8;

impl Drift {
    /// Compares the current definitions with the approved ones. Removals are detected only in lists that were `read`.
    pub fn compute(
        approved: Option<&ServerSnapshot>,
        now: &ServerSnapshot,
        read: &[ListKind],
        policy: DriftPolicy,
    ) -> Drift {
        let nothing = ServerSnapshot::default();
        let mut res = Drift { policy, never_approved: approved.is_none(), ..Drift::default() };
        let before = approved.unwrap_or(&nothing);
        for (item, snapshots) in &now.items {
            for (key, snapshot) in snapshots {
                let change = match before.item(*item, key) {
                    None => ItemChange::New,
                    Some(approved) => match approved.changed_parts(snapshot) {
                        parts if parts.is_empty() => continue,
                        parts => ItemChange::Changed(parts),
                    },
                };
                res.changes.entry(*item).or_default().insert(key.clone(), change);
            }
        }
        let approved_items = before.items.iter().filter(|(item, _)| read.contains(&item.list()));
        let approved_keys =
            approved_items.flat_map(|(item, snapshots)| snapshots.keys().map(|key| (*item, key.clone())));
        res.removed = approved_keys.filter(|(item, key)| now.item(*item, key).is_none()).collect();
        if approved.is_some() {
            let (ServerIdentity { name, version, instructions }, other) = (&before.identity, &now.identity);
            let parts = [
                (IdentityPart::Name, *name != other.name),
                (IdentityPart::Version, *version != other.version),
                (IdentityPart::Instructions, *instructions != other.instructions),
            ];
            let changed = parts.into_iter().filter(|(_, is_changed)| *is_changed);
            res.identity_changes = changed.map(|(part, _)| part).collect();
        }
        res
    }

    /// Returns whether nothing differs.
    pub fn is_empty(&self) -> bool {
        let Drift { policy: _, never_approved, changes, removed, identity_changes } = self;
        !never_approved && changes.is_empty() && removed.is_empty() && identity_changes.is_empty()
    }

    /// Returns whether no definition was ever approved.
    pub fn is_never_approved(&self) -> bool {
        self.never_approved
    }

    /// Returns the changed parts of the identity.
    pub fn identity_changes(&self) -> &[IdentityPart] {
        &self.identity_changes
    }

    /// Returns the differing items, removed ones last.
    pub fn items(&self) -> Vec<ItemDrift> {
        let present = self.changes.iter().flat_map(|(item, changes)| {
            changes.iter().map(|(key, change)| ItemDrift {
                item: *item,
                key: key.clone(),
                change: Some(change.clone()),
            })
        });
        let removed =
            self.removed.iter().map(|(item, key)| ItemDrift { item: *item, key: key.clone(), change: None });
        present.chain(removed).collect()
    }

    /// Returns whether the server's instructions must be withheld from models.
    pub fn withholds_instructions(&self) -> bool {
        let enforcement = if self.never_approved { self.policy.added } else { self.policy.changed };
        let is_changed = self.never_approved || self.identity_changes.contains(&IdentityPart::Instructions);
        is_changed && enforcement == Enforcement::Withhold
    }

    /// Returns the consequence for a present item; `None` if it does not differ.
    pub fn consequence(&self, item: ItemKind, key: &str) -> Option<DriftConsequence> {
        let (enforcement, reason) = match self.changes.get(&item)?.get(key)? {
            ItemChange::New if self.never_approved => (self.policy.added, NEVER_APPROVED.to_owned()),
            ItemChange::New => (self.policy.added, "it was never approved".to_owned()),
            ItemChange::Changed(parts) => {
                let verb = if parts.len() == 1 && !parts[0].is_plural() { "is" } else { "are" };
                let words: Vec<&str> = parts.iter().map(|it| it.description()).collect();
                let why = format!("its {} {verb} not what was approved", join_words(&words));
                (self.policy.changed, why)
            }
        };
        Some(DriftConsequence { enforcement, reason })
    }

    /// Returns whether an item of the server is as it was approved.
    pub(crate) fn approves(&self, item: ItemKind, key: &str) -> bool {
        self.changes.get(&item).is_none_or(|changes| !changes.contains_key(key))
    }

    /// Returns the problem of the server as a whole, if its identity, removed items or missing approval cause one.
    pub(crate) fn problem(&self, server: &ServerId) -> Option<Problem> {
        let mut words = Vec::new();
        if self.never_approved {
            words.push("nothing of it was ever approved".to_owned());
        }
        let identity: Vec<&str> = self.identity_changes.iter().map(|it| it.as_str()).collect();
        if !identity.is_empty() {
            let verb = if matches!(self.identity_changes[..], [IdentityPart::Name | IdentityPart::Version]) {
                "is"
            } else {
                "are"
            };
            words.push(format!("its {} {verb} not what was approved", join_words(&identity)));
        }
        if !self.removed.is_empty() {
            let names: Vec<String> = self
                .removed
                .iter()
                .take(MAX_LISTED_NAMES)
                .map(|it| format!("`{}`", escape_name(&it.1)))
                .collect();
            let more = self.removed.len().saturating_sub(MAX_LISTED_NAMES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            words.push(format!("removed since it was approved: {}{more}", names.join(", ")));
        }
        if words.is_empty() {
            return None;
        }
        let id = format!("mcp/server/{server}/server_drifted");
        let message = format!("server `{server}` is not as it was approved: {}", words.join("; "));
        let message = truncate(message, 1000);
        Some(Problem::warning(id, ProblemKind::ServerDrifted, Some(server), None, message))
    }
}

impl ItemKind {
    /// Returns the list that contains such items.
    pub fn list(self) -> ListKind {
        match self {
            ItemKind::Tool => ListKind::Tool,
            ItemKind::Prompt => ListKind::Prompt,
            ItemKind::Resource | ItemKind::Template => ListKind::Resource,
        }
    }
}

impl DefinitionPart {
    /// Whether [`DefinitionPart::description`] is a plural.
    fn is_plural(self) -> bool {
        matches!(self, DefinitionPart::Arguments | DefinitionPart::Annotations | DefinitionPart::Other)
    }
}

impl IdentityPart {
    /// Returns `name`, `version` or `instructions`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// Joins words as `a, b and c`.
fn join_words(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}
