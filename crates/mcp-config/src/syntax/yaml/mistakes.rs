//! Describes YAML syntax errors, and masks their lines so that further ones can be found.
//!
//! The parser reports where it stopped. The cause is often on the line before. No message quotes a value of the file.

use std::ops::Range;

use granit_parser::{ErrorKind, ScanError};

use crate::diagnostic::{Code, RawDiagnostic, floor_char_boundary, quoted};
use crate::syntax::jsonc::mistakes::CONFLICT_HELP;
use crate::syntax::layout::Layout;
use crate::syntax::parsed_text::describe_conflict_marker;
use crate::syntax::{UnspacedKey, look_alike, unspaced_key};

/// A syntax error and how much is known about it.
pub(super) struct Mistake {
    pub(super) diagnostic: RawDiagnostic,
    pub(super) cause: Cause,
}

/// The cause of a syntax error, which decides how reading continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// The line of the diagnostic is the cause.
    Line,
    /// A line that begins with a tab.
    Tab,
    /// Something is not closed, or a merge conflict: the rest of the file cannot be interpreted.
    Unclosed,
    /// The cause may be on another line.
    Unknown,
}

/// Describes an error of the parser in `text`. The parser did not read the first `skipped` bytes.
pub(super) fn diagnose(text: &str, skipped: usize, error: &ScanError) -> Mistake {
    let at = error.marker().byte_offset().map_or(text.len(), |it| it + skipped);
    let at = floor_char_boundary(text, at.min(text.len()));
    let layout = Layout::new(text);
    let line = layout.line_start(at);
    let previous = std::iter::successors(layout.previous_line(line), |it| layout.previous_line(*it))
        .find(|it| !layout.is_blank(*it));
    // The parser reports a tab after a text on the line of the text.
    let next = Some(layout.next_line(at)).filter(|_| *error.kind() == ErrorKind::TabInPlainScalar);
    for start in [next, Some(line), previous].into_iter().flatten() {
        if let Some(found) = find_line_mistake(text, start) {
            return found;
        }
        // A key without a space makes its line a text, which continues on the next line.
        if is_continuation_error(error.kind())
            && let Some(found) = find_missing_space(text, start)
        {
            return found;
        }
    }
    if is_bracket_error(error.kind())
        && let Some(open) = open_bracket(text, at).filter(|it| layout.line_start(*it) < line)
    {
        let message = format!("the `{}` is not closed", &text[open..open + 1]);
        let diagnostic = syntax_error(open..open + 1, &message, "close the bracket");
        let diagnostic = diagnostic.label(at..at, "the bracket is still open here");
        return Mistake { diagnostic, cause: Cause::Unclosed };
    }
    let (cause, message, help) = describe_error(error);
    let at = match error.kind() {
        // The parser stops after the text.
        ErrorKind::UnclosedQuotedScalar | ErrorKind::InvalidQuotedScalarIndent => {
            opening_quote(text, at).unwrap_or(at)
        }
        _ => at,
    };
    let end = text[at..].chars().next().map_or(at, |it| at + it.len_utf8());
    Mistake { diagnostic: syntax_error(at..end, &message, help), cause }
}

/// Returns whether an error can arise only between brackets.
fn is_bracket_error(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::InvalidColonPlacement
            | ErrorKind::InvalidFlowScalarIndent
            | ErrorKind::ExpectedFlowMappingSeparator
            | ErrorKind::ExpectedFlowSequenceSeparator
            | ErrorKind::BlockEntryInFlowCollection
            | ErrorKind::UnexpectedEofFlowMapping
            | ErrorKind::UnexpectedEofFlowSequence
            | ErrorKind::UnexpectedEofImplicitFlowMapping
    )
}

/// The innermost bracket that is open at `at`. Brackets in quotes count too, so the result is a guess.
fn open_bracket(text: &str, at: usize) -> Option<usize> {
    let mut closed = 0_usize;
    for (offset, sign) in text[..at].char_indices().rev() {
        match sign {
            ']' | '}' => closed += 1,
            '[' | '{' if closed == 0 => return Some(offset),
            '[' | '{' => closed -= 1,
            _ => {}
        }
    }
    None
}

