//! Describes JSON syntax errors: what is wrong, where, and what to write.
//!
//! jsonc-parser reports at which token it stopped. The cause is often a character that looks right, a habit from
//! another language, or a bracket that was opened long before. No message quotes a value of the file.

use std::ops::Range;

use jsonc_parser::errors::{ParseError, ParseErrorKind};
use jsonc_parser::tokens::Token;
use jsonc_parser::{ParseStringErrorKind, Scanner, ScannerOptions};

use crate::diagnostic::{Code, RawDiagnostic};
use crate::syntax::parsed_text::{SPLIT_FILE_HELP, describe_conflict_marker};
use crate::syntax::{Syntax, look_alike};

/// Signs of other languages, each with what is wrong and what to write.
const FOREIGN_SIGNS: &[(&str, &str, &str)] = &[
    ("```", "the fence of a Markdown code block is not JSON", "remove the lines that begin with ```"),
    ("`", "backquotes are not quotes", QUOTES_HELP),
    ("=", "`=` instead of `:`", "write `\"key\": value`"),
    (";", "`;` instead of `,`", "put a comma between the two"),
    ("...", "`...` is a placeholder for what was left out", "write what belongs here, or remove it"),
    ("…", "`…` is a placeholder for what was left out", "write what belongs here, or remove it"),
];

/// Words of other languages, each with the word of JSON.
const FOREIGN_WORDS: &[(&str, &str)] = &[
    ("True", "true"),
    ("TRUE", "true"),
    ("False", "false"),
    ("FALSE", "false"),
    ("None", "null"),
    ("Null", "null"),
    ("NULL", "null"),
    ("nil", "null"),
    ("undefined", "null"),
];

/// The message and the help for a key without a value.
const MISSING_VALUE: (&str, &str) = ("a key has no value", "write a value after the `:`");
const QUOTES_HELP: &str = "write names and texts in double quotes";

/// A text with a syntax error.
pub(super) struct BrokenJson<'a> {
    /// The text without its byte order mark.
    pub(super) text: &'a str,
    /// The length of the byte order mark in bytes; 0 without one.
    pub(super) bom_len: usize,
    pub(super) syntax: Syntax,
}

