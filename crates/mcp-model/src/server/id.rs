//! Server ids.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// The id of a server: the key of a map entry, or the `name` of an item.
///
/// Invariant: 1 to 256 bytes without control characters, so that log lines, labels and problem ids can contain it
/// unescaped. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(Arc<str>);

/// The error for an invalid [`ServerId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidServerId {
    /// The text is empty.
    #[error("a server's name must not be empty")]
    Empty,
    /// The text is longer than 256 bytes.
    #[error("a server's name has at most 256 bytes, this one has {0}")]
    TooLong(usize),
    /// The text contains a control character.
    #[error("a server's name must not contain control characters")]
    ControlCharacter,
}

impl ServerId {
    /// The maximum length in bytes.
    pub const MAX_LEN: usize = 256;

    /// Parses an id.
    pub fn parse(text: &str) -> Result<ServerId, InvalidServerId> {
        if text.is_empty() {
            return Err(InvalidServerId::Empty);
        }
        if text.len() > Self::MAX_LEN {
            return Err(InvalidServerId::TooLong(text.len()));
        }
        if text.chars().any(char::is_control) {
            return Err(InvalidServerId::ControlCharacter);
        }
        Ok(ServerId(text.into()))
    }

    /// Returns the id.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Serialize for ServerId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: Result<(), InvalidServerId>) {
        assert_eq!(ServerId::parse(text).map(|it| assert_eq!(it.as_str(), text)), want);
    }

    #[test]
    fn ids_are_short_and_printable() {
        check("a", Ok(()));
        check("10", Ok(()));
        check("my server é", Ok(()));
        check("", Err(InvalidServerId::Empty));
        check("a\nb", Err(InvalidServerId::ControlCharacter));
        check("a\u{7f}", Err(InvalidServerId::ControlCharacter));
        check(&"x".repeat(256), Ok(()));
        check(&"x".repeat(257), Err(InvalidServerId::TooLong(257)));
    }
}
