//! Parses JSON, with or without comments, into a tree. Only this module depends on the JSON parser.
//!
//! The tree is built from tokens in one pass. After a syntax error, the parser of jsonc-parser determines the messages.
//! Characters that it accepts but JSON does not (line breaks in strings, unusual blanks) are reported here, and so are
//! duplicate keys, with both positions. The limits are those of YAML.

pub(in crate::syntax) mod mistakes;
mod options;
mod recovery;

use std::ops::Range;
use std::rc::Rc;

use jsonc_parser::Scanner;
use jsonc_parser::tokens::Token;

use crate::diagnostic::{Code, RawDiagnostic, floor_char_boundary};
use crate::syntax::jsonc::options::{SCANNER, control_character_diagnostic};
use crate::syntax::key_index::KeyIndex;
use crate::syntax::key_interner::KeyInterner;
use crate::syntax::parsed_text::{
    MAX_BYTES, MAX_DEPTH, MAX_VALUES, duplicate_key_diagnostic, too_deep_message, too_large_diagnostic,
    too_many_values_message,
};
use crate::syntax::scalar;
use crate::syntax::{
    Content, ExtensionSpans, Key, KeyKind, Member, Node, ParsedText, Syntax, look_alike, push_key,
};

/// Reads a text. Never fails, never panics.
pub(super) fn parse(text: &str, syntax: Syntax) -> ParsedText {
    if text.len() > MAX_BYTES {
        return ParsedText::too_large();
    }
    let bom_len = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let text = &text[bom_len..];
    let mut reader = JsonReader {
        text,
        bom_len,
        syntax,
        scanner: Scanner::new(text, &SCANNER),
        keys: KeyInterner::default(),
        path: Vec::new(),
        value_count: 0,
        dropped: Vec::new(),
        diagnostics: Vec::new(),
        bad_string_count: 0,
        extensions: ExtensionSpans::default(),
    };
    let root = match reader.read_document() {
        Ok(root) => Some(root),
        Err(StopReason::Limit(diagnostic)) => {
            reader.diagnostics.push(*diagnostic);
            None
        }
        Err(StopReason::Syntax) => {
            reader.dropped.clear();
            reader.diagnostics = recovery::find_errors(text, bom_len, syntax);
            if reader.diagnostics.is_empty() {
                let message = "invalid JSON: unexpected character";
                reader.diagnostics.push(RawDiagnostic::new(Code::Syntax, message, "", reader.span()));
            }
            None
        }
    };
    // The parser accepts blanks that JSON does not.
    if syntax == Syntax::Json
        && reader.diagnostics.is_empty()
        && !text.trim().is_empty()
        && let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text)
    {
        let at = reader.character_span(error.line(), error.column());
        let character = reader.text.get(at.start - bom_len..).and_then(|it| it.chars().next());
        let described = character.and_then(look_alike::describe);
        let (message, help) = described.unwrap_or_else(|| {
            (
                "unexpected character".to_owned(),
                "between values, use only spaces, tabs and line breaks".to_owned(),
            )
        });
        let message = format!("invalid JSON: {message}");
        reader.diagnostics.push(RawDiagnostic::new(Code::Syntax, message, "", at).help(help));
    }
    let JsonReader { dropped, diagnostics, mut extensions, .. } = reader;
    if syntax == Syntax::JsonWithComments && root.is_some() {
        extensions.unusual_blank =
            find_unusual_blank(text).map(|span| span.start + bom_len..span.end + bom_len);
    }
    ParsedText { root, dropped, diagnostics, extensions }
}

