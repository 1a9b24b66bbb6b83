//! Parses JSON, with or without comments, into a tree. Only this module depends on the JSON parser.
//!
//! The tree is built from tokens in one pass. After a syntax error, the library's parser determines the messages.
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
use crate::syntax::jsonc::options::{SCANNER, control_character};
use crate::syntax::key_interner::{KeyIndex, KeyInterner};
use crate::syntax::parsed_text::{
    MAX_BYTES, MAX_DEPTH, MAX_VALUES, duplicate_key, too_deep_message, too_large, too_many_values_message,
};
use crate::syntax::scalar;
use crate::syntax::{
    Content, ExtensionSpans, Key, KeyKind, Member, Node, ParsedText, Syntax, look_alike, push,
};

/// Reads a text. Never fails, never panics.
pub(super) fn parse(text: &str, syntax: Syntax) -> ParsedText {
    if text.len() > MAX_BYTES {
        return ParsedText::too_large();
    }
    let skipped = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let text = &text[skipped..];
    let mut reader = JsonReader {
        text,
        skipped,
        syntax,
        scanner: Scanner::new(text, &SCANNER),
        keys: KeyInterner::default(),
        path: Vec::new(),
        values: 0,
        dropped: Vec::new(),
        diagnostics: Vec::new(),
        bad_strings: 0,
        extensions: ExtensionSpans::default(),
    };
    let root = match reader.document() {
        Ok(root) => Some(root),
        Err(Stop::Limit(diagnostic)) => {
            reader.diagnostics.push(*diagnostic);
            None
        }
        Err(Stop::Syntax) => {
            reader.dropped.clear();
            reader.diagnostics = recovery::errors(text, skipped, syntax);
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
        let at = reader.offset(error.line(), error.column());
        let character = reader.text.get(at.start - skipped..).and_then(|it| it.chars().next());
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
        extensions.unusual_blank = unusual_blank(text).map(|span| span.start + skipped..span.end + skipped);
    }
    ParsedText { root, dropped, diagnostics, extensions }
}

/// The first blank between the tokens of a valid text that is not ASCII.
fn unusual_blank(text: &str) -> Option<Range<usize>> {
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

struct JsonReader<'a> {
    /// The text without its byte order mark.
    text: &'a str,
    /// The size of the byte order mark.
    skipped: usize,
    syntax: Syntax,
    scanner: Scanner<'a>,
    keys: KeyInterner,
    /// The path of the value that is being read.
    path: Vec<Segment>,
    /// The number of values so far, which is limited.
    values: usize,
    dropped: Vec<Range<usize>>,
    diagnostics: Vec<RawDiagnostic>,
    /// The number of reported strings.
    bad_strings: usize,
    extensions: ExtensionSpans,
}

/// A segment of a path.
enum Segment {
    Key(Rc<str>),
    Index(usize),
}

/// Why reading stopped.
enum Stop {
    Syntax,
    Limit(Box<RawDiagnostic>),
}

impl<'a> JsonReader<'a> {
    fn document(&mut self) -> Result<Node, Stop> {
        let Some(first) = self.next()? else {
            return Ok(Node::new(Content::Null, self.skipped..self.skipped));
        };
        let root = self.node(first)?;
        if self.next()?.is_some() { Err(Stop::Syntax) } else { Ok(root) }
    }

    /// The next token that is not a comment; `None` at the end.
    fn next(&mut self) -> Result<Option<Token<'a>>, Stop> {
        loop {
            match self.scanner.scan().map_err(|_| Stop::Syntax)? {
                Some(Token::CommentLine(_) | Token::CommentBlock(_)) => {
                    if self.syntax != Syntax::JsonWithComments {
                        return Err(Stop::Syntax);
                    }
                    let span = self.span();
                    self.extensions.comment.get_or_insert(span);
                }
                token => return Ok(token),
            }
        }
    }

    fn expect_next(&mut self) -> Result<Token<'a>, Stop> {
        self.next()?.ok_or(Stop::Syntax)
    }

    /// The value that begins with the token `first`.
    fn node(&mut self, first: Token<'a>) -> Result<Node, Stop> {
        let span = self.span();
        self.values += 1;
        if self.values > MAX_VALUES {
            return Err(self.limit(too_many_values_message(), span));
        }
        let content = match first {
            Token::Null => Content::Null,
            Token::Boolean(value) => Content::Bool(value),
            Token::Number(text) => number(text),
            Token::String(text) => {
                self.check_string();
                Content::Text(text.into_owned())
            }
            Token::OpenBracket | Token::OpenBrace if self.path.len() >= MAX_DEPTH => {
                return Err(self.limit(too_deep_message(), span));
            }
            Token::OpenBracket => Content::Sequence(self.items()?),
            Token::OpenBrace => Content::Mapping(self.members()?),
            Token::CloseBrace
            | Token::CloseBracket
            | Token::Comma
            | Token::Colon
            | Token::Word(_)
            | Token::CommentLine(_)
            | Token::CommentBlock(_) => return Err(Stop::Syntax),
        };
        Ok(Node::new(content, span.start..self.span().end))
    }

    fn child(&mut self, first: Token<'a>, segment: Segment) -> Result<Node, Stop> {
        self.path.push(segment);
        let node = self.node(first)?;
        self.path.pop();
        Ok(node)
    }

    /// Moves to the next entry of a collection. Returns its first token, or `None` at the bracket `end`. `entries` is
    /// the number of entries so far.
    fn next_entry(&mut self, end: Token<'static>, entries: usize) -> Result<Option<Token<'a>>, Stop> {
        let token = self.expect_next()?;
        if token == end {
            return Ok(None);
        }
        if entries == 0 {
            return Ok(Some(token));
        }
        if token != Token::Comma {
            return Err(Stop::Syntax);
        }
        let comma = self.span();
        let token = self.expect_next()?;
        if token != end {
            Ok(Some(token))
        } else if self.syntax == Syntax::JsonWithComments {
            self.extensions.trailing_comma.get_or_insert(comma);
            Ok(None)
        } else {
            Err(Stop::Syntax)
        }
    }

    fn items(&mut self) -> Result<Vec<Node>, Stop> {
        let mut items = Vec::new();
        while let Some(first) = self.next_entry(Token::CloseBracket, items.len())? {
            items.push(self.child(first, Segment::Index(items.len()))?);
        }
        Ok(items)
    }

    /// The members of an object without duplicates: of two members with one key, the first counts.
    fn members(&mut self) -> Result<Vec<Member>, Stop> {
        let mut members: Vec<Member> = Vec::new();
        let mut index = KeyIndex::default();
        let mut entries = 0;
        while let Some(name) = self.next_entry(Token::CloseBrace, entries)? {
            entries += 1;
            let Token::String(name) = name else { return Err(Stop::Syntax) };
            self.check_string();
            let key = Key { text: self.keys.intern(&name), span: self.span(), kind: KeyKind::Text };
            if self.expect_next()? != Token::Colon {
                return Err(Stop::Syntax);
            }
            let first = self.expect_next()?;
            let earlier = index.find(&members, &key.text).map(|it| it.key.span.clone());
            let before = (self.values, self.diagnostics.len(), self.dropped.len());
            let value = self.child(first, Segment::Key(Rc::clone(&key.text)))?;
            let Some(earlier) = earlier else {
                members.push(Member { key, value });
                continue;
            };
            // Nothing in a dropped value counts: its size does not, and its diagnostics are discarded.
            self.values = before.0;
            self.diagnostics.truncate(before.1);
            self.dropped.truncate(before.2);
            let pointer = self.pointer();
            self.diagnostics.push(duplicate_key(&pointer, &key.text, key.span, earlier));
            self.dropped.push(value.span);
        }
        Ok(members)
    }

    /// Reports a control character in the current string. Of many such strings, only the first are reported.
    fn check_string(&mut self) {
        const MAX_BAD_STRINGS: usize = 20;
        let source = &self.text.as_bytes()[self.scanner.token_start()..self.scanner.token_end()];
        // Counting all bytes is faster than stopping early.
        if source.iter().filter(|it| **it < b' ').count() == 0 || self.bad_strings >= MAX_BAD_STRINGS {
            return;
        }
        self.bad_strings += 1;
        self.diagnostics.push(control_character(self.pointer(), self.span().start));
    }

    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for segment in &self.path {
            match segment {
                Segment::Key(key) => push(&mut pointer, key),
                Segment::Index(index) => push(&mut pointer, &index.to_string()),
            }
        }
        pointer
    }

    fn limit(&self, message: String, span: Range<usize>) -> Stop {
        Stop::Limit(Box::new(too_large(message, &self.pointer(), span.start..span.start + 1)))
    }

    /// The bytes of the current token in the text.
    fn span(&self) -> Range<usize> {
        self.scanner.token_start() + self.skipped..self.scanner.token_end() + self.skipped
    }

    /// The character at a line and byte column, both from 1, as serde_json counts.
    fn offset(&self, line: usize, column: usize) -> Range<usize> {
        let start = self.text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>();
        let start = floor_char_boundary(self.text, start + column.saturating_sub(1));
        let length = self.text[start..].chars().next().map_or(0, char::len_utf8);
        start + self.skipped..start + length + self.skipped
    }
}

fn number(text: &str) -> Content {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if !digits.bytes().all(|it| it.is_ascii_digit()) {
        return scalar::finite(text.parse().unwrap_or(f64::NAN), text);
    }
    text.parse().map_or_else(|_| Content::Large(text.to_owned()), Content::Integer)
}

#[cfg(test)]
mod tests;
