//! An error in the arguments of a call.

use crate::output::failure::Failure;
use crate::output::sanitize;
use crate::runtime::exit::Exit;

/// An error in the arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArgumentError {
    /// The message; may have several lines.
    pub(crate) message: String,
    pub(crate) help: &'static str,
}

impl From<ArgumentError> for Failure {
    fn from(error: ArgumentError) -> Failure {
        let ArgumentError { message, help } = error;
        Failure::Error { exit: Exit::Usage, message: sanitize::block(&message), help: Some(help.to_owned()) }
    }
}

/// The beginning of a word, without control characters, for a message.
pub(super) fn excerpt(word: &str) -> String {
    const MAX_CHARS: usize = 60;
    let mut text: String = word.chars().filter(|it| !it.is_control()).take(MAX_CHARS).collect();
    if word.chars().nth(MAX_CHARS).is_some() {
        text.push('…');
    }
    text
}
