//! Cuts texts that servers give, so that no message is as long as a server likes.

/// The longest text of a server's that a message repeats, in bytes.
pub(crate) const LONGEST_TEXT: usize = 2000;

/// The text, cut between characters where it is too long for a message.
pub(crate) fn excerpt(text: impl Into<String>) -> String {
    let mut res = text.into();
    if res.len() > LONGEST_TEXT {
        res.truncate(boundary(&res, LONGEST_TEXT));
        res.push('…');
    }
    res
}

/// The last place at or before `at` where `text` may be cut.
pub(crate) fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|it| text.is_char_boundary(*it)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A character so many times, and what becomes of them: how many are left, and what stands behind them.
    #[track_caller]
    fn check(character: &str, times: usize, want: (usize, &str)) {
        let got = excerpt(character.repeat(times));
        let rest = got.trim_start_matches(character);
        assert_eq!(((got.len() - rest.len()) / character.len(), rest), want);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        check("a", 0, (0, ""));
        check("a", 2000, (2000, ""));
        check("a", 2001, (2000, "…"));
        check("é", 1000, (1000, ""));
        check("é", 1001, (1000, "…"));
        check("€", 667, (666, "…"));
    }
}
