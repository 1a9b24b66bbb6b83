//! A checked file and its outcome, which each rendering takes.

use crate::diagnostic::{Diagnostic, escaped};

/// Whether to print terminal colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "mcp-cli decides on each for all its output; whether a terminal has colours is decided before"
)]
pub enum Colour {
    /// Plain text.
    Never,
    /// With ANSI escapes.
    Always,
}

/// The result of checking one file.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CheckedFile<'a> {
    /// The path, as shown to the user.
    pub name: &'a str,
    /// The outcome.
    pub outcome: CheckOutcome<'a>,
}

impl<'a> CheckedFile<'a> {
    /// A file with the outcome of its check.
    pub fn new(name: &'a str, outcome: CheckOutcome<'a>) -> CheckedFile<'a> {
        CheckedFile { name, outcome }
    }
}

/// The outcome of checking a file.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum CheckOutcome<'a> {
    /// The file was read.
    Read {
        /// Its text.
        text: &'a str,
        /// Its diagnostics.
        diagnostics: &'a [Diagnostic],
    },
    /// The file could not be read.
    Unreadable {
        /// The reason, in one sentence.
        message: &'a str,
        /// How to fix it.
        help: Option<&'a str>,
    },
}

/// A text without terminal control characters.
pub(super) fn printable(text: &str) -> String {
    text.chars().flat_map(escaped).collect()
}
