//! What one item looks like, part by part.

use std::collections::BTreeMap;

use mcp_model::RawJson;

use super::digest::{Digest, members};
use crate::name::quote::cut;

/// The most that is kept of a description, in bytes: enough to see what has changed.
const LONGEST_TEXT: usize = 4096;

/// The most that is kept of a name or version of a server.
const LONGEST_NAME: usize = 256;

/// What sort of thing an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Item {
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
pub enum Part {
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
pub struct Print {
    /// The hashes.
    pub parts: BTreeMap<Part, Digest>,
    /// The beginning of its description, to show what has changed; as the server wrote it.
    pub text: Option<String>,
}

impl Item {
    /// Every sort.
    pub const ALL: [Item; 4] = [Item::Tool, Item::Prompt, Item::Resource, Item::Template];

    /// `tool`, `prompt`, `resource` or `template`.
    pub fn as_str(self) -> &'static str {
        match self {
            Item::Tool => "tool",
            Item::Prompt => "prompt",
            Item::Resource => "resource",
            Item::Template => "template",
        }
    }

    /// `tools`, `prompts`, `resources` or `templates`.
    pub fn plural(self) -> &'static str {
        match self {
            Item::Tool => "tools",
            Item::Prompt => "prompts",
            Item::Resource => "resources",
            Item::Template => "templates",
        }
    }

    /// The member that an item is known by.
    fn key(self) -> &'static str {
        match self {
            Item::Tool | Item::Prompt => "name",
            Item::Resource => "uri",
            Item::Template => "uriTemplate",
        }
    }
}

impl Part {
    /// Every part.
    pub const ALL: [Part; 9] = [
        Part::Name,
        Part::Title,
        Part::Description,
        Part::InputSchema,
        Part::OutputSchema,
        Part::Arguments,
        Part::MimeType,
        Part::Annotations,
        Part::Other,
    ];

    /// The key of a definition that it is; `other` for all the rest.
    pub fn as_str(self) -> &'static str {
        match self {
            Part::Name => "name",
            Part::Title => "title",
            Part::Description => "description",
            Part::InputSchema => "inputSchema",
            Part::OutputSchema => "outputSchema",
            Part::Arguments => "arguments",
            Part::MimeType => "mimeType",
            Part::Annotations => "annotations",
            Part::Other => "other",
        }
    }

    /// In a sentence: `description`, `input schema`.
    pub fn words(self) -> &'static str {
        match self {
            Part::Name => "name",
            Part::Title => "title",
            Part::Description => "description",
            Part::InputSchema => "input schema",
            Part::OutputSchema => "output schema",
            Part::Arguments => "arguments",
            Part::MimeType => "MIME type",
            Part::Annotations => "annotations",
            Part::Other => "other members",
        }
    }
}

impl Print {
    /// Looks at a definition.
    pub fn of(item: Item, raw: &RawJson) -> Print {
        let members = members(raw.as_str()).unwrap_or_default();
        let text = members.iter().find(|it| it.0 == "description");
        let text =
            text.and_then(|it| RawJson::copied(it.1).to_text().map(|it| cut(it.into_owned(), LONGEST_TEXT)));
        let mut groups: BTreeMap<Part, Vec<_>> = BTreeMap::new();
        let known = Part::ALL.into_iter().filter(|it| *it != Part::Other);
        let known: Vec<Part> = known.filter(|it| it.as_str() != item.key()).collect();
        let mut named = false;
        for (key, value) in members {
            // What it is known by is no part of it; where that stands twice, a reader may take either.
            if key == item.key() && !std::mem::replace(&mut named, true) {
                continue;
            }
            let part = known.iter().copied().find(|it| it.as_str() == key);
            groups.entry(part.unwrap_or(Part::Other)).or_default().push((key, value));
        }
        let parts = groups.into_iter().map(|(part, it)| (part, Digest::of_members(&it)));
        Print { parts: parts.collect(), text }
    }

    /// The parts in which two differ.
    pub fn difference(&self, other: &Print) -> Vec<Part> {
        Part::ALL.into_iter().filter(|it| self.parts.get(it) != other.parts.get(it)).collect()
    }

    /// Two that are known by the same name: neither may change.
    pub(super) fn join(&mut self, other: &Print) {
        for part in Part::ALL {
            match (self.parts.get(&part).copied(), other.parts.get(&part)) {
                (Some(one), Some(two)) => drop(self.parts.insert(part, one.joined(*two))),
                (None, Some(two)) => drop(self.parts.insert(part, Digest::of_text("").joined(*two))),
                (Some(one), None) => drop(self.parts.insert(part, one.joined(Digest::of_text("")))),
                (None, None) => {}
            }
        }
    }
}

/// A server's word that is kept as it is.
pub(super) fn short(text: &str) -> String {
    cut(text.to_owned(), LONGEST_NAME)
}
