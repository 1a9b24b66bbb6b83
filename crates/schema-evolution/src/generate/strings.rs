//! Generates strings of a length, a pattern or a format.

use super::sizes::choose_size;
use crate::inclusion::conjunction::Conjunction;
use crate::keyword::{PatternMatch, match_pattern};
use crate::samples::{ChoiceSource, text_for_pattern};

/// Generates a string with the format, the pattern or the length that the schemas require.
pub(super) fn generate_string(schemas: &Conjunction<'_>, choices: &mut ChoiceSource) -> Option<String> {
    let text = |keyword: &str| schemas.nodes.iter().find_map(|it| it.get(keyword)?.as_str());
    if let Some(format) = text("format").and_then(text_for_format) {
        return Some(format.to_owned());
    }
    let length = choose_size(schemas, 2, choices);
    let Some(pattern) = text("pattern") else { return Some("x".repeat(length)) };
    let mut res = text_for_pattern(pattern, choices)?;
    // An unanchored end accepts any continuation.
    let missing = length.saturating_sub(res.chars().count());
    if missing > 0 {
        let last = res.chars().last().unwrap_or('x');
        let longer = res.clone() + &last.to_string().repeat(missing);
        if match_pattern(pattern, &longer) == PatternMatch::Yes {
            res = longer;
        }
    }
    Some(res)
}

/// A text of a known format.
fn text_for_format(format: &str) -> Option<&'static str> {
    Some(match format {
        "date" => "2024-02-29",
        "date-time" => "2024-02-29T12:00:00Z",
        "time" => "12:00:00Z",
        "duration" => "P1D",
        "email" | "idn-email" => "a@example.com",
        "hostname" | "idn-hostname" => "example.com",
        "ipv4" => "127.0.0.1",
        "ipv6" => "::1",
        "uri" | "iri" | "uri-reference" | "iri-reference" => "https://example.com/",
        "uri-template" => "/{id}",
        "uuid" => "123e4567-e89b-12d3-a456-426614174000",
        "json-pointer" => "/a",
        "relative-json-pointer" => "0",
        "regex" => "^a$",
        _ => return None,
    })
}