/// The first blank between the tokens of a valid text that is not ASCII.
fn find_unusual_blank(text: &str) -> Option<Range<usize>> {
    if text.is_ascii() {
        return None;
    }
    let mut scanner = Scanner::new(text, &SCANNER);
    let mut end = 0;
    loop {
        let is_token = matches!(scanner.scan(), Ok(Some(_)));
        let start = if is_token { scanner.token_start() } else { text.len() };
        let found = text.get(end..start)?.char_indices().find(|(_, character)| !character.is_ascii());
        if let Some((at, character)) = found {
            return Some(end + at..end + at + character.len_utf8());
        }
        if !is_token {
            return None;
        }
        end = scanner.token_end();
    }
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

/// Builds the tree from the tokens of a text.
struct JsonReader<'a> {
    /// The text without its byte order mark.
    text: &'a str,
    /// The length of the byte order mark in bytes; 0 without one.
    bom_len: usize,
    syntax: Syntax,
    scanner: Scanner<'a>,
    keys: KeyInterner,
    /// The path of the value that is being read.
    path: Vec<PathSegment>,
    /// The number of values so far, which is limited.
    value_count: usize,
    dropped: Vec<Range<usize>>,
    diagnostics: Vec<RawDiagnostic>,
    /// The number of strings with control characters, of which only the first are reported.
    bad_string_count: usize,
    extensions: ExtensionSpans,
}

/// A segment of a path.
enum PathSegment {
    Key(Rc<str>),
    Index(usize),
}

/// Why reading stopped.
enum StopReason {
    Syntax,
    Limit(Box<RawDiagnostic>),
}

impl<'a> JsonReader<'a> {
    /// Reads the only value of the text; an empty text is null.
    fn read_document(&mut self) -> Result<Node, StopReason> {
        let Some(first) = self.next_token()? else {
            return Ok(Node::new(Content::Null, self.bom_len..self.bom_len));
        };
        let root = self.read_value(first)?;
        if self.next_token()?.is_some() { Err(StopReason::Syntax) } else { Ok(root) }
    }

