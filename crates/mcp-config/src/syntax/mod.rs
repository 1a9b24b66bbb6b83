//! The syntax tree of a file, with the span of every key and value.
//!
//! All dialects read this tree. Only `yaml.rs`, `jsonc.rs` and `toml.rs` depend on the parsers. Numbers keep all digits and keys
//! their order. An alias shares its target without copying it, but counts towards the size limits.

pub(crate) mod commented_entry;
mod diff;
pub(crate) mod entry_edits;
mod json;
mod jsonc;
mod key_interner;
pub(crate) mod layout;
mod look_alike;
pub(crate) mod ordered_members;
pub(crate) mod output;
mod pointer;
mod scalar;
pub mod template;
#[cfg(feature = "files")]
mod toml;
#[cfg(feature = "files")]
mod yaml;
#[cfg(not(feature = "files"))]
mod yaml_unsupported;

use std::ops::Range;
use std::rc::Rc;

pub use diff::{ChangedPointers, difference};
pub use json::text_to_json;
pub use json::to_json;
pub(crate) use jsonc::looks_like_json;
pub(crate) use pointer::{child, contains, last, parent, push, segments};

use crate::diagnostic::{Code, RawDiagnostic};
#[cfg(not(feature = "files"))]
use crate::syntax::{yaml_unsupported as toml, yaml_unsupported as yaml};

/// The maximum size of a file, in bytes.
const MAX_BYTES: usize = 1 << 20;
/// The maximum nesting depth, with aliases expanded.
const MAX_DEPTH: usize = 64;
/// The maximum number of values, with aliases expanded.
const MAX_VALUES: usize = 100_000;

/// A key of YAML without a space after its `:`, such as `command:npx`.
pub(crate) struct UnspacedKey<'a> {
    pub(crate) key: &'a str,
    /// A blank of another kind after the `:`.
    pub(crate) blank: Option<char>,
}

/// The key of a line of YAML without a space after its `:`; `None` for a line with such a space, and for a URL.
pub(crate) fn unspaced_key(line: &str) -> Option<UnspacedKey<'_>> {
    let content = line.trim_start_matches([' ', '-', '{']);
    let (key, value) = content.split_once(':')?;
    let is_word = |it: u8| it.is_ascii_alphanumeric() || b"_-.".contains(&it);
    let is_key =
        key.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_') && key.bytes().all(is_word);
    // `localhost:8080` in a list is a text.
    let is_port = line.trim_start().starts_with('-') && value.bytes().all(|it| it.is_ascii_digit());
    let first = value.chars().next()?;
    let blank = look_alike::is_blank(first).then_some(first);
    let is_value = !is_port && !"/\\:".contains(first) && (!first.is_whitespace() || blank.is_some());
    (is_key && is_value && !content.contains(": ")).then_some(UnspacedKey { key, blank })
}

/// What is wrong with the line that begins at `at`, if it is a marker of a version control system.
fn conflict_marker(text: &str, at: usize) -> Option<&'static str> {
    let begins_line = at == 0 || text[..at].ends_with('\n');
    let is_marker = ["<<<<<<<", "=======", ">>>>>>>"].iter().any(|it| text[at..].starts_with(it));
    (begins_line && is_marker).then_some("an unresolved merge conflict")
}

const SPLIT_FILE_HELP: &str = "split or simplify the file";

/// The syntax of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "not part of the public API")]
pub enum Syntax {
    /// YAML 1.2.
    Yaml,
    /// Strict JSON.
    Json,
    /// JSON with comments and trailing commas, as editors write it.
    JsonWithComments,
    /// TOML.
    Toml,
}

impl Syntax {
    /// The syntax of an editor's or agent's file: by its extension, else by its content.
    pub(crate) fn of_editor_file(name: &str, text: &str) -> Syntax {
        let extension = name.rsplit(['/', '\\']).next().and_then(|it| it.rsplit_once('.')).map(|it| it.1);
        match extension {
            Some("toml") => Syntax::Toml,
            _ if looks_like_toml(text) => Syntax::Toml,
            _ if looks_like_json(after_comments(text)) => Syntax::JsonWithComments,
            Some("yaml" | "yml") => Syntax::Yaml,
            _ if looks_like_yaml(text) => Syntax::Yaml,
            Some(_) | None => Syntax::JsonWithComments,
        }
    }
}

/// The text after the lines that begin with `#`, which is no comment in JSON.
fn after_comments(text: &str) -> &str {
    let length = text.split_inclusive('\n').take_while(|it| it.starts_with('#')).map(str::len).sum();
    &text[length..]
}

