//! What one item looks like, part by part.

use std::collections::BTreeMap;

use mcp_model::RawJson;

use super::digest::{JsonDigest, members};
use crate::name::display::truncate;

/// The most that is kept of a description, in bytes: enough to see what has changed.
const LONGEST_TEXT: usize = 4096;

/// The most that is kept of a name or version of a server.
const LONGEST_NAME: usize = 256;

/// What sort of thing an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemKind {
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
    /// A resource.
    Resource,
    /// A template of resources.
    Template,
}

/// What an item is made of. Every member of its definition belongs to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DefinitionPart {
    /// The name of what is known by a URI.
    Name,
    /// Its title.
    Title,
    /// Its description.
    Description,
    /// A tool's `inputSchema`.
    InputSchema,
    /// A tool's `outputSchema`.
    OutputSchema,
    /// A prompt's arguments.
    Arguments,
    /// A resource's MIME type.
    MimeType,
    /// What the server claims about its effects, or its audience.
    Annotations,
    /// Everything else.
    Other,
}

/// What was seen of one item: a hash for each part that it has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ItemSnapshot {
    /// The hashes.
    pub parts: BTreeMap<DefinitionPart, JsonDigest>,
    /// The beginning of its description, to show what has changed; as the server wrote it.
    pub text: Option<String>,
}

impl ItemKind {
    /// Every sort.
    pub const ALL: [ItemKind; 4] = [ItemKind::Tool, ItemKind::Prompt, ItemKind::Resource, ItemKind::Template];

    /// `tool`, `prompt`, `resource` or `template`.
    pub fn as_str(self) -> &'static str {
        match self {
            ItemKind::Tool => "tool",
            ItemKind::Prompt => "prompt",
            ItemKind::Resource => "resource",
            ItemKind::Template => "template",
        }
    }

    /// `tools`, `prompts`, `resources` or `templates`.
    pub fn plural(self) -> &'static str {
        match self {
            ItemKind::Tool => "tools",
            ItemKind::Prompt => "prompts",
            ItemKind::Resource => "resources",
            ItemKind::Template => "templates",
        }
    }

    /// The member that an item is known by.
    fn key(self) -> &'static str {
        match self {
            ItemKind::Tool | ItemKind::Prompt => "name",
            ItemKind::Resource => "uri",
            ItemKind::Template => "uriTemplate",
        }
    }
}

impl DefinitionPart {
    /// Every part.
    pub const ALL: [DefinitionPart; 9] = [
        DefinitionPart::Name,
        DefinitionPart::Title,
        DefinitionPart::Description,
        DefinitionPart::InputSchema,
        DefinitionPart::OutputSchema,
        DefinitionPart::Arguments,
        DefinitionPart::MimeType,
        DefinitionPart::Annotations,
        DefinitionPart::Other,
    ];

    /// The key of a definition that it is; `other` for all the rest.
    pub fn as_str(self) -> &'static str {
        match self {
            DefinitionPart::Name => "name",
            DefinitionPart::Title => "title",
            DefinitionPart::Description => "description",
            DefinitionPart::InputSchema => "inputSchema",
            DefinitionPart::OutputSchema => "outputSchema",
            DefinitionPart::Arguments => "arguments",
            DefinitionPart::MimeType => "mimeType",
            DefinitionPart::Annotations => "annotations",
            DefinitionPart::Other => "other",
        }
    }

    /// In a sentence: `description`, `input schema`.
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
    /// Looks at a definition.
    pub fn of(item: ItemKind, raw: &RawJson) -> ItemSnapshot {
        let members = members(raw.as_str()).unwrap_or_default();
        let text = members.iter().find(|it| it.0 == "description");
        let text = text.and_then(|it| {
            RawJson::copy_of(it.1).to_text().map(|it| truncate(it.into_owned(), LONGEST_TEXT))
        });
        let mut groups: BTreeMap<DefinitionPart, Vec<_>> = BTreeMap::new();
        let known = DefinitionPart::ALL.into_iter().filter(|it| *it != DefinitionPart::Other);
        let known: Vec<DefinitionPart> = known.filter(|it| it.as_str() != item.key()).collect();
        let mut named = false;
        for (key, value) in members {
            // What it is known by is no part of it; where that stands twice, a reader may take either.
            if key == item.key() && !std::mem::replace(&mut named, true) {
                continue;
            }
            let part = known.iter().copied().find(|it| it.as_str() == key);
            groups.entry(part.unwrap_or(DefinitionPart::Other)).or_default().push((key, value));
        }
        let parts = groups.into_iter().map(|(part, it)| (part, JsonDigest::of_members(&it)));
        ItemSnapshot { parts: parts.collect(), text }
    }

    /// The parts in which two differ.
    pub fn changed_parts(&self, other: &ItemSnapshot) -> Vec<DefinitionPart> {
        DefinitionPart::ALL.into_iter().filter(|it| self.parts.get(it) != other.parts.get(it)).collect()
    }

    /// Two that are known by the same name: neither may change.
    pub(super) fn merge(&mut self, other: &ItemSnapshot) {
        for part in DefinitionPart::ALL {
            match (self.parts.get(&part).copied(), other.parts.get(&part)) {
                (Some(one), Some(two)) => drop(self.parts.insert(part, one.combine(*two))),
                (None, Some(two)) => drop(self.parts.insert(part, JsonDigest::of_text("").combine(*two))),
                (Some(one), None) => drop(self.parts.insert(part, one.combine(JsonDigest::of_text("")))),
                (None, None) => {}
            }
        }
    }
}

/// A server's word that is kept as it is.
pub(super) fn shorten_name(text: &str) -> String {
    truncate(text.to_owned(), LONGEST_NAME)
}
