//! Fast path for valid JSON: builds the tree from tokens in one pass.
//!
//! For any irregularity, from an extra comma to a duplicate key, it returns `None`. The text is then parsed again by
//! the full parser, which reports the mistake.

use std::collections::HashSet;
use std::ops::Range;

use jsonc_parser::tokens::Token;
use jsonc_parser::{Scanner, ScannerOptions};

use crate::syntax::jsonc::number;
use crate::syntax::key_interner::KeyInterner;
use crate::syntax::{Content, Key, KeyKind, MAX_DEPTH, MAX_VALUES, Member, Node, Syntax};

/// The tree of a text; `None` if the text has a mistake. `skipped` is the size of the byte order mark before it.
pub(super) fn parse(text: &str, skipped: usize, syntax: Syntax) -> Option<Node> {
    let options = ScannerOptions {
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let scanner = Scanner::new(text, &options);
    let mut reader = FastReader { text, skipped, syntax, scanner, values: 0, keys: KeyInterner::default() };
    let first = reader.next()??;
    let root = reader.node(first, 1)?;
    reader.next()?.is_none().then_some(root)
}

struct FastReader<'a> {
    text: &'a str,
    skipped: usize,
    syntax: Syntax,
    scanner: Scanner<'a>,
    values: usize,
    keys: KeyInterner,
}

impl<'a> FastReader<'a> {
    /// The next token that is not a comment. The inner `None` is the end of the text.
    fn next(&mut self) -> Option<Option<Token<'a>>> {
        loop {
            match self.scanner.scan().ok()? {
                Some(Token::CommentLine(_) | Token::CommentBlock(_)) => {
                    (self.syntax == Syntax::JsonWithComments).then_some(())?;
                }
                token => return Some(token),
            }
        }
    }

    /// The value that starts with a token.
    fn node(&mut self, first: Token<'a>, depth: usize) -> Option<Node> {
        self.values += 1;
        if self.values > MAX_VALUES {
            return None;
        }
        let start = self.span().start;
        let content = match first {
            Token::Null => Content::Null,
            Token::Boolean(value) => Content::Bool(value),
            Token::Number(text) => number(text),
            Token::String(text) => {
                self.has_no_control_characters().then_some(())?;
                Content::Text(text.into_owned())
            }
            Token::OpenBracket | Token::OpenBrace if depth > MAX_DEPTH => return None,
            Token::OpenBracket => Content::Sequence(self.items(depth)?),
            Token::OpenBrace => Content::Mapping(self.members(depth)?),
            Token::CloseBrace
            | Token::CloseBracket
            | Token::Comma
            | Token::Colon
            | Token::Word(_)
            | Token::CommentLine(_)
            | Token::CommentBlock(_) => return None,
        };
        Some(Node::new(content, start..self.span().end))
    }

    fn items(&mut self, depth: usize) -> Option<Vec<Node>> {
        let mut res = Vec::new();
        let mut token = self.next()??;
        loop {
            if token == Token::CloseBracket {
                return self.may_close(res.is_empty()).then_some(res);
            }
            res.push(self.node(token, depth + 1)?);
            match self.next()?? {
                Token::Comma => token = self.next()??,
                Token::CloseBracket => return Some(res),
                _ => return None,
            }
        }
    }

    fn members(&mut self, depth: usize) -> Option<Vec<Member>> {
        let mut res = Vec::new();
        let mut token = self.next()??;
        loop {
            if token == Token::CloseBrace {
                let good = self.may_close(res.is_empty()) && keys_are_unique(&res);
                return good.then_some(res);
            }
            let Token::String(text) = token else { return None };
            self.has_no_control_characters().then_some(())?;
            let key = Key { text: self.keys.intern(&text), span: self.span(), kind: KeyKind::Text };
            (self.next()?? == Token::Colon).then_some(())?;
            let first = self.next()??;
            res.push(Member { key, value: self.node(first, depth + 1)? });
            match self.next()?? {
                Token::Comma => token = self.next()??,
                Token::CloseBrace => return keys_are_unique(&res).then_some(res),
                _ => return None,
            }
        }
    }

    /// Returns whether a bracket may close here: after the opening bracket, or after a trailing comma.
    fn may_close(&self, is_empty: bool) -> bool {
        is_empty || self.syntax == Syntax::JsonWithComments
    }

    /// The bytes of the last token.
    fn span(&self) -> Range<usize> {
        self.scanner.token_start() + self.skipped..self.scanner.token_end() + self.skipped
    }

    /// Returns whether the last token, a string, has no control characters.
    fn has_no_control_characters(&self) -> bool {
        let bytes = &self.text.as_bytes()[self.scanner.token_start()..self.scanner.token_end()];
        // Scanning all bytes is faster than an early exit.
        bytes.iter().filter(|it| **it < b' ').count() == 0
    }
}

fn keys_are_unique(members: &[Member]) -> bool {
    // Below this size, pairwise comparison is faster than hashing.
    const FEW: usize = 12;
    if members.len() <= FEW {
        let earlier = |at: usize| members[..at].iter().any(|it| it.key.text == members[at].key.text);
        return !(1..members.len()).any(earlier);
    }
    let mut seen = HashSet::with_capacity(members.len());
    members.iter().all(|it| seen.insert(&*it.key.text))
}
