//! Characters that look like those of JSON and YAML but are others: typographic quotes, unusual blanks, wide signs.
//!
//! Word processors, chat programs and web pages insert them.

/// What a character looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LookAlike {
    /// A straight quote.
    Quote,
    /// A space, or nothing.
    Blank,
    /// This sign.
    Sign(char),
}

/// The character that `character` looks like; `None` for a character that is what it looks like.
pub(super) fn look_alike(character: char) -> Option<LookAlike> {
    Some(match character {
        '\u{2018}'..='\u{201f}' | '«' | '»' | '′' | '″' | '＂' | '＇' | '「'..='』' => {
            LookAlike::Quote
        }
        '\u{85}'
        | '\u{a0}'
        | '\u{1680}'
        | '\u{2000}'..='\u{200d}'
        | '\u{2028}'
        | '\u{2029}'
        | '\u{202f}'
        | '\u{205f}'
        | '\u{2060}'
        | '\u{3000}'
        | '\u{feff}' => LookAlike::Blank,
        '：' => LookAlike::Sign(':'),
        '，' | '、' => LookAlike::Sign(','),
        '｛' => LookAlike::Sign('{'),
        '｝' => LookAlike::Sign('}'),
        '［' => LookAlike::Sign('['),
        '］' => LookAlike::Sign(']'),
        '‐'..='―' | '−' => LookAlike::Sign('-'),
        _ => return None,
    })
}

/// Returns whether a character looks like a space or like nothing, and is not a space.
pub(crate) fn is_blank(character: char) -> bool {
    look_alike(character) == Some(LookAlike::Blank)
}

/// What is wrong with a look-alike in a file, and how to fix it.
pub(super) fn describe(character: char) -> Option<(String, String)> {
    Some(match look_alike(character)? {
        LookAlike::Quote => {
            ("typographic quotes are not quotes".to_owned(), "write straight quotes: `\"`".to_owned())
        }
        LookAlike::Blank => (
            format!("unusual whitespace (U+{:04X}) where only a space is allowed", u32::from(character)),
            "replace it by a space; it is often copied from a web page or a text document".to_owned(),
        ),
        LookAlike::Sign(sign) => {
            (format!("`{character}` is not the sign `{sign}`"), format!("write `{sign}`"))
        }
    })
}

/// Returns whether a text is one word between typographic quotes.
pub(super) fn is_quoted_word(text: &str) -> bool {
    let is_quote = |it: Option<char>| it.is_some_and(|it| look_alike(it) == Some(LookAlike::Quote));
    let mut characters = text.chars();
    is_quote(characters.next()) && is_quote(characters.next_back()) && !text.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_are_described() {
        let message = |it: char| describe(it).map(|it| it.0);
        assert_eq!(message('“').as_deref(), Some("typographic quotes are not quotes"));
        assert_eq!(
            message('\u{a0}').as_deref(),
            Some("unusual whitespace (U+00A0) where only a space is allowed")
        );
        assert_eq!(message('：').as_deref(), Some("`：` is not the sign `:`"));
        for character in ['"', '\'', ' ', ':', 'a', 'é', '中', '😀'] {
            assert_eq!(message(character), None, "{character}");
        }
        assert!(is_quoted_word("“npx”") && !is_quoted_word("“a b”") && !is_quoted_word("”"));
    }
}
