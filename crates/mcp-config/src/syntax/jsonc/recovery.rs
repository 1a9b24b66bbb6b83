//! Finds further syntax errors after the first one.
//!
//! An error whose correction is obvious is corrected in a copy of the text, which is read again. After any other error,
//! or a correction that may be wrong, nothing more is reported: a wrong guess would report errors that are none.

use std::ops::Range;

use jsonc_parser::errors::{ParseError, ParseErrorKind as Kind};
use jsonc_parser::tokens::Token;
use jsonc_parser::{CollectOptions, ParseStringErrorKind, Scanner, parse_to_ast};

use crate::diagnostic::{Code, RawDiagnostic};
use crate::syntax::Syntax;
use crate::syntax::jsonc::mistakes::{Brackets, BrokenJson};
use crate::syntax::jsonc::options::{SCANNER, control_character_diagnostic, parse_options};
use crate::syntax::look_alike::{LookAlike, look_alike};
use crate::syntax::parsed_text::{describe_conflict_marker, too_deep_message, too_large_diagnostic};

/// The maximum number of errors of a text.
const MAX_ERRORS: usize = 10;

/// The correction of an error.
struct Correction {
    range: Range<usize>,
    text: String,
    /// The end of the text in which a further error may be a consequence.
    doubtful_until: usize,
}

/// The syntax errors of a text without its byte order mark, which has the length `bom_len`.
pub(super) fn find_errors(text: &str, bom_len: usize, syntax: Syntax) -> Vec<RawDiagnostic> {
    let mut copy = text.to_owned();
    // The ends of the corrections in the copy, and how much longer the copy is up to there.
    let mut shifts: Vec<(usize, isize)> = Vec::new();
    let mut res: Vec<RawDiagnostic> = Vec::new();
    let mut next_start = 0;
    while res.len() < MAX_ERRORS {
        let broken = BrokenJson { text: &copy, bom_len, syntax };
        let (at, mut diagnostic, correction) = match (broken.find_bad_string(), broken.parse_error()) {
            (Some(token), error) if error.as_ref().is_none_or(|it| token.start < it.range().start) => {
                let start = token.start + bom_len;
                let diagnostic = match broken.is_unclosed_string(&token) {
                    true => {
                        let message = "invalid JSON: a quote is not closed on its line";
                        RawDiagnostic::new(Code::Syntax, message, "", start..start + 1)
                            .help("close the quote")
                    }
                    false => control_character_diagnostic(String::new(), start),
                };
                (token.start, diagnostic, Some(broken.correct_string(token)))
            }
            (_, Some(error)) => {
                let range = match error.kind() {
                    // The range is that of the bracket.
                    Kind::UnterminatedArray | Kind::UnterminatedObject => copy.len()..copy.len(),
                    _ => error.range().start..error.range().end,
                };
                let diagnostic = match error.kind() {
                    Kind::NestingDepthExceeded => {
                        let start = range.start + bom_len;
                        too_large_diagnostic(too_deep_message(), "", start..start + 1)
                    }
                    _ => broken.diagnose(&error, &SCANNER),
                };
                (range.start, diagnostic, broken.correct(&error))
            }
            (_, None) => break,
        };
        if at < next_start {
            break;
        }
        let original = |position: usize| {
            let shift = shifts.iter().rfind(|it| it.0 + bom_len <= position).map_or(0, |it| it.1);
            position.saturating_add_signed(-shift).min(text.len() + bom_len)
        };
        let labels = diagnostic.labels.iter_mut().map(|it| &mut it.span);
        for span in labels.chain([&mut diagnostic.span]) {
            *span = original(span.start)..original(span.end);
        }
        res.push(diagnostic);
        let Some(Correction { range, text: correct, doubtful_until }) = correction else { break };
        let shift = shifts.last().map_or(0, |it| it.1);
        let end = range.start + correct.len();
        let growth = correct.len().cast_signed() - range.len().cast_signed();
        shifts.push((end, shift + growth));
        next_start = end.max(doubtful_until.saturating_add_signed(growth));
        copy.replace_range(range, &correct);
    }
    res
}