impl BrokenJson<'_> {
    /// The diagnostic for an error of jsonc-parser.
    pub(super) fn diagnose(&self, error: &ParseError, options: &ScannerOptions) -> RawDiagnostic {
        let range = error.range().start..error.range().end;
        if let Some(diagnostic) = self.find_foreign_character(&range) {
            return diagnostic;
        }
        let brackets = Brackets::scan(self.text, options);
        match error.kind() {
            ParseErrorKind::UnterminatedArray | ParseErrorKind::UnterminatedObject => {
                if let Some(diagnostic) = self.diagnose_unclosed(&brackets) {
                    return diagnostic;
                }
            }
            ParseErrorKind::UnexpectedCloseBrace
            | ParseErrorKind::UnexpectedCloseBracket
            | ParseErrorKind::UnexpectedTokenInObject => {
                if let Some(diagnostic) = self.diagnose_mismatched(&brackets) {
                    return diagnostic;
                }
            }
            ParseErrorKind::MultipleRootJsonValues if self.text[range.start..].starts_with(['}', ']']) => {
                let diagnostic = self.diagnostic_at(
                    range,
                    "there is a closing bracket too many",
                    "remove it, or the one before",
                );
                return match brackets.root_end {
                    Some(end) => {
                        diagnostic.label(self.span_in_file(end..end + 1), "the value of the file ends here")
                    }
                    None => diagnostic,
                };
            }
            _ => {}
        }
        let (message, help) = self.describe_error(error);
        self.diagnostic_at(range, message, help)
    }

    /// The bytes in the file, which may have a byte order mark before the text.
    fn span_in_file(&self, range: Range<usize>) -> Range<usize> {
        range.start + self.bom_len..range.end + self.bom_len
    }

    /// A diagnostic for a range of the text.
    fn diagnostic_at(&self, range: Range<usize>, message: &str, help: &str) -> RawDiagnostic {
        let span = self.span_in_file(range);
        RawDiagnostic::new(Code::Syntax, format!("invalid JSON: {message}"), "", span).help(help)
    }

    /// Finds a character that JSON does not have. Checks each character of the word at the error, and the one after
    /// it, because the parser stops at such a character or at the word before it.
    fn find_foreign_character(&self, range: &Range<usize>) -> Option<RawDiagnostic> {
        // The range is empty if something is missing there: no character is wrong.
        if range.is_empty() {
            return None;
        }
        let word = self.text[range.start..].char_indices().take_while(|it| it.0 <= range.len());
        for (offset, character) in word {
            let at = range.start + offset;
            let rest = &self.text[at..];
            let found = |message: &str, help: &str| {
                Some(self.diagnostic_at(at..at + character.len_utf8(), message, help))
            };
            if let Some((message, help)) = look_alike::describe(character) {
                return found(&message, &help);
            }
            if character == '#' {
                let help = match self.syntax {
                    Syntax::JsonWithComments => "begin the comment with `//`",
                    Syntax::Json | Syntax::Yaml | Syntax::Toml => "remove the comment: JSON has none",
                };
                return found("`#` does not begin a comment in JSON", help);
            }
            if let Some(message) = describe_conflict_marker(self.text, at) {
                return found(message, CONFLICT_HELP);
            }
            if let Some((_, message, help)) = FOREIGN_SIGNS.iter().find(|it| rest.starts_with(it.0)) {
                return found(message, help);
            }
            if !(character.is_alphanumeric() || "-_$".contains(character)) {
                break;
            }
        }
        None
    }

    /// The diagnostic for a bracket without its closing one.
    fn diagnose_unclosed(&self, brackets: &Brackets) -> Option<RawDiagnostic> {
        let open = brackets.suspect.or(brackets.open.last().copied())?;
        let message = match brackets.open.len() {
            1 => format!("the `{}` is not closed", open.sign),
            many => format!("the `{}` is not closed ({many} closing brackets are missing)", open.sign),
        };
        let end = self.text.trim_end().len();
        let help = format!("close it with `{}`", open.closing());
        let diagnostic = self.diagnostic_at(open.at..open.at + 1, &message, &help);
        Some(diagnostic.label(self.span_in_file(end..end), "the file ends here"))
    }

    /// The diagnostic for a bracket that is closed by the other kind.
    fn diagnose_mismatched(&self, brackets: &Brackets) -> Option<RawDiagnostic> {
        let (open, close) = brackets.mismatch?;
        let sign = &self.text[close..close + 1];
        let message = format!("`{sign}` does not close `{}`", open.sign);
        let help = format!("write `{}`, or close the inner bracket first", open.closing());
        let diagnostic = self.diagnostic_at(close..close + 1, &message, &help);
        let label = format!("the `{}` is opened here", open.sign);
        Some(diagnostic.label(self.span_in_file(open.at..open.at + 1), label))
    }

    /// The message and the help of an error that has no more specific diagnostic.
    fn describe_error(&self, error: &ParseError) -> (&'static str, &'static str) {
        use ParseErrorKind as Kind;
        use ParseStringErrorKind as Text;
        let range = error.range();
        match error.kind() {
            Kind::CommentsNotAllowed => ("comments are not allowed here", "remove the comment"),
            Kind::TrailingCommasNotAllowed => {
                ("a comma before a closing bracket is not allowed", "remove the comma")
            }
            Kind::ExpectedComma => ("a comma is missing", "put a comma between the two"),
            Kind::ExpectedColonAfterObjectKey => ("a `:` is missing after a key", "write `\"key\": value`"),
            Kind::ExpectedObjectValue => MISSING_VALUE,
            _ if self.lacks_value(range.start) => MISSING_VALUE,
            _ if self.has_extra_comma(range.start) => ("there is a comma too many", "remove the comma"),
            Kind::ExpectedStringObjectProperty => ("a key is not in quotes", QUOTES_HELP),
            Kind::SingleQuotedStringsNotAllowed => ("single quotes are not allowed", QUOTES_HELP),
            Kind::UnexpectedWord => self.describe_word(range.start),
            Kind::UnexpectedToken if self.is_word(range.start) => self.describe_word(range.start),
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
            Kind::NestingDepthExceeded => ("the value is nested too deeply", SPLIT_FILE_HELP),
        }
    }

    /// The message and the help for a word without quotes.
    fn describe_word(&self, at: usize) -> (&'static str, &'static str) {
        if self.text[..at].ends_with('"') {
            return (
                "a quote in the middle of a text ends it",
                "write a quote inside of a text as `\\\"`, or put a comma between the two",
            );
        }
        let rest = &self.text[at..];
        let length = rest.find(|it: char| !it.is_alphanumeric() && it != '_').unwrap_or(rest.len());
        match FOREIGN_WORDS.iter().find(|it| it.0 == &rest[..length]).map(|it| it.1) {
            Some("true") => ("this word belongs to another language", "write `true`, in lower case"),
            Some("false") => ("this word belongs to another language", "write `false`, in lower case"),
            Some(_) => ("this word belongs to another language", "write `null`, or remove the key"),
            None => ("unexpected word", QUOTES_HELP),
        }
    }

    /// Returns whether a comma or brace follows the `:` of a key.
    pub(super) fn lacks_value(&self, at: usize) -> bool {
        self.text[at..].starts_with([',', '}']) && self.text[..at].trim_end().ends_with(':')
    }

    /// Returns whether a comma has nothing before it.
    pub(super) fn has_extra_comma(&self, at: usize) -> bool {
        self.text[at..].starts_with(',') && self.text[..at].trim_end().ends_with([',', '[', '{'])
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

/// The help for an unresolved merge conflict.
pub(in crate::syntax) const CONFLICT_HELP: &str =
    "keep one of the two versions, and remove the lines with the markers";

/// The brackets of a text up to its first lexical error.
#[derive(Default)]
pub(super) struct Brackets {
    /// The brackets without a closing one, outermost first.
    pub(super) open: Vec<OpenBracket>,
    /// The first bracket whose closing bracket is indented less than it, so its own is probably missing.
    suspect: Option<OpenBracket>,
    /// The first bracket that is closed by the other kind, and the closing one.
    mismatch: Option<(OpenBracket, usize)>,
    /// The closing bracket of the outermost value.
    root_end: Option<usize>,
}

/// An opening bracket.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenBracket {
    at: usize,
    pub(super) sign: char,
    /// The indentation of its line.
    indent: usize,
}

