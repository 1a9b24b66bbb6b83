//! Excerpts of texts from servers for messages.

/// The maximum length of a server's text in a message, in bytes.
pub(crate) const MAX_EXCERPT_BYTES: usize = 2000;

/// Returns the text, or its beginning if it is longer than [`MAX_EXCERPT_BYTES`].
pub(crate) fn excerpt(text: impl Into<String>) -> String {
    let mut text = text.into();
    if text.len() > MAX_EXCERPT_BYTES {
        text.truncate(floor_char_boundary(&text, MAX_EXCERPT_BYTES));
        text.push('…');
    }
    text
}

/// Returns the last character boundary at or before `at`.
pub(crate) fn floor_char_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|it| text.is_char_boundary(*it)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Repeats a character; expects the number of characters kept and the text after them.
    #[track_caller]
    fn check(character: &str, times: usize, want: (usize, &str)) {
        let got = excerpt(character.repeat(times));
        let rest = got.trim_start_matches(character);
        assert_eq!(((got.len() - rest.len()) / character.len(), rest), want);
    }

    #[test]
    fn long_text_is_cut_at_character_boundary() {
        check("a", 0, (0, ""));
        check("a", 2000, (2000, ""));
        check("a", 2001, (2000, "…"));
        check("é", 1000, (1000, ""));
        check("é", 1001, (1000, "…"));
        check("€", 667, (666, "…"));
    }
}
