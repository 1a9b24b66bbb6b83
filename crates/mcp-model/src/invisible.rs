//! Characters that are not seen in a text: they can hide what it contains, or reorder it.

/// Returns whether the character has no glyph of its own: format and bidirectional controls, joiners, fillers,
/// variation selectors and tags. Control characters are no part of it; see [`char::is_control`].
pub fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Returns whether the character joins or separates letters without a glyph. Persian, the scripts of India and emoji
/// need it, so it is kept in text that is shown.
pub fn is_joiner(character: char) -> bool {
    matches!(character, '\u{200c}' | '\u{200d}')
}
