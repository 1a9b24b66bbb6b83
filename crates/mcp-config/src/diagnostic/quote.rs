//! Text of the file inside messages: shortened, escaped, and without values that may be secret.

/// Returns whether a character ends the name of a variable or header. A key such as `NAME=value` contains the value
/// after it.
pub(crate) fn ends_key_name(character: char) -> bool {
    matches!(character, '=' | ':') || character.is_whitespace()
}

/// A pointer up to the first key that contains the value of a variable or header.
pub(crate) fn redact_pointer(pointer: &str) -> &str {
    let mut end = 0;
    let mut is_below_names = false;
    for key in pointer.split('/').skip(1) {
        if is_below_names && key.contains(ends_key_name) {
            return &pointer[..end];
        }
        end += "/".len() + key.len();
        is_below_names = holds_named_values(key);
    }
    pointer
}

/// Returns whether the keys below this key are names of variables or headers.
fn holds_named_values(key: &str) -> bool {
    ["env", "environment", "headers"].contains(&key)
}

/// The key below `parent` for a message, without a value that it contains (`Authorization: Bearer …`).
pub(crate) fn quoted_key(parent: &str, key: &str) -> String {
    let name = key.split(ends_key_name).next().unwrap_or_default();
    quoted(if holds_named_values(parent) { name } else { key })
}

/// A piece of the file for a message: escaped, at most 64 characters.
pub(crate) fn quoted(text: &str) -> String {
    const MAX_CHARS: usize = 64;
    let mut res: String = text.chars().take(MAX_CHARS).flat_map(escaped).collect();
    if text.chars().count() > MAX_CHARS {
        res.push('…');
    }
    res
}

/// A character for a terminal: control and direction characters become escapes.
pub(crate) fn escaped(character: char) -> impl Iterator<Item = char> {
    let (escape, plain) = if is_invisible(character) {
        (Some(character.escape_default()), None)
    } else {
        (None, Some(character))
    };
    escape.into_iter().flatten().chain(plain)
}

/// Returns whether a character is a control character or has no glyph.
pub(crate) fn is_invisible(character: char) -> bool {
    character.is_control() || mcp_host_model::is_invisible(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redacted_pointer_ends_before_a_value() {
        assert_eq!(redact_pointer("/servers/a b/env/KEY"), "/servers/a b/env/KEY");
        assert_eq!(redact_pointer("/servers/a/headers/A: SECRET/x"), "/servers/a/headers");
        assert_eq!(redact_pointer("/tools/1/env/KEY=SECRET"), "/tools/1/env");
        assert_eq!((redact_pointer(""), redact_pointer("/env")), ("", "/env"));
    }

    #[test]
    fn quoted_text_is_short_and_printable() {
        assert_eq!(quoted("bash"), "bash");
        assert_eq!(quoted("a\u{1b}[31mb\n"), "a\\u{1b}[31mb\\n");
        assert_eq!(quoted("\u{202e}x"), "\\u{202e}x");
        assert_eq!(quoted(&"x".repeat(70)), format!("{}…", "x".repeat(64)));
    }
}
