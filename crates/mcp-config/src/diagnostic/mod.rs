//! Diagnostics: mistakes, warnings and notes about a configuration file.
//!
//! Readers report a [`RawDiagnostic`]; a [`Diagnostic`] also has the line, the column, the server and the fix. Neither
//! contains a value of the file, except those that messages of the rules quote (an unknown command, a key, a name; see
//! `docs/rules.md`). These are escaped and shortened.

mod code;
mod explain;
mod fix;
mod line_index;
mod quote;
#[cfg(feature = "files")]
pub(crate) mod redact;

use std::ops::Range;

use mcp_host_model::{ErrorKind, Severity};
use serde::Serialize;

pub use code::Code;
pub use fix::{Applicability, Fix, TextEdit};
pub(crate) use fix::{FixIntent, ScalarKind, apply_edits};
pub(crate) use line_index::{LineIndex, floor_char_boundary};
pub(crate) use quote::{ends_key_name, escaped, is_invisible, quoted, quoted_key, redact_pointer};

/// A mistake, a warning or a note about a configuration file. Displayed as `<kind>: <message>`.
///
/// Serialised as `{"severity", "code", "kind", "message", "pointer", "line", "column", "help"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, derive_more::Display)]
#[display("{kind}: {message}")]
#[non_exhaustive]
pub struct Diagnostic {
    /// Error, warning or note.
    pub severity: Severity,
    /// The code, which never changes its meaning.
    pub code: Code,
    /// The word before the colon of the printed message.
    pub kind: ErrorKind,
    /// What is wrong, in one sentence.
    pub message: String,
    /// JSON pointer to the value, or to the position of a missing value.
    pub pointer: String,
    /// The bytes of the file, on character boundaries.
    #[serde(skip)]
    pub span: Range<usize>,
    /// The line of the start of `span`, from 1.
    pub line: usize,
    /// The character within that line, from 1.
    pub column: usize,
    /// Related positions, such as the first of two duplicate keys.
    #[serde(skip)]
    pub labels: Vec<Label>,
    /// How to fix it.
    pub help: Option<String>,
    /// The server that the diagnostic concerns, if it concerns one.
    #[serde(skip)]
    pub server: Option<String>,
    /// Edits that fix it, if known.
    #[serde(skip)]
    pub fix: Option<Fix>,
}

/// A position related to a diagnostic.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Label {
    /// The bytes of the file.
    pub span: Range<usize>,
    /// What is at this position.
    pub text: String,
}

impl Label {
    /// A label at these bytes.
    pub fn new(span: Range<usize>, text: impl Into<String>) -> Label {
        Label { span, text: text.into() }
    }
}

/// A violated rule for a single value, without position. The message does not quote the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckError {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) help: &'static str,
}

impl CheckError {
    pub(crate) fn new(code: Code, message: impl Into<String>, help: &'static str) -> CheckError {
        CheckError { code, message: message.into(), help }
    }
}

/// A diagnostic as a reader reports it, before its line, column, server and fix are known.
#[derive(Debug, Clone)]
pub struct RawDiagnostic {
    pub(crate) code: Code,
    pub(crate) severity: Severity,
    pub(crate) message: String,
    pub(crate) pointer: String,
    /// Its bytes in the text.
    pub span: Range<usize>,
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

    /// Sets the severity.
    pub(crate) fn severity(mut self, severity: Severity) -> RawDiagnostic {
        self.severity = severity;
        self
    }

    /// Makes it a warning.
    pub(crate) fn warning(self) -> RawDiagnostic {
        self.severity(Severity::Warning)
    }

    /// Sets the help.
    pub(crate) fn help(mut self, help: impl Into<String>) -> RawDiagnostic {
        self.help = Some(help.into());
        self
    }

    /// Sets the intended fix.
    pub(crate) fn fix(mut self, fix: impl Into<Option<FixIntent>>) -> RawDiagnostic {
        self.fix = fix.into();
        self
    }

    /// Adds a related position.
    pub(crate) fn label(mut self, span: Range<usize>, text: impl Into<String>) -> RawDiagnostic {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Adds line, column, server and fix, and clamps the spans to the text.
    pub(crate) fn locate(
        self,
        lines: &LineIndex<'_>,
        server: Option<String>,
        fix: Option<Fix>,
    ) -> Diagnostic {
        let pointer = redact_pointer(&self.pointer).to_owned();
        let RawDiagnostic { code, severity, message, pointer: _, span, labels, help, fix: _ } = self;
        let span = lines.clamp(span);
        let (line, column) = lines.position(span.start);
        let labels = labels
            .into_iter()
            .map(|label| Label { span: lines.clamp(label.span), text: label.text })
            .collect();
        let kind = code.kind();
        Diagnostic { severity, code, kind, message, pointer, span, line, column, labels, help, server, fix }
    }
}
