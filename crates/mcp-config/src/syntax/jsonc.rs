//! Parses JSON, with or without comments, into a tree. The only file that depends on the JSON parser.
//!
//! The parser stops at the first syntax error. Characters that it accepts but JSON does not (line breaks in strings,
//! unusual blanks) are reported here, and so are duplicate keys, with both positions. The limits are those of YAML.
//! Valid text takes a faster path (see [`fast`]) to the same tree.

mod fast;

use std::collections::HashMap;
use std::ops::Range;

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::errors::{ParseError, ParseErrorKind};
use jsonc_parser::{CollectOptions, ParseOptions, ParseStringErrorKind, parse_to_ast};

use crate::diagnostic::{Code, RawDiagnostic, floor_char_boundary, quoted_key};
use crate::syntax::{
    Content, Key, KeyKind, MAX_BYTES, MAX_DEPTH, MAX_VALUES, Member, Node, ParsedText, SPLIT_FILE_HELP,
    Syntax, child, last,
};

/// Reads a text. Never fails, never panics.
pub(super) fn parse(text: &str, syntax: Syntax) -> ParsedText {
    if text.len() > MAX_BYTES {
        return ParsedText::too_large();
    }
    let skipped = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let text = &text[skipped..];
    let mut builder = JsonBuilder {
        text,
        skipped,
        values: 0,
        dropped: Vec::new(),
        diagnostics: Vec::new(),
        bad_strings: 0,
    };
    let root = fast::parse(text, skipped, syntax).or_else(|| builder.root(syntax));
    // The parser accepts blanks that JSON does not.
    if syntax == Syntax::Json
        && builder.diagnostics.is_empty()
        && !text.trim().is_empty()
        && let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text)
    {
        let at = builder.offset(error.line(), error.column());
        let diagnostic = RawDiagnostic::new(Code::Syntax, "invalid JSON: unexpected character", "", at);
        builder.diagnostics.push(diagnostic.help("between values, use only blanks, tabs and line breaks"));
    }
    ParsedText { root, dropped: builder.dropped, diagnostics: builder.diagnostics }
}

/// Returns whether the text begins like JSON, ignoring comments.
pub(crate) fn looks_like_json(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    text.starts_with(['{', '[', '"']) || text.starts_with("//") || text.starts_with("/*")
}

/// Returns whether the text may have a comment: `/*`, or `//` outside of a URL.
pub(super) fn has_comment(text: &str) -> bool {
    text.contains("/*") || text.match_indices("//").any(|(at, _)| !text[..at].ends_with(':'))
}

struct JsonBuilder<'a> {
    /// The text without its byte order mark.
    text: &'a str,
    /// The size of the byte order mark.
    skipped: usize,
    values: usize,
    dropped: Vec<Range<usize>>,
    diagnostics: Vec<RawDiagnostic>,
    /// The number of reported strings.
    bad_strings: usize,
}

