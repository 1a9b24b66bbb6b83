//! The result of parsing a text, the limits of all parsers, and mistakes that are alike in every syntax.

use std::ops::Range;

use crate::diagnostic::{Code, RawDiagnostic, quoted_key};
use crate::syntax::look_alike;
use crate::syntax::node::Node;
use crate::syntax::pointer::{child_pointer, last_key};

/// The maximum size of a file, in bytes.
pub(super) const MAX_BYTES: usize = 1 << 20;
/// The maximum nesting depth, with aliases expanded.
pub(super) const MAX_DEPTH: usize = 64;
/// The maximum number of values, with aliases expanded.
pub(super) const MAX_VALUES: usize = 100_000;

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

/// The result of parsing a text.
#[derive(Default)]
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
    pub(super) fn too_large() -> ParsedText {
        ParsedText::failed(too_large_diagnostic("the file is larger than 1 MiB".to_owned(), "", 0..0))
    }

    /// A text without a tree, because of this mistake.
    pub(super) fn failed(mistake: RawDiagnostic) -> ParsedText {
        ParsedText { diagnostics: vec![mistake], ..ParsedText::default() }
    }
}

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
pub(super) fn describe_conflict_marker(text: &str, at: usize) -> Option<&'static str> {
    let begins_line = at == 0 || text[..at].ends_with('\n');
    let is_marker = ["<<<<<<<", "=======", ">>>>>>>"].iter().any(|it| text[at..].starts_with(it));
    (begins_line && is_marker).then_some("an unresolved merge conflict")
}

/// The diagnostic for a text that exceeds a limit.
pub(super) fn too_large_diagnostic(message: String, pointer: &str, span: Range<usize>) -> RawDiagnostic {
    RawDiagnostic::new(Code::TooLarge, message, pointer, span).help(SPLIT_FILE_HELP)
}

/// The message for a text that exceeds [`MAX_VALUES`].
pub(super) fn too_many_values_message() -> String {
    format!("the file has more than {MAX_VALUES} values")
}

/// The message for a text that exceeds [`MAX_DEPTH`].
pub(super) fn too_deep_message() -> String {
    format!("the file is nested deeper than {MAX_DEPTH} levels")
}

/// The diagnostic for a key that the mapping at a pointer has twice; `first` is the earlier one.
pub(super) fn duplicate_key_diagnostic(
    pointer: &str,
    key: &str,
    span: Range<usize>,
    first: Range<usize>,
) -> RawDiagnostic {
    let shown = quoted_key(&last_key(pointer), key);
    let message = format!("the key '{shown}' appears twice");
    RawDiagnostic::new(Code::DuplicateKey, message, child_pointer(pointer, key), span)
        .label(first, format!("'{shown}' appears here first"))
        .help("remove one of the two")
}

pub(super) const SPLIT_FILE_HELP: &str = "split or simplify the file";
