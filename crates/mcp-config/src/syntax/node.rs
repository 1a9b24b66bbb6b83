//! The syntax tree: values, members and keys with their spans.

use std::ops::Range;
use std::rc::Rc;

use crate::syntax::pointer::pointer_segments;

/// A value and its span.
#[derive(Debug)]
pub struct Node {
    /// The value.
    pub content: Content,
    /// Its bytes; for an alias, those of the alias.
    pub span: Range<usize>,
    /// The number of values, including itself, with aliases expanded.
    pub(super) size: usize,
    /// The depth, with aliases expanded; 1 for a scalar.
    pub(super) depth: usize,
}

/// A value.
#[derive(Debug)]
#[expect(clippy::exhaustive_enums, reason = "not part of the public API")]
pub enum Content {
    /// Null.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Integer(i64),
    /// Another number.
    Float(f64),
    /// A number that does not fit into `i64` or `f64`. Integers are stored as decimal digits, other numbers as written.
    Large(String),
    /// A text.
    Text(String),
    /// A sequence of values; messages call it a list.
    Sequence(Vec<Node>),
    /// A mapping of keys to values.
    Mapping(Vec<Member>),
    /// A value with an anchor, or an alias.
    Shared(Rc<Node>),
    /// A value that could not be read and has been reported.
    Broken,
}

/// A key and its value.
#[derive(Debug)]
pub struct Member {
    /// The key.
    pub key: Key,
    /// The value.
    pub value: Node,
}

/// A key, unique in its mapping.
#[derive(Debug)]
pub struct Key {
    /// Its text; a number or boolean as written. An `Rc`, because each `Location` keeps the keys of its path.
    pub text: Rc<str>,
    /// Its bytes.
    pub span: Range<usize>,
    /// Its type.
    pub kind: KeyKind,
}

/// The type of a key in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// A text.
    Text,
    /// A number, a boolean or null.
    Scalar,
}

impl Node {
    pub(super) fn new(content: Content, span: Range<usize>) -> Node {
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
            _ => (1, 1),
        };
        Node { content, span, size, depth }
    }

    /// The value, with aliases followed.
    pub(crate) fn resolved_content(&self) -> &Content {
        if let Content::Shared(target) = &self.content { target.resolved_content() } else { &self.content }
    }

    /// Its members, if it is a mapping.
    pub(crate) fn members(&self) -> Option<&[Member]> {
        if let Content::Mapping(members) = self.resolved_content() { Some(members) } else { None }
    }

    /// Its items, if it is a sequence.
    pub(crate) fn items(&self) -> Option<&[Node]> {
        if let Content::Sequence(items) = self.resolved_content() { Some(items) } else { None }
    }

    /// Its text, if it is text.
    pub(crate) fn text(&self) -> Option<&str> {
        if let Content::Text(text) = self.resolved_content() { Some(text) } else { None }
    }

    /// The member with this key.
    pub(crate) fn get(&self, key: &str) -> Option<&Member> {
        self.members()?.iter().find(|it| &*it.key.text == key)
    }

    /// The value of a member.
    pub(crate) fn value(&self, key: &str) -> Option<&Node> {
        self.get(key).map(|member| &member.value)
    }

    /// The value of a member, if it is a text.
    pub(crate) fn text_of(&self, key: &str) -> Option<&str> {
        self.value(key)?.text()
    }

    /// The value at a pointer, with aliases followed.
    pub(crate) fn at(&self, pointer: &str) -> Option<&Node> {
        pointer_segments(pointer).try_fold(self, |node, segment| match node.get(&segment) {
            Some(member) => Some(&member.value),
            None => node.items()?.get(segment.parse::<usize>().ok()?),
        })
    }

    /// Where a diagnostic about the whole value points: at the first key of a mapping, else at the value.
    pub(crate) fn highlight_span(&self) -> Range<usize> {
        match &self.content {
            Content::Mapping(members) => members.first().map_or(self.span.clone(), |it| it.key.span.clone()),
            // The same span: this node is the anchor, not an alias.
            Content::Shared(target) if target.span == self.span => target.highlight_span(),
            _ => self.span.clone(),
        }
    }

    /// The type in words, for a message: `a list`.
    pub(crate) fn kind(&self) -> &'static str {
        match self.resolved_content() {
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