/// The last quote at or before `at` that begins a value and is not closed on its line.
fn opening_quote(text: &str, at: usize) -> Option<usize> {
    const MAX_LINES: usize = 1000;
    let layout = Layout::new(text);
    let lines = std::iter::successors(Some(layout.line_start(at)), |it| layout.previous_line(*it));
    lines.take(MAX_LINES).find_map(|start| {
        let line = layout.line(start);
        let opens = |(offset, quote): &(usize, char)| {
            let before = &line[..*offset];
            let begins = before.is_empty() || before.ends_with([' ', '[', '{', ',']);
            matches!(quote, '"' | '\'') && begins && !line[offset + 1..].contains(*quote)
        };
        line.char_indices().find(opens).map(|it| start + it.0)
    })
}

fn syntax_error(span: Range<usize>, message: &str, help: impl Into<String>) -> RawDiagnostic {
    RawDiagnostic::new(Code::Syntax, format!("invalid YAML: {message}"), "", span).help(help)
}

/// Finds a mistake that a line has by itself: a conflict marker, a tab, or an unusual blank.
fn find_line_mistake(text: &str, start: usize) -> Option<Mistake> {
    let line = Layout::new(text).line(start);
    if let Some(message) = describe_conflict_marker(text, start) {
        let diagnostic = syntax_error(start..start + line.len(), message, CONFLICT_HELP);
        return Some(Mistake { diagnostic, cause: Cause::Unclosed });
    }
    let indent = line.len() - line.trim_start().len();
    if let Some((offset, blank)) = line[..indent].char_indices().find(|it| it.1 != ' ') {
        let span = start + offset..start + offset + blank.len_utf8();
        if blank == '\t' {
            let mistake = syntax_error(span, "a tab where only spaces are allowed", "indent with spaces");
            return Some(Mistake { diagnostic: mistake, cause: Cause::Tab });
        }
        return Some(Mistake { diagnostic: unusual_blank_diagnostic(span, blank), cause: Cause::Line });
    }
    None
}

/// Returns whether an error can arise from a line that the parser read as a text.
fn is_continuation_error(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::MappingValueNotAllowed
            | ErrorKind::SimpleKeyExpected
            | ErrorKind::InvalidSimpleKey
            | ErrorKind::ExpectedBlockMappingKey
    )
}

/// Finds a key without a space after its `:` in a line.
fn find_missing_space(text: &str, start: usize) -> Option<Mistake> {
    let line = Layout::new(text).line(start);
    let UnspacedKey { key, blank } = unspaced_key(line)?;
    let at = start + line.find(key)? + key.len();
    if let Some(blank) = blank {
        let span = at + 1..at + 1 + blank.len_utf8();
        return Some(Mistake { diagnostic: unusual_blank_diagnostic(span, blank), cause: Cause::Line });
    }
    let help = format!("write `{}: …`, with a space", quoted(key));
    let diagnostic = syntax_error(at..at + 1, "a space is missing after `:`", help);
    Some(Mistake { diagnostic, cause: Cause::Line })
}

/// The diagnostic for an unusual blank where YAML needs a space.
pub(super) fn unusual_blank_diagnostic(span: Range<usize>, blank: char) -> RawDiagnostic {
    let (message, help) = look_alike::describe(blank)
        .filter(|_| look_alike::is_blank(blank))
        .unwrap_or_else(|| ("unusual whitespace".to_owned(), "indent with spaces".to_owned()));
    syntax_error(span, &message, help)
}

