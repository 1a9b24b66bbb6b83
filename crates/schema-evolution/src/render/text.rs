//! Renders a comparison as text for people.

use crate::change::{Change, Comparison, Use, Verdict};

/// Renders the changes, the most severe ones first: a line for each, with its other locations and
/// the document that proves a break below it. The
/// last line has the totals. Control characters are escaped.
pub fn render_text(comparison: &Comparison, usage: Use) -> String {
    let mut res = String::new();
    for change in comparison.by_severity(usage) {
        res += &line(change, usage);
    }
    let count = |verdict| comparison.count(usage, verdict);
    let (breaks, unknown, harmless) =
        (count(Verdict::Break), count(Verdict::Unknown), count(Verdict::Harmless));
    let plural = if breaks == 1 { "" } else { "s" };
    res + &format!("for a {usage}: {breaks} break{plural}, {unknown} unknown, {harmless} harmless\n")
}

fn line(change: &Change, usage: Use) -> String {
    let Change { location, description, direction, new_pointer, .. } = change;
    let effect = change.effect(usage);
    let text = format!("{}: {location}: {description} ({direction}; #{new_pointer})", effect.verdict);
    let mut res = printable(&text) + "\n";
    if let Some(others) = change.others() {
        res += &format!("    also at {}\n", printable(&others));
    }
    if let Some(witness) = &effect.witness {
        let text = witness.to_string();
        let end = text.char_indices().nth(400).map_or(text.len(), |it| it.0);
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