/// Returns whether the text has a line with Codex's key of servers, as TOML writes it.
pub(crate) fn looks_like_toml(text: &str) -> bool {
    ["[mcp_servers.", "[mcp_servers]", "mcp_servers."]
        .iter()
        .any(|key| text.starts_with(key) || text.contains(&format!("\n{key}")))
}

/// Returns whether the text has a line with a key of servers, as YAML writes it.
fn looks_like_yaml(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("mcpServers:") || line.starts_with("extensions:"))
}

/// The result of parsing a text.
#[expect(clippy::exhaustive_structs, reason = "not part of the public API")]
pub struct ParsedText {
    /// The tree; `None` if the text is not well-formed or too large. An empty text is null.
    pub root: Option<Node>,
    /// Values that are not in the tree, because their key is a duplicate or invalid.
    pub dropped: Vec<Range<usize>>,
    /// The mistakes in the text.
    pub diagnostics: Vec<RawDiagnostic>,
    /// What the text has beyond JSON.
    pub extensions: ExtensionSpans,
}

/// The first of each extension of JSON in a text, which strict parsers refuse.
#[derive(Debug, Clone, Default)]
pub struct ExtensionSpans {
    /// The first comment.
    pub comment: Option<Range<usize>>,
    /// The first comma before a closing bracket.
    pub trailing_comma: Option<Range<usize>>,
    /// The first blank between values that is not ASCII.
    pub unusual_blank: Option<Range<usize>>,
}

impl ParsedText {
    fn too_large() -> ParsedText {
        let message = "the file is larger than 1 MiB";
        let diagnostics = vec![RawDiagnostic::new(Code::TooLarge, message, "", 0..0).help(SPLIT_FILE_HELP)];
        let extensions = ExtensionSpans::default();
        ParsedText { root: None, dropped: Vec::new(), diagnostics, extensions }
    }
}

/// Parses a text. Never fails and never panics.
pub fn parse_as(text: &str, syntax: Syntax) -> ParsedText {
    match syntax {
        Syntax::Yaml => yaml::parse(text),
        Syntax::Json | Syntax::JsonWithComments => jsonc::parse(text, syntax),
        Syntax::Toml => toml::parse(text),
    }
}

/// Parses a text of unknown syntax: as TOML if it has Codex's servers, as JSON if it looks like JSON and is valid, else
/// as YAML.
///
/// A text with JSON comments is never YAML, even if it could be parsed: a comment would become a key.
pub(crate) fn parse_any(text: &str) -> ParsedText {
    if looks_like_toml(text) {
        return toml::parse(text);
    }
    if !jsonc::looks_like_json(text) {
        return yaml::parse(text);
    }
    let res = jsonc::parse(text, Syntax::JsonWithComments);
    if res.root.is_some() || jsonc::has_comment(text) { res } else { yaml::parse(text) }
}

/// A value and its span.
#[derive(Debug)]
pub struct Node {
    /// The value.
    pub content: Content,
    /// Its bytes; for an alias, those of the alias.
    pub span: Range<usize>,
    /// The number of values, including itself, with aliases expanded.
    size: usize,
    /// The depth, with aliases expanded; 1 for a scalar.
    depth: usize,
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
    /// A number that does not fit into `i64` or `f64`: an integer as decimal digits, another one as written.
    Large(String),
    /// A text.
    Text(String),
    /// A list.
    Sequence(Vec<Node>),
    /// An object.
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
    /// Its text; a number or boolean as written. Shared with the locations below it.
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
            _ => (1, 1),
        };
        Node { content, span, size, depth }
    }

    /// The value, with aliases followed.
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

    /// The value at a pointer, with aliases followed.
    pub(crate) fn at(&self, pointer: &str) -> Option<&Node> {
        segments(pointer).try_fold(self, |node, segment| match node.get(&segment) {
            Some(member) => Some(&member.value),
            None => node.items()?.get(segment.parse::<usize>().ok()?),
        })
    }

    /// Where a diagnostic about the whole value points: at the first key of a mapping, else at the value.
    pub(crate) fn highlight_span(&self) -> Range<usize> {
        match &self.content {
            Content::Mapping(members) => members.first().map_or(self.span.clone(), |it| it.key.span.clone()),
            Content::Shared(target) if target.span == self.span => target.highlight_span(),
            _ => self.span.clone(),
        }
    }

    /// A description of the type.
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
