//! What is wrong with a file, in a form that people, programs and tests can all read.
//!
//! A [`Problem`] is what the passes over a file report: a code, words, a place. A [`Diagnostic`] is the same once the
//! file's lines are known and the server it concerns is found. Neither ever holds a value of the file, save those the
//! contracts quote (an unknown command, a key, a name), escaped and cut short.

mod code;
mod explain;
mod lines;
pub(crate) mod value_places;

use std::ops::Range;

use mcp_model::{ErrorKind, Severity};
use serde::Serialize;

use crate::edit::fix::{Fix, FixIntent, SourceTree};

pub use code::Code;
pub(crate) use lines::{LineIndex, floor};

/// One mistake, warning or remark about a configuration file.
///
/// Serialised it is `{"severity", "code", "kind", "message", "pointer", "line", "column", "help"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Which mistake it is; never changes its meaning.
    pub code: Code,
    /// The word before the colon.
    pub kind: ErrorKind,
    /// What is wrong, in one sentence.
    pub message: String,
    /// JSON pointer to the value, or to the place where one is missing.
    pub pointer: String,
    /// The bytes of the file it is about; on character borders.
    #[serde(skip)]
    pub span: Range<usize>,
    /// The line the span begins in, from 1.
    pub line: usize,
    /// The character of that line, from 1.
    pub column: usize,
    /// Other places that belong to it, such as the first of two equal keys.
    #[serde(skip)]
    pub labels: Vec<Label>,
    /// What to do about it.
    pub help: Option<String>,
    /// The server it concerns, where it concerns one.
    #[serde(skip)]
    pub server: Option<String>,
    /// How the text can be put right, where that is known.
    #[serde(skip)]
    pub fix: Option<Fix>,
}

impl std::fmt::Display for Diagnostic {
    /// `<kind>: <message>`, as the contracts have it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.kind, self.message)
    }
}

/// A second place that a diagnostic speaks of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The bytes of the file.
    pub span: Range<usize>,
    /// What is there.
    pub text: String,
}

/// A mistake as the passes report it.
#[derive(Debug, Clone)]
pub(crate) struct RawDiagnostic {
    pub(crate) code: Code,
    pub(crate) severity: Severity,
    pub(crate) message: String,
    pub(crate) pointer: String,
    pub(crate) span: Range<usize>,
    pub(crate) labels: Vec<Label>,
    pub(crate) help: Option<String>,
    pub(crate) fix: Option<FixIntent>,
}

impl RawDiagnostic {
    /// An error.
    pub(crate) fn new(
        code: Code,
        message: impl Into<String>,
        pointer: impl Into<String>,
        span: Range<usize>,
    ) -> RawDiagnostic {
        RawDiagnostic {
            code,
            severity: Severity::Error,
            message: message.into(),
            pointer: pointer.into(),
            span,
            labels: Vec::new(),
            help: None,
            fix: None,
        }
    }

    /// The same, as bad as `severity`.
    pub(crate) fn severity(mut self, severity: Severity) -> RawDiagnostic {
        self.severity = severity;
        self
    }

    /// The same, as a warning.
    pub(crate) fn warning(self) -> RawDiagnostic {
        self.severity(Severity::Warning)
    }

    /// The same, with what to do about it.
    pub(crate) fn help(mut self, help: impl Into<String>) -> RawDiagnostic {
        self.help = Some(help.into());
        self
    }

    /// The same, with what is meant instead.
    pub(crate) fn fix(mut self, repair: impl Into<Option<FixIntent>>) -> RawDiagnostic {
        self.fix = repair.into();
        self
    }

    /// The same, with a second place.
    pub(crate) fn label(mut self, span: Range<usize>, text: impl Into<String>) -> RawDiagnostic {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// The problem as a diagnostic, its spans made to fit the text.
    pub(crate) fn locate(
        self,
        lines: &LineIndex<'_>,
        site: SourceTree<'_>,
        server: Option<String>,
    ) -> Diagnostic {
        let fix = site.fix(&self);
        let pointer = redact_pointer(&self.pointer).to_owned();
        let RawDiagnostic { code, severity, message, pointer: _, span, labels, help, fix: _ } = self;
        let span = lines.clamp(span);
        let (line, column) = lines.position(span.start);
        let labels =
            labels.into_iter().map(|it| Label { span: lines.clamp(it.span), text: it.text }).collect();
        Diagnostic {
            severity,
            code,
            kind: code.kind(),
            message,
            pointer,
            span,
            line,
            column,
            labels,
            help,
            server,
            fix,
        }
    }
}

/// Does a character end the name of a variable or header? Behind it stands a value that somebody wrote into the key.
pub(crate) fn ends_key_name(character: char) -> bool {
    matches!(character, '=' | ':') || character.is_whitespace()
}

/// A pointer as far as it may be said: up to the name of a variable or header that holds its value.
pub(crate) fn redact_pointer(pointer: &str) -> &str {
    let mut end = 0;
    let mut names = false;
    for key in pointer.split('/').skip(1) {
        if names && key.contains(ends_key_name) {
            return &pointer[..end];
        }
        end += "/".len() + key.len();
        names = holds_named_values(key);
    }
    pointer
}

/// Are the keys below this one names of variables or headers?
fn holds_named_values(key: &str) -> bool {
    ["env", "environment", "headers"].contains(&key)
}

/// The key below another one, as a message may quote it: without the value that it holds (`Authorization: Bearer …`).
pub(crate) fn quoted_key(above: &str, key: &str) -> String {
    let name = key.split(ends_key_name).next().unwrap_or_default();
    quoted(if holds_named_values(above) { name } else { key })
}

/// A piece of the file that a message may quote: escaped, and cut after 64 characters.
pub(crate) fn quoted(text: &str) -> String {
    const MAX_CHARS: usize = 64;
    let mut res: String = text.chars().take(MAX_CHARS).flat_map(escaped).collect();
    if text.chars().count() > MAX_CHARS {
        res.push('…');
    }
    res
}

/// A character as it may stand in a terminal: control and direction characters as escapes.
pub(crate) fn escaped(character: char) -> impl Iterator<Item = char> {
    let hidden = is_invisible(character);
    let (escape, plain) =
        if hidden { (Some(character.escape_default()), None) } else { (None, Some(character)) };
    escape.into_iter().flatten().chain(plain)
}

/// Does a character steer a terminal instead of being seen?
pub(crate) fn is_invisible(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_ends_before_a_value() {
        assert_eq!(redact_pointer("/servers/a b/env/KEY"), "/servers/a b/env/KEY");
        assert_eq!(redact_pointer("/servers/a/headers/A: SECRET/x"), "/servers/a/headers");
        assert_eq!(redact_pointer("/tools/1/env/KEY=SECRET"), "/tools/1/env");
        assert_eq!((redact_pointer(""), redact_pointer("/env")), ("", "/env"));
    }

    #[test]
    fn what_is_quoted_is_short_and_printable() {
        assert_eq!(quoted("bash"), "bash");
        assert_eq!(quoted("a\u{1b}[31mb\n"), "a\\u{1b}[31mb\\n");
        assert_eq!(quoted("\u{202e}x"), "\\u{202e}x");
        assert_eq!(quoted(&"x".repeat(70)), format!("{}…", "x".repeat(64)));
    }
}
