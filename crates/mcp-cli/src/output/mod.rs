//! Output to the terminal: console, colours, tables, progress, questions, JSON, and the log.
//!
//! Text from a server is untrusted. It passes through [`sanitize`] before it reaches a terminal.

pub(crate) mod console;
pub(crate) mod failure;
pub(crate) mod json;
pub(crate) mod log;
pub(crate) mod otlp;
pub(crate) mod progress;
pub(crate) mod question;
pub(crate) mod sanitize;
pub(crate) mod style;
pub(crate) mod table;

use std::error::Error;

/// The maximum number of characters of the arguments of a call in a question about it.
const MAX_ARGUMENT_CHARS: usize = 2000;

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

/// A word, quoted for a shell if necessary.
pub(crate) fn quote(text: &str) -> String {
    let is_safe = |character: char| character.is_ascii_alphanumeric() || "@%_+=:,./-".contains(character);
    if !text.is_empty() && text.chars().all(is_safe) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// The beginning of the arguments of a call, for a question about it.
pub(crate) fn shown_arguments(arguments: &str) -> String {
    match arguments.char_indices().nth(MAX_ARGUMENT_CHARS) {
        Some((end, _)) => format!("{} …", &arguments[..end]),
        None => arguments.to_owned(),
    }
}