impl BrokenJson<'_> {
    /// The first error of jsonc-parser.
    fn parse_error(&self) -> Option<ParseError> {
        parse_to_ast(self.text, &CollectOptions::default(), &parse_options(self.syntax)).err()
    }

    /// The first string with a line break or another control character.
    fn find_bad_string(&self) -> Option<Range<usize>> {
        let mut scanner = Scanner::new(self.text, &SCANNER);
        while let Ok(Some(token)) = scanner.scan() {
            let range = scanner.token_start()..scanner.token_end();
            let source = &self.text.as_bytes()[range.clone()];
            if matches!(token, Token::String(_)) && source.iter().any(|it| *it < b' ') {
                return Some(range);
            }
        }
        None
    }

    /// Returns whether a string ends at the opening quote of another one, on a later line.
    fn is_unclosed_string(&self, token: &Range<usize>) -> bool {
        let line = self.text[token.clone()].rsplit_once('\n').map(|it| it.1.trim_end_matches('"'));
        line.is_some_and(|it| it.trim().is_empty()) && begins_with_string(&self.text[token.end - 1..])
    }

    /// The correction of a string with control characters: a quote that closes it on its line, if it ends at
    /// the opening quote of another string; else blanks in place of the characters.
    fn correct_string(&self, token: Range<usize>) -> Correction {
        let source = &self.text[token.clone()];
        let inner = source.get(1..source.len() - 1).unwrap_or_default();
        if !self.is_unclosed_string(&token) {
            let text = source.replace(|it: char| it < ' ', " ");
            return Correction { doubtful_until: token.end, range: token, text };
        }
        let line = inner.lines().next().unwrap_or_default();
        let is_key = self.opening_bracket(token.start) == Some('{')
            && self.text[..token.start].trim_end().ends_with(['{', ',']);
        let key_end = line.find(':').filter(|_| is_key);
        let mut end = key_end.unwrap_or_else(|| line.trim_end().trim_end_matches(',').len());
        // A closing bracket without an opening one does not belong to the string.
        while key_end.is_none() && line[..end].ends_with(['}', ']']) {
            let count = |signs: [char; 2]| line[..end].matches(signs).count();
            if count(['}', ']']) <= count(['{', '[']) {
                break;
            }
            end = line[..end - 1].trim_end().len();
        }
        let at = token.start + 1 + end;
        Correction { range: at..at, text: "\"".to_owned(), doubtful_until: token.start + 1 + line.len() }
    }

    /// The bracket around a position.
    fn opening_bracket(&self, at: usize) -> Option<char> {
        Brackets::scan(&self.text[..at], &SCANNER).open.last().map(|it| it.sign)
    }

    /// The correction of an error, if there is only one.
    fn correct(&self, error: &ParseError) -> Option<Correction> {
        let range = error.range();
        let start = range.start;
        let rest = self.text.get(start..)?;
        let replace = |range: Range<usize>, text: &str| {
            Some(Correction { doubtful_until: range.end, range, text: text.to_owned() })
        };
        if range.end > start
            && let Some(found) = self.correct_foreign_character(start, range.end)
        {
            return found;
        }
        let line = rest.lines().next().unwrap_or_default();
        let word_end = line.find(|it: char| !is_word(it)).unwrap_or(line.len());
        match error.kind() {
            _ if self.lacks_value(start) => replace(start..start, " null"),
            _ if self.has_extra_comma(start) => replace(start..start + 1, ""),
            Kind::CommentsNotAllowed => replace(start..range.end, ""),
            Kind::TrailingCommasNotAllowed if rest.starts_with(',') => replace(start..start + 1, ""),
            Kind::ExpectedComma => {
                let next = rest.trim_start();
                let is_entry = match self.opening_bracket(start) {
                    Some('{') => begins_with_key(next),
                    _ => next.starts_with(begins_value) && !begins_with_key(next),
                };
                if is_entry { replace(start..start, ",") } else { None }
            }
            Kind::ExpectedColonAfterObjectKey if rest.starts_with([',', '}']) => {
                replace(start..start, ": null")
            }
            Kind::ExpectedColonAfterObjectKey if rest.starts_with(begins_value) && !begins_with_key(rest) => {
                replace(start..start, ":")
            }
            Kind::ExpectedStringObjectProperty
                if line[word_end..].trim_start().starts_with(':') && word_end > 0 =>
            {
                replace(start..start + word_end, &format!("\"{}\"", &line[..word_end]))
            }
            Kind::SingleQuotedStringsNotAllowed => self.correct_quotes(start, '\''),
            Kind::UnexpectedWord | Kind::UnexpectedToken
                if line.starts_with(|it: char| is_word(it)) && !self.text[..start].ends_with('"') =>
            {
                let length = line.find([',', '}', ']']).unwrap_or(line.len());
                let is_plain = !line[..length].contains(['"', ':', '{', '[']);
                if is_plain { replace(start..start + length, "null") } else { None }
            }
            Kind::String(ParseStringErrorKind::UnterminatedStringLiteral) => None,
            Kind::String(_) => {
                let length = closing_quote(line)?;
                let mut text = String::new();
                let mut characters = line[..length].chars().peekable();
                while let Some(character) = characters.next() {
                    text.push(character);
                    if character == '\\' {
                        let next = characters.next()?;
                        let is_escape = "\"\\/bfnrt".contains(next);
                        text.push_str(if is_escape { "" } else { "\\" });
                        text.push(next);
                    }
                }
                replace(start..start + length, &text)
            }
            Kind::BareDecimalPointNumbersNotAllowed
            | Kind::ExpectedDigit
            | Kind::ExpectedDigitFollowingNegativeSign
            | Kind::ExpectedPlusMinusOrDigitInNumberLiteral
            | Kind::HexadecimalNumbersNotAllowed
            | Kind::NonFiniteNumbersNotAllowed
            | Kind::UnaryPlusNumbersNotAllowed => {
                let is_number = |it: char| is_word(it) || "+-.".contains(it);
                let from = self.text[..start].trim_end_matches(is_number).len();
                let length = self.text[from..].find(|it: char| !is_number(it))?;
                replace(from..from + length, "0")
            }
            _ => None,
        }
    }

    /// The correction of the first character that JSON does not have. The outer `None` is that there is none.
    #[expect(clippy::option_option, reason = "no such character, or one without a correction")]
    fn correct_foreign_character(&self, start: usize, end: usize) -> Option<Option<Correction>> {
        let replace = |range: Range<usize>, text: &str| {
            Some(Correction { doubtful_until: range.end, range, text: text.to_owned() })
        };
        for (offset, character) in self.text[start..].char_indices().take_while(|it| it.0 <= end - start) {
            let at = start + offset;
            let (rest, after) = (&self.text[at..], at + character.len_utf8());
            // The rest of the line is measured for a comment only: a word may have as many characters as the line.
            let line_length = || rest.lines().next().unwrap_or_default().len();
            return Some(match (look_alike(character), character) {
                (Some(LookAlike::Quote), _) if offset == 0 => self.correct_quotes(at, character),
                (Some(LookAlike::Quote), _) => None,
                (Some(LookAlike::Blank), _) => replace(at..after, " "),
                (Some(LookAlike::Sign(sign)), _) => replace(at..after, &sign.to_string()),
                (None, '#') => replace(at..at + line_length(), ""),
                (None, _) if describe_conflict_marker(self.text, at).is_some() => None,
                (None, '`') if !rest.starts_with("```") => self.correct_quotes(at, character),
                (None, '=') => replace(at..after, ":"),
                (None, ';') => {
                    let is_last = self.text[after..].trim_start().starts_with(['}', ']']);
                    replace(at..after, if is_last { "" } else { "," })
                }
                (None, '`' | '…') => None,
                (None, '.') if rest.starts_with("...") => None,
                (None, it) if is_word(it) => continue,
                (None, _) => return None,
            });
        }
        None
    }

    /// Straight quotes in place of a pair of others on one line.
    fn correct_quotes(&self, at: usize, quote: char) -> Option<Correction> {
        let line = self.text[at..].lines().next()?;
        let inner = &line[quote.len_utf8()..];
        let is_closing = |it: char| {
            it == quote || (quote != '\'' && quote != '`' && look_alike(it) == Some(LookAlike::Quote))
        };
        let (length, closing) = inner.char_indices().find(|it| is_closing(it.1))?;
        let inner = &inner[..length];
        if inner.contains(['"', '\\']) {
            return None;
        }
        let end = at + quote.len_utf8() + length + closing.len_utf8();
        Some(Correction { range: at..end, text: format!("\"{inner}\""), doubtful_until: end })
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || "-_$".contains(character)
}

/// Whether a value other than a word begins with this character.
fn begins_value(character: char) -> bool {
    matches!(character, '"' | '{' | '[' | '-' | '0'..='9')
}

/// The position of the quote that ends a text from within it.
fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(at, character)| {
        let is_end = character == '"' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        is_end.then_some(at)
    })
}

/// Returns whether a text begins with a string on one line, before punctuation or the end of the line.
fn begins_with_string(text: &str) -> bool {
    let line = text.lines().next().unwrap_or_default();
    let Some(end) = line.get(1..).and_then(closing_quote) else { return false };
    line[end + 2..].trim_start().is_empty() || line[end + 2..].trim_start().starts_with([':', ',', ']', '}'])
}

/// Returns whether a text begins with a key in quotes and a colon.
fn begins_with_key(text: &str) -> bool {
    let Some(inner) = text.strip_prefix('"') else { return false };
    closing_quote(inner).is_some_and(|it| inner[it + 1..].trim_start().starts_with(':'))
}
