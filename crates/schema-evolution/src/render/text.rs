//! Renders a comparison as text for people.

use crate::change::{Change, Comparison, SchemaUser, Verdict};

/// The maximum length of a document that proves a break, in characters.
const MAX_WITNESS_CHARS: usize = 400;

/// Renders the changes, the most severe ones first: a line for each, with its other locations and the document that
/// proves a break below it. The last line has the totals. Control characters are escaped.
pub fn render_text(comparison: &Comparison, user: SchemaUser) -> String {
    let mut res = String::new();
    for change in comparison.by_severity(user) {
        res += &change_lines(change, user);
    }
    let count = |verdict| comparison.count(user, verdict);
    let (breaks, unknown, harmless) =
        (count(Verdict::Break), count(Verdict::Unknown), count(Verdict::Harmless));
    let plural = if breaks == 1 { "" } else { "s" };
    res + &format!("for a {user}: {breaks} break{plural}, {unknown} unknown, {harmless} harmless\n")
}

/// The lines of one change.
fn change_lines(change: &Change, user: SchemaUser) -> String {
    let Change { location, description, direction, new_pointer, .. } = change;
    let effect = change.effect(user);
    let text = format!("{}: {location}: {description} ({direction}; #{new_pointer})", effect.verdict);
    let mut res = printable(&text) + "\n";
    if let Some(others) = change.other_locations_text() {
        res += &format!("    also at {}\n", printable(&others));
    }
    if let Some(witness) = &effect.witness {
        let text = witness.to_string();
        let end = text.char_indices().nth(MAX_WITNESS_CHARS).map_or(text.len(), |it| it.0);
        let more = if end < text.len() { "…" } else { "" };
        res += &format!("    for example {}{more}\n", printable(&text[..end]));
    }
    res
}

/// Escapes control characters, which a key of a document may contain.
fn printable(text: &str) -> String {
    let one = |it: char| if it.is_control() { it.escape_default().to_string() } else { it.to_string() };
    text.chars().map(one).collect()
}