    /// The next token that is not a comment; `None` at the end.
    fn next_token(&mut self) -> Result<Option<Token<'a>>, StopReason> {
        loop {
            match self.scanner.scan().map_err(|_| StopReason::Syntax)? {
                Some(Token::CommentLine(_) | Token::CommentBlock(_)) => {
                    if self.syntax != Syntax::JsonWithComments {
                        return Err(StopReason::Syntax);
                    }
                    let span = self.span();
                    self.extensions.comment.get_or_insert(span);
                }
                token => return Ok(token),
            }
        }
    }

    fn expect_token(&mut self) -> Result<Token<'a>, StopReason> {
        self.next_token()?.ok_or(StopReason::Syntax)
    }

    /// Reads the value that begins with the token `first`.
    fn read_value(&mut self, first: Token<'a>) -> Result<Node, StopReason> {
        let span = self.span();
        self.value_count += 1;
        if self.value_count > MAX_VALUES {
            return Err(self.exceeded_limit(too_many_values_message(), span));
        }
        let content = match first {
            Token::Null => Content::Null,
            Token::Boolean(value) => Content::Bool(value),
            Token::Number(text) => parse_number(text),
            Token::String(text) => {
                self.check_string();
                Content::Text(text.into_owned())
            }
            Token::OpenBracket | Token::OpenBrace if self.path.len() >= MAX_DEPTH => {
                return Err(self.exceeded_limit(too_deep_message(), span));
            }
            Token::OpenBracket => Content::Sequence(self.read_items()?),
            Token::OpenBrace => Content::Mapping(self.read_members()?),
            Token::CloseBrace
            | Token::CloseBracket
            | Token::Comma
            | Token::Colon
            | Token::Word(_)
            | Token::CommentLine(_)
            | Token::CommentBlock(_) => return Err(StopReason::Syntax),
        };
        Ok(Node::new(content, span.start..self.span().end))
    }

    /// Reads the value of an entry that begins with the token `first`.
    fn read_child(&mut self, first: Token<'a>, segment: PathSegment) -> Result<Node, StopReason> {
        self.path.push(segment);
        let node = self.read_value(first)?;
        self.path.pop();
        Ok(node)
    }

    /// Moves to the next entry of a collection. Returns its first token, or `None` at the bracket `end`. `entries` is
    /// the number of entries so far.
    fn next_entry(&mut self, end: Token<'static>, entries: usize) -> Result<Option<Token<'a>>, StopReason> {
        let token = self.expect_token()?;
        if token == end {
            return Ok(None);
        }
        if entries == 0 {
            return Ok(Some(token));
        }
        if token != Token::Comma {
            return Err(StopReason::Syntax);
        }
        let comma = self.span();
        let token = self.expect_token()?;
        if token != end {
            Ok(Some(token))
        } else if self.syntax == Syntax::JsonWithComments {
            self.extensions.trailing_comma.get_or_insert(comma);
            Ok(None)
        } else {
            Err(StopReason::Syntax)
        }
    }

    fn read_items(&mut self) -> Result<Vec<Node>, StopReason> {
        let mut items = Vec::new();
        while let Some(first) = self.next_entry(Token::CloseBracket, items.len())? {
            items.push(self.read_child(first, PathSegment::Index(items.len()))?);
        }
        Ok(items)
    }

    /// The members of an object without duplicates: of two members with one key, the first counts.
    fn read_members(&mut self) -> Result<Vec<Member>, StopReason> {
        let mut members: Vec<Member> = Vec::new();
        let mut index = KeyIndex::default();
        let mut entries = 0;
        while let Some(name) = self.next_entry(Token::CloseBrace, entries)? {
            entries += 1;
            let Token::String(name) = name else { return Err(StopReason::Syntax) };
            self.check_string();
            let key = Key { text: self.keys.intern(&name), span: self.span(), kind: KeyKind::Text };
            if self.expect_token()? != Token::Colon {
                return Err(StopReason::Syntax);
            }
            let first = self.expect_token()?;
            let earlier = index.find(&members, &key.text).map(|it| it.key.span.clone());
            let (value_count, diagnostics, dropped) =
                (self.value_count, self.diagnostics.len(), self.dropped.len());
            let value = self.read_child(first, PathSegment::Key(Rc::clone(&key.text)))?;
            let Some(earlier) = earlier else {
                members.push(Member { key, value });
                continue;
            };
            // Nothing in a dropped value counts: its size does not, and its diagnostics are discarded.
            self.value_count = value_count;
            self.diagnostics.truncate(diagnostics);
            self.dropped.truncate(dropped);
            let pointer = self.pointer();
            self.diagnostics.push(duplicate_key_diagnostic(&pointer, &key.text, key.span, earlier));
            self.dropped.push(value.span);
        }
        Ok(members)
    }

    /// Reports a control character in the current string. Of many such strings, only the first are reported.
    fn check_string(&mut self) {
        const MAX_BAD_STRINGS: usize = 20;
        let source = &self.text.as_bytes()[self.scanner.token_start()..self.scanner.token_end()];
        // Counting all bytes is faster than stopping early.
        if source.iter().filter(|it| **it < b' ').count() == 0 || self.bad_string_count >= MAX_BAD_STRINGS {
            return;
        }
        self.bad_string_count += 1;
        self.diagnostics.push(control_character_diagnostic(self.pointer(), self.span().start));
    }

    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for segment in &self.path {
            match segment {
                PathSegment::Key(key) => push_key(&mut pointer, key),
                PathSegment::Index(index) => push_key(&mut pointer, &index.to_string()),
            }
        }
        pointer
    }

    /// The reason to stop at an exceeded limit.
    fn exceeded_limit(&self, message: String, span: Range<usize>) -> StopReason {
        let diagnostic = too_large_diagnostic(message, &self.pointer(), span.start..span.start + 1);
        StopReason::Limit(Box::new(diagnostic))
    }

    /// The bytes of the current token in the text.
    fn span(&self) -> Range<usize> {
        self.scanner.token_start() + self.bom_len..self.scanner.token_end() + self.bom_len
    }

    /// The character at a line and byte column, both from 1, as serde_json counts.
    fn character_span(&self, line: usize, column: usize) -> Range<usize> {
        let start = self.text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>();
        let start = floor_char_boundary(self.text, start + column.saturating_sub(1));
        let length = self.text[start..].chars().next().map_or(0, char::len_utf8);
        start + self.bom_len..start + length + self.bom_len
    }
}

/// Parses a number; one that is too large is kept as text.
fn parse_number(text: &str) -> Content {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !digits.bytes().all(|it| it.is_ascii_digit()) {
        return scalar::float_or_large(text.parse().unwrap_or(f64::NAN), text);
    }
    text.parse().map_or_else(|_| Content::Large(text.to_owned()), Content::Integer)
}

#[cfg(test)]
mod tests;
