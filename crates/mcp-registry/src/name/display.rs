//! Names in messages. Servers choose them, so they are truncated and control characters are escaped.

use crate::name::exposed_name::shorten;

/// The maximum length of a name in an id or a message, in bytes.
const MAX_NAME_BYTES: usize = 128;

/// Returns the escaped name in backquotes.
pub(crate) fn quote(name: &str) -> String {
    format!("`{}`", escape_name(name))
}

/// Escapes control characters. A long name is cut and ends with its hash, so two long names stay distinct.
pub fn escape_name(name: &str) -> String {
    let mut res = String::with_capacity(name.len());
    for character in name.chars() {
        if character.is_control() {
            res.extend(character.escape_default());
        } else {
            res.push(character);
        }
    }
    shorten(res, MAX_NAME_BYTES)
}

/// Truncates `text` to `limit` bytes and appends an ellipsis.
pub(crate) fn truncate(mut text: String, limit: usize) -> String {
    if text.len() <= limit {
        return text;
    }
    let mut end = limit;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text.push('…');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_truncated() {
        assert_eq!(quote("a b"), "`a b`");
        assert_eq!(quote("a\nb\u{1b}[0m"), r"`a\nb\u{1b}[0m`");
        assert_eq!(escape_name(&"x".repeat(1_000)).len(), MAX_NAME_BYTES);
        assert_ne!(
            escape_name(&format!("{}1", "x".repeat(200))),
            escape_name(&format!("{}2", "x".repeat(200)))
        );
        assert_eq!(truncate("éé".to_owned(), 3), "é…");
    }
}
