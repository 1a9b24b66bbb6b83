//! Names in messages: a server chooses them, so they are cut and their control characters shown.

use crate::name::exposed_name::shorten;

/// The longest name inside an id or a message, in bytes.
const LIMIT: usize = 128;

/// `name` between backquotes.
pub(crate) fn quote(name: &str) -> String {
    format!("`{}`", escape_name(name))
}

/// `name` on one line; a long one is cut and ends with its hash, so two long names stay two.
pub(crate) fn escape_name(name: &str) -> String {
    let mut res = String::with_capacity(name.len());
    for character in name.chars() {
        if character.is_control() {
            res.extend(character.escape_default());
        } else {
            res.push(character);
        }
    }
    shorten(res, LIMIT)
}

/// `text` cut to `limit` bytes with an ellipsis.
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
    fn a_name_stays_on_its_line_and_is_short() {
        assert_eq!(quote("a b"), "`a b`");
        assert_eq!(quote("a\nb\u{1b}[0m"), r"`a\nb\u{1b}[0m`");
        assert_eq!(escape_name(&"x".repeat(1_000)).len(), LIMIT);
        assert_ne!(
            escape_name(&format!("{}1", "x".repeat(200))),
            escape_name(&format!("{}2", "x".repeat(200)))
        );
        assert_eq!(truncate("éé".to_owned(), 3), "é…");
    }
}
