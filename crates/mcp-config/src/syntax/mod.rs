//! A file as a tree in which every word knows its place.
//!
//! The tree is what all dialects are read from. It knows nothing of servers, and nothing outside `yaml.rs` and
//! `jsonc.rs` knows which parser filled it. Numbers keep every digit, keys keep their order, an alias stays an alias: its target is shared,
//! not copied, and the whole is measured as if it were.

mod diff;
pub(crate) mod entry_edits;
mod json;
mod jsonc;
mod key_interner;
pub(crate) mod layout;
pub(crate) mod ordered_members;
pub(crate) mod output;
mod pointer;
mod scalar;
pub(crate) mod template;
mod yaml;

use std::ops::Range;
use std::rc::Rc;

pub(crate) use diff::{ChangedPointers, difference};
pub use json::text_to_json;
pub(crate) use json::to_json;
pub(crate) use jsonc::looks_like_json;
pub(crate) use pointer::{child, contains, last, parent, push, segments};

use crate::diagnostic::Code;
use crate::diagnostic::RawDiagnostic;

/// The largest file, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// The deepest nesting, aliases followed.
const MAX_DEPTH: usize = 64;
/// The most values, aliases followed.
const MAX_VALUES: usize = 100_000;

const SPLIT_FILE_HELP: &str = "split the file, or write it more simply";

/// How a file is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// YAML 1.2.
    Yaml,
    /// JSON, and nothing besides.
    Json,
    /// JSON in which comments and commas before a closing bracket may stand, as editors write it.
    JsonWithComments,
}

/// What became of a text.
pub(crate) struct ParsedText {
    /// The tree; `None` where the text is not well-formed, or too much of it. An empty text is null.
    pub(crate) root: Option<Node>,
    /// Values that are not in the tree, because their key is a duplicate or no key.
    pub(crate) dropped: Vec<Range<usize>>,
    /// What is wrong with the text.
    pub(crate) diagnostics: Vec<RawDiagnostic>,
}

impl ParsedText {
    fn too_large() -> ParsedText {
        let message = "the file is larger than 1 MiB";
        let problems = vec![RawDiagnostic::new(Code::TooLarge, message, "", 0..0).help(SPLIT_FILE_HELP)];
        ParsedText { root: None, dropped: Vec::new(), diagnostics: problems }
    }
}

/// Reads a text that is written in `syntax`. Never fails, never panics.
pub(crate) fn parse_as(text: &str, syntax: Syntax) -> ParsedText {
    match syntax {
        Syntax::Yaml => yaml::parse(text),
        Syntax::Json | Syntax::JsonWithComments => jsonc::parse(text, syntax),
    }
}

/// Reads a text of which nobody says how it is written: as JSON where it looks so and is, else as YAML.
///
/// A text with comments of JSON is no YAML, even if it could be read as such: a comment would become a key.
pub(crate) fn parse_any(text: &str) -> ParsedText {
    if !jsonc::looks_like_json(text) {
        return yaml::parse(text);
    }
    let res = jsonc::parse(text, Syntax::JsonWithComments);
    if res.root.is_some() || jsonc::has_comment(text) { res } else { yaml::parse(text) }
}

/// A value and its place.
#[derive(Debug)]
pub(crate) struct Node {
    /// What it is.
    pub(crate) content: Content,
    /// Its bytes; those of the alias, where it is one.
    pub(crate) span: Range<usize>,
    /// How many values it holds, itself included, aliases followed.
    size: usize,
    /// How deep it is, aliases followed; 1 for a scalar.
    depth: usize,
}

/// What a value is.
#[derive(Debug)]
pub(crate) enum Content {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    /// A whole number that no `i64` holds, as decimal digits.
    Large(String),
    Text(String),
    Sequence(Vec<Node>),
    Mapping(Vec<Member>),
    /// A value with an anchor, or an alias of one.
    Shared(Rc<Node>),
    /// A value that could not be read and has been reported.
    Broken,
}

/// A key and its value.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) key: Key,
    pub(crate) value: Node,
}

/// A key of a mapping; unique in it.
#[derive(Debug)]
pub(crate) struct Key {
    /// Its text; of a number or `true`, as written. Shared with the places that are reached by it.
    pub(crate) text: Rc<str>,
    pub(crate) span: Range<usize>,
    pub(crate) kind: KeyKind,
}

/// What a key was before it became text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyKind {
    Text,
    /// A number, a boolean or null.
    Scalar,
}

impl Node {
    fn new(content: Content, span: Range<usize>) -> Node {
        let (size, depth) = match &content {
            Content::Sequence(items) => (
                items.iter().fold(1, |sum: usize, it| sum.saturating_add(it.size)),
                items.iter().map(|it| it.depth).max().unwrap_or(0) + 1,
            ),
            Content::Mapping(members) => (
                members.iter().fold(1, |sum: usize, it| sum.saturating_add(it.value.size)),
                members.iter().map(|it| it.value.depth).max().unwrap_or(0) + 1,
            ),
            Content::Shared(target) => (target.size, target.depth),
            Content::Null
            | Content::Bool(_)
            | Content::Integer(_)
            | Content::Float(_)
            | Content::Large(_)
            | Content::Text(_)
            | Content::Broken => (1, 1),
        };
        Node { content, span, size, depth }
    }

    /// What it is, aliases followed.
    pub(crate) fn content(&self) -> &Content {
        if let Content::Shared(target) = &self.content { target.content() } else { &self.content }
    }

    /// Its members, if it is a mapping.
    pub(crate) fn members(&self) -> Option<&[Member]> {
        if let Content::Mapping(members) = self.content() { Some(members) } else { None }
    }

    /// Its items, if it is a sequence.
    pub(crate) fn items(&self) -> Option<&[Node]> {
        if let Content::Sequence(items) = self.content() { Some(items) } else { None }
    }

    /// Its text, if it is text.
    pub(crate) fn text(&self) -> Option<&str> {
        if let Content::Text(text) = self.content() { Some(text) } else { None }
    }

    /// The member with this key.
    pub(crate) fn get(&self, key: &str) -> Option<&Member> {
        self.members()?.iter().find(|it| &*it.key.text == key)
    }

    /// The value at this pointer, aliases followed.
    pub(crate) fn at(&self, pointer: &str) -> Option<&Node> {
        segments(pointer).try_fold(self, |node, segment| match node.get(&segment) {
            Some(member) => Some(&member.value),
            None => node.items()?.get(segment.parse::<usize>().ok()?),
        })
    }

    /// Where a complaint about the whole value points: the first key of a mapping, else the value.
    pub(crate) fn highlight_span(&self) -> Range<usize> {
        match &self.content {
            Content::Mapping(members) => members.first().map_or(self.span.clone(), |it| it.key.span.clone()),
            Content::Shared(target) if target.span == self.span => target.highlight_span(),
            Content::Null
            | Content::Bool(_)
            | Content::Integer(_)
            | Content::Float(_)
            | Content::Large(_)
            | Content::Text(_)
            | Content::Sequence(_)
            | Content::Shared(_)
            | Content::Broken => self.span.clone(),
        }
    }

    /// What it is, in words.
    pub(crate) fn kind(&self) -> &'static str {
        match self.content() {
            Content::Null => "nothing",
            Content::Bool(_) => "a boolean",
            Content::Integer(_) | Content::Float(_) | Content::Large(_) => "a number",
            Content::Text(_) => "text",
            Content::Sequence(_) => "a list",
            Content::Mapping(_) => "a mapping",
            Content::Shared(_) | Content::Broken => "an unreadable value",
        }
    }
}