impl JsonBuilder<'_> {
    /// Builds the tree and reports mistakes.
    fn root(&mut self, syntax: Syntax) -> Option<Node> {
        let lenient = syntax == Syntax::JsonWithComments;
        let options = ParseOptions {
            allow_comments: lenient,
            allow_trailing_commas: lenient,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let root = match parse_to_ast(self.text, &CollectOptions::default(), &options) {
            Err(error) => Err(Box::new(self.syntax(&error))),
            Ok(parsed) => match parsed.value {
                None => Ok(Node::new(Content::Null, self.skipped..self.skipped)),
                Some(value) => self.node(&value, "", 1),
            },
        };
        root.map_err(|diagnostic| self.diagnostics.push(*diagnostic)).ok()
    }

    fn node(&mut self, value: &Value<'_>, pointer: &str, depth: usize) -> Result<Node, Box<RawDiagnostic>> {
        let span = self.range(value);
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(too_large(format!("the file has more than {MAX_VALUES} values"), pointer, span));
        }
        let content = match value {
            Value::NullKeyword(_) => Content::Null,
            Value::BooleanLit(it) => Content::Bool(it.value),
            Value::NumberLit(it) => number(it.value),
            Value::StringLit(it) => {
                self.check_string(&span, pointer);
                Content::Text(it.value.to_string())
            }
            Value::Array(_) | Value::Object(_) if depth > MAX_DEPTH => {
                return Err(too_deep(pointer, span));
            }
            Value::Array(array) => {
                let items = array.elements.iter().enumerate();
                let items =
                    items.map(|(index, it)| self.node(it, &child(pointer, &index.to_string()), depth + 1));
                Content::Sequence(items.collect::<Result<_, _>>()?)
            }
            Value::Object(object) => Content::Mapping(self.members(object, pointer, depth)?),
        };
        Ok(Node::new(content, span))
    }

    fn members(
        &mut self,
        object: &Object<'_>,
        pointer: &str,
        depth: usize,
    ) -> Result<Vec<Member>, Box<RawDiagnostic>> {
        let mut res = Vec::with_capacity(object.properties.len());
        let mut seen: HashMap<&str, Range<usize>> = HashMap::new();
        for property in &object.properties {
            let name = property.name.as_str();
            let span = self.range(&property.name);
            self.check_string(&span, pointer);
            if let Some(first) = seen.get(name) {
                let shown = quoted_key(&last(pointer), name);
                let message = format!("the key '{shown}' appears twice");
                let diagnostic = RawDiagnostic::new(Code::DuplicateKey, message, child(pointer, name), span)
                    .label(first.clone(), format!("'{shown}' appears here first"))
                    .help("remove one of the two");
                self.diagnostics.push(diagnostic);
                self.dropped.push(self.range(&property.value));
                continue;
            }
            seen.insert(name, span.clone());
            let value = self.node(&property.value, &child(pointer, name), depth + 1)?;
            res.push(Member { key: Key { text: name.into(), span, kind: KeyKind::Text }, value });
        }
        Ok(res)
    }

    /// Reports a string with a line break or another control character.
    fn check_string(&mut self, span: &Range<usize>, pointer: &str) {
        const MAX_BAD_STRINGS: usize = 20;
        let source = &self.text[span.start - self.skipped..span.end - self.skipped];
        if self.bad_strings >= MAX_BAD_STRINGS || !source.bytes().any(|it| it < b' ') {
            return;
        }
        self.bad_strings += 1;
        let message = "invalid JSON: a string contains a line break or another control character";
        let diagnostic = RawDiagnostic::new(Code::Syntax, message, pointer, span.start..span.start + 1);
        self.diagnostics
            .push(diagnostic.help("write `\\n` for a line break, `\\t` for a tab; or close the quote"));
    }

    fn range(&self, node: &impl Ranged) -> Range<usize> {
        node.start() + self.skipped..node.end() + self.skipped
    }

    /// The character at a line and byte column, both from 1, as serde_json counts.
    fn offset(&self, line: usize, column: usize) -> Range<usize> {
        let start = self.text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>();
        let start = floor_char_boundary(self.text, start + column.saturating_sub(1));
        let length = self.text[start..].chars().next().map_or(0, char::len_utf8);
        start + self.skipped..start + length + self.skipped
    }

    fn syntax(&self, error: &ParseError) -> RawDiagnostic {
        let range = error.range();
        let span = range.start + self.skipped..range.end.max(range.start) + self.skipped;
        if matches!(error.kind(), ParseErrorKind::NestingDepthExceeded) {
            return *too_deep("", span);
        }
        let (message, help) = self.error_text(error);
        RawDiagnostic::new(Code::Syntax, format!("invalid JSON: {message}"), "", span).help(help)
    }

    /// The message and the help of an error. Neither quotes the text.
    fn error_text(&self, error: &ParseError) -> (&'static str, &'static str) {
        use ParseErrorKind as Kind;
        use ParseStringErrorKind as Text;
        const QUOTES: &str = "write names and texts in double quotes";
        match error.kind() {
            Kind::CommentsNotAllowed => ("comments are not allowed here", "remove the comment"),
            Kind::TrailingCommasNotAllowed => {
                ("a comma before a closing bracket is not allowed", "remove the comma")
            }
            Kind::ExpectedComma => ("a comma is missing", "put a comma between the two"),
            Kind::ExpectedColonAfterObjectKey => ("a `:` is missing after a key", "write `\"key\": value`"),
            Kind::ExpectedObjectValue => ("a key has no value", "write a value after the `:`"),
            Kind::ExpectedStringObjectProperty => ("a key is not in quotes", QUOTES),
            Kind::SingleQuotedStringsNotAllowed => ("single quotes are not allowed", QUOTES),
            Kind::UnexpectedWord => ("unexpected word", QUOTES),
            Kind::UnexpectedToken if self.is_word(error.range().start) => ("unexpected word", QUOTES),
            Kind::UnterminatedArray | Kind::UnterminatedObject => {
                ("a `[` or `{` is not closed", "close the bracket")
            }
            Kind::UnterminatedCommentBlock => ("a comment is not closed", "close it with `*/`"),
            Kind::MultipleRootJsonValues if self.is_fragment() => (
                "this is a fragment: a key and its value without the surrounding braces",
                "put `{` before it and `}` after it",
            ),
            Kind::MultipleRootJsonValues => {
                ("unexpected text after the value", "one file holds one value; remove the rest")
            }
            Kind::UnexpectedCloseBrace
            | Kind::UnexpectedCloseBracket
            | Kind::UnexpectedColon
            | Kind::UnexpectedComma
            | Kind::UnexpectedToken
            | Kind::UnexpectedTokenInObject => {
                ("unexpected punctuation", "look for an extra or missing bracket, comma or value")
            }
            Kind::String(Text::UnterminatedStringLiteral) => ("a quote is not closed", "close the quote"),
            Kind::String(_) => {
                ("invalid escape sequence", "write a backslash as `\\\\`, as in `C:\\\\tools`")
            }
            Kind::BareDecimalPointNumbersNotAllowed
            | Kind::ExpectedDigit
            | Kind::ExpectedDigitFollowingNegativeSign
            | Kind::ExpectedPlusMinusOrDigitInNumberLiteral
            | Kind::HexadecimalNumbersNotAllowed
            | Kind::NonFiniteNumbersNotAllowed
            | Kind::UnaryPlusNumbersNotAllowed => {
                ("a number is not written as JSON writes numbers", "write digits, such as 30 or 0.5")
            }
            Kind::NestingDepthExceeded => ("it is nested too deep", SPLIT_FILE_HELP),
        }
    }

    fn is_word(&self, at: usize) -> bool {
        self.text.get(at..).is_some_and(|it| it.starts_with(|it: char| it.is_alphanumeric() || it == '_'))
    }

    /// Returns whether the text is a fragment such as `"mcpServers": {…}`.
    fn is_fragment(&self) -> bool {
        let rest = self.text.trim_start();
        let Some(end) = rest.strip_prefix('"').and_then(|it| it.find('"')) else { return false };
        rest[end + 2..].trim_start().starts_with(':')
    }
}

fn too_large(message: String, pointer: &str, span: Range<usize>) -> Box<RawDiagnostic> {
    Box::new(
        RawDiagnostic::new(Code::TooLarge, message, pointer, span.start..span.start + 1)
            .help(SPLIT_FILE_HELP),
    )
}

fn too_deep(pointer: &str, span: Range<usize>) -> Box<RawDiagnostic> {
    too_large(format!("the file is nested deeper than {MAX_DEPTH} levels"), pointer, span)
}

fn number(text: &str) -> Content {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !digits.bytes().all(|it| it.is_ascii_digit()) {
        return Content::Float(text.parse().unwrap_or(f64::NAN));
    }
    text.parse().map_or_else(|_| Content::Large(text.to_owned()), Content::Integer)
}

#[cfg(test)]
mod tests;
