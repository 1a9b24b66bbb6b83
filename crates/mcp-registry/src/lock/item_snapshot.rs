//! Snapshots of items: a hash of each part of a definition.

use std::collections::BTreeMap;

use mcp_host_model::RawJson;
use strum::VariantArray;

use super::digest::{JsonDigest, read_members};
use crate::name::display::truncate;

/// The maximum length of a recorded description in bytes: enough to display changes.
const MAX_TEXT_BYTES: usize = 4096;

/// The maximum length of a recorded server name or version in bytes.
const MAX_NAME_BYTES: usize = 256;

/// The kinds of items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[expect(
    clippy::exhaustive_enums,
    reason = "lock files and mcp-cli name each kind, so that none is forgotten"
)]
pub enum ItemKind {
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
    /// A resource.
    Resource,
    /// A resource template.
    Template,
}

/// The parts of a definition. Every member belongs to one of them.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    strum::IntoStaticStr,
    strum::EnumString,
    strum::VariantArray,
)]
#[strum(serialize_all = "camelCase")]
#[non_exhaustive]
pub enum DefinitionPart {
    /// The name, if the key is a URI.
    Name,
    /// The title.
    Title,
    /// The description.
    Description,
    /// A tool's `inputSchema`.
    InputSchema,
    /// A tool's `outputSchema`.
    OutputSchema,
    /// A prompt's arguments.
    Arguments,
    /// A resource's MIME type.
    MimeType,
    /// The annotations: claims about effects or audience.
    Annotations,
    /// All other members.
    Other,
}

/// The recorded state of one item: a hash of each part.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ItemSnapshot {
    /// The hashes.
    pub parts: BTreeMap<DefinitionPart, JsonDigest>,
    /// The start of the description, to display changes; as the server wrote it.
    pub text: Option<String>,
}

impl ItemKind {
    /// All kinds.
    pub const ALL: [ItemKind; 4] = [ItemKind::Tool, ItemKind::Prompt, ItemKind::Resource, ItemKind::Template];

    /// Returns `tool`, `prompt`, `resource` or `template`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns `tools`, `prompts`, `resources` or `templates`.
    pub fn plural(self) -> &'static str {
        match self {
            ItemKind::Tool => "tools",
            ItemKind::Prompt => "prompts",
            ItemKind::Resource => "resources",
            ItemKind::Template => "templates",
        }
    }

    /// Returns the name of the member that identifies an item.
    fn key_member(self) -> &'static str {
        match self {
            ItemKind::Tool | ItemKind::Prompt => "name",
            ItemKind::Resource => "uri",
            ItemKind::Template => "uriTemplate",
        }
    }
}

impl DefinitionPart {
    /// Returns the member name; `other` for all others.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the noun for messages: `description`, `input schema`.
    pub fn description(self) -> &'static str {
        match self {
            DefinitionPart::Name => "name",
            DefinitionPart::Title => "title",
            DefinitionPart::Description => "description",
            DefinitionPart::InputSchema => "input schema",
            DefinitionPart::OutputSchema => "output schema",
            DefinitionPart::Arguments => "arguments",
            DefinitionPart::MimeType => "MIME type",
            DefinitionPart::Annotations => "annotations",
            DefinitionPart::Other => "other members",
        }
    }
}

impl ItemSnapshot {
    /// Records a definition.
    pub fn of(item: ItemKind, raw: &RawJson) -> ItemSnapshot {
        let members = read_members(raw.as_str()).unwrap_or_default();
        let text = members.iter().find(|(key, _)| key == "description");
        let text = text.and_then(|it| it.1.to_text().map(|text| truncate(text.into_owned(), MAX_TEXT_BYTES)));
        let mut groups: BTreeMap<DefinitionPart, Vec<_>> = BTreeMap::new();
        let known = DefinitionPart::VARIANTS.iter().copied().filter(|it| *it != DefinitionPart::Other);
        let known: Vec<DefinitionPart> = known.filter(|it| it.as_str() != item.key_member()).collect();
        let mut has_key = false;
        for (key, value) in members {
            // The key is not a part. A second member of this name is one, because a reader may use either.
            if key == item.key_member() && !std::mem::replace(&mut has_key, true) {
                continue;
            }
            let part = known.iter().copied().find(|it| it.as_str() == key);
            groups.entry(part.unwrap_or(DefinitionPart::Other)).or_default().push((key, value));
        }
        let parts = groups.into_iter().map(|(part, it)| (part, JsonDigest::of_members(&it)));
        ItemSnapshot { parts: parts.collect(), text }
    }

    /// Returns the parts that differ.
    pub(crate) fn changed_parts(&self, other: &ItemSnapshot) -> Vec<DefinitionPart> {
        DefinitionPart::VARIANTS
            .iter()
            .copied()
            .filter(|it| self.parts.get(it) != other.parts.get(it))
            .collect()
    }

    /// Merges another item with the same key into this one, so that a change of either changes the hashes.
    pub(super) fn merge(&mut self, other: &ItemSnapshot) {
        for part in DefinitionPart::VARIANTS.iter().copied() {
            match (self.parts.get(&part).copied(), other.parts.get(&part)) {
                (Some(one), Some(two)) => drop(self.parts.insert(part, one.combine(*two))),
                (None, Some(two)) => drop(self.parts.insert(part, JsonDigest::of_text("").combine(*two))),
                (Some(one), None) => drop(self.parts.insert(part, one.combine(JsonDigest::of_text("")))),
                (None, None) => {}
            }
        }
    }
}

/// Truncates a server name or version.
pub(super) fn shorten_name(text: &str) -> String {
    truncate(text.to_owned(), MAX_NAME_BYTES)
}
