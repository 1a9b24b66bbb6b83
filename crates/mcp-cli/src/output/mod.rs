//! Output to the terminal: console, colours, tables, progress, JSON, and the log.
//!
//! Text from a server is untrusted. It passes through [`sanitize`] before it reaches a terminal.

pub(crate) mod console;
pub(crate) mod failure;
pub(crate) mod json;
pub(crate) mod log;
pub(crate) mod progress;
pub(crate) mod sanitize;
pub(crate) mod style;
pub(crate) mod table;

use std::error::Error;

/// The error and its sources on one line.
pub(crate) fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(&format!(": {error}"));
        source = error.source();
    }
    text
}

/// `1 tool` or `2 tools`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