impl OpenBracket {
    fn closing(self) -> char {
        if self.sign == '{' { '}' } else { ']' }
    }
}

impl Brackets {
    /// Scans a text up to its first lexical error or mismatched bracket.
    pub(super) fn scan(text: &str, options: &ScannerOptions) -> Brackets {
        let mut res = Brackets::default();
        let mut scanner = Scanner::new(text, options);
        // A line may be the whole text, so it is not measured again for each token.
        let (mut scanned, mut line_start, mut line_indent) = (0, 0, None);
        while let Ok(Some(token)) = scanner.scan() {
            let at = scanner.token_start();
            if let Some(end) = text[scanned..at].rfind('\n') {
                (line_start, line_indent) = (scanned + end + 1, None);
            }
            scanned = at;
            let indent = *line_indent.get_or_insert_with(|| {
                let line = &text[line_start..at];
                line.len() - line.trim_start().len()
            });
            match token {
                Token::OpenBrace | Token::OpenBracket => {
                    let sign = if token == Token::OpenBrace { '{' } else { '[' };
                    res.open.push(OpenBracket { at, sign, indent });
                }
                Token::CloseBrace | Token::CloseBracket => {
                    let Some(open) = res.open.pop() else { break };
                    if text[at..].starts_with(open.closing()) {
                        let is_first = line_start + indent == at;
                        if is_first && indent < open.indent && res.suspect.is_none() {
                            res.suspect = Some(open);
                        }
                    } else {
                        res.mismatch = Some((open, at));
                        break;
                    }
                    if res.open.is_empty() {
                        res.root_end.get_or_insert(at);
                    }
                }
                Token::Comma
                | Token::Colon
                | Token::String(_)
                | Token::Word(_)
                | Token::Boolean(_)
                | Token::Number(_)
                | Token::Null
                | Token::CommentLine(_)
                | Token::CommentBlock(_) => {}
            }
        }
        res
    }
}