/// The cause, message and help of an error of the parser.
fn describe_error(error: &ScanError) -> (Cause, String, &'static str) {
    let text = |cause, message: &str, help| (cause, message.to_owned(), help);
    match error.kind() {
        ErrorKind::TabNotAllowed | ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation => {
            text(Cause::Line, "a tab where only spaces are allowed", "indent with spaces")
        }
        ErrorKind::UnclosedQuotedScalar | ErrorKind::InvalidQuotedScalarIndent => {
            text(Cause::Unclosed, "a quote is not closed", "close the quote")
        }
        ErrorKind::UnclosedFlowCollection { open } => {
            (Cause::Unclosed, format!("the `{open}` is not closed"), "close the bracket")
        }
        ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofImplicitFlowMapping => {
            text(Cause::Unclosed, "a `[` or `{` is not closed", "close the bracket")
        }
        ErrorKind::MismatchedFlowCollectionEnd { open, close } => (
            Cause::Unclosed,
            format!("`{close}` does not close `{open}`"),
            "write the closing bracket of the same kind, or close the inner bracket first",
        ),
        ErrorKind::MisplacedFlowCollectionEnd => text(
            Cause::Line,
            "a closing bracket without an opening one",
            "remove it, or put the text into quotes",
        ),
        ErrorKind::ExpectedFlowMappingSeparator | ErrorKind::ExpectedFlowSequenceSeparator => text(
            Cause::Unclosed,
            "a comma or a closing bracket is missing",
            "separate the items by commas, and put a text with brackets or quotes into quotes",
        ),
        ErrorKind::UnexpectedCharacter { .. } => {
            text(Cause::Line, "a value cannot start with this character", "put the value into quotes")
        }
        ErrorKind::MissingAnchorOrAliasName => {
            text(Cause::Line, "`*` and `&` begin an alias or an anchor", "put the value into quotes")
        }
        ErrorKind::MappingValueNotAllowed => text(
            Cause::Line,
            "unexpected `:`",
            "put a value that contains `: ` into quotes, and check the indentation",
        ),
        ErrorKind::InvalidTrailingDoubleQuotedScalar | ErrorKind::InvalidTrailingSingleQuotedScalar => text(
            Cause::Line,
            "text after a closing quote",
            "remove it, or put the whole value into quotes; inside of double quotes write `\\\"`",
        ),
        ErrorKind::UnknownQuotedScalarEscape | ErrorKind::InvalidQuotedScalarHexEscape => text(
            Cause::Line,
            "invalid escape sequence",
            "use single quotes, in which a backslash is a backslash, or write it twice",
        ),
        ErrorKind::CommentNotSeparated => {
            text(Cause::Line, "a space is missing before `#`", "put a space before the comment")
        }
        ErrorKind::SimpleKeyExpected => text(
            Cause::Unknown,
            "a line is neither `key: value` nor a list item",
            "write a `:` and a space after the key; a list item begins with `- `",
        ),
        ErrorKind::ExpectedBlockMappingKey => text(
            Cause::Unknown,
            "this line does not belong to the mapping above it",
            "indent all keys of a mapping by the same number of spaces",
        ),
        ErrorKind::ExpectedBlockSequenceEntry => text(
            Cause::Unknown,
            "this line is not a list item, but the lines above it are a list",
            "begin the line with `- `, or indent it as the key that it belongs to",
        ),
        ErrorKind::InvalidIndentation => text(
            Cause::Unknown,
            "the indentation fits no line above",
            "indent all keys of a mapping by the same number of spaces",
        ),
        ErrorKind::BlockSequenceEntryNotAllowed => text(
            Cause::Line,
            "a list cannot begin here",
            "begin the list on the next line, or write it in brackets: `[a, b]`",
        ),
        // The parser's messages describe tokens and never quote the text.
        _ => (
            Cause::Unknown,
            error.info(),
            "check this line and the one before: indentation, quotes, brackets",
        ),
    }
}

/// Replaces the lines that a mistake makes unreadable by blanks, so that the parser can continue after them. Returns
/// `None` if it cannot.
pub(super) fn mask_mistake(text: &str, mistake: &Mistake) -> Option<String> {
    let layout = Layout::new(text);
    let indent = |start: usize| {
        let line = layout.line(start);
        line.len() - line.trim_start_matches([' ', '-']).len()
    };
    let line = layout.line_start(mistake.diagnostic.span.start);
    let mut masked = Vec::new();
    match mistake.cause {
        Cause::Unclosed | Cause::Unknown => return None,
        Cause::Tab => masked.push(line),
        Cause::Line => {
            masked.push(line);
            let own = indent(line);
            let next = std::iter::successors(Some(layout.next_line(line)), |it| Some(layout.next_line(*it)));
            let below = next.take_while(|it| *it < text.len() && (layout.is_blank(*it) || indent(*it) > own));
            masked.extend(below);
        }
    }
    let mut bytes = text.as_bytes().to_vec();
    for start in masked {
        let end = start + layout.line(start).len();
        bytes[start..end].fill(b' ');
    }
    String::from_utf8(bytes).ok()
}
