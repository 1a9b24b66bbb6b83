//! Conversions of pydantic's lax mode, for the profile `holodeck-0.7` (HD-025 to HD-031).
//!
//! A string that spells a number or a boolean is converted, and a boolean is a number. `yes` and `off` are booleans, as
//! in YAML 1.1. Null is never converted.

use crate::syntax::Content;

const TRUE: [&str; 6] = ["1", "on", "t", "true", "y", "yes"];
const FALSE: [&str; 6] = ["0", "off", "f", "false", "n", "no"];

/// Reads a boolean.
pub(super) fn boolean(content: &Content) -> Option<bool> {
    let among = |words: &[&str], text: &str| words.iter().any(|it| it.eq_ignore_ascii_case(text));
    match content {
        Content::Bool(value) => Some(*value),
        Content::Integer(value @ (0 | 1)) => Some(*value == 1),
        Content::Float(value) if *value == 0.0 || *value == 1.0 => Some(*value == 1.0),
        Content::Text(text) if among(&TRUE, text) => Some(true),
        Content::Text(text) if among(&FALSE, text) => Some(false),
        _ => None,
    }
}

/// Reads a number that is not a YAML number.
pub(super) fn number(content: &Content) -> Option<f64> {
    match content {
        Content::Bool(value) => Some(f64::from(u8::from(*value))),
        Content::Text(text) => number_text(text)?.parse().ok(),
        _ => None,
    }
}

/// Reads an integer that is not a YAML integer. `60.0` is 60; `6e1` is not an integer.
pub(super) fn integer(content: &Content) -> Option<i64> {
    match content {
        Content::Bool(value) => Some(i64::from(*value)),
        Content::Text(text) => {
            let text = number_text(text)?;
            let digits = match text.split_once('.') {
                Some((whole, part)) if !part.is_empty() && part.bytes().all(|it| it == b'0') => whole,
                Some(_) => return None,
                None => &text,
            };
            digits.parse().ok()
        }
        _ => None,
    }
}

/// The text of a number without surrounding blanks and without single `_` between digits.
fn number_text(text: &str) -> Option<String> {
    let text = text.trim();
    let has_misplaced_underscore = text.starts_with('_') || text.ends_with('_') || text.contains("__");
    (!has_misplaced_underscore).then(|| text.replace('_', ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: (Option<bool>, Option<f64>, Option<i64>)) {
        let content = Content::Text(text.to_owned());
        assert_eq!((boolean(&content), number(&content), integer(&content)), want, "{text:?}");
    }

    #[test]
    fn hd_025_to_hd_031_strings_that_spell_a_value_are_converted() {
        check("on", (Some(true), None, None));
        check("NO", (Some(false), None, None));
        check("1", (Some(true), Some(1.0), Some(1)));
        check(" 30 ", (None, Some(30.0), Some(30)));
        check("60.0", (None, Some(60.0), Some(60)));
        check("60.5", (None, Some(60.5), None));
        check("60.", (None, Some(60.0), None));
        check("6e1", (None, Some(60.0), None));
        check("1_000", (None, Some(1000.0), Some(1000)));
        for text in ["", "maybe", " yes", "60s", "1__0", "_1", "1:30"] {
            check(text, (None, None, None));
        }
    }

    #[test]
    fn booleans_are_numbers_and_two_is_not_a_boolean() {
        assert_eq!((number(&Content::Bool(true)), integer(&Content::Bool(false))), (Some(1.0), Some(0)));
        assert_eq!((boolean(&Content::Integer(0)), boolean(&Content::Float(1.0))), (Some(false), Some(true)));
        assert_eq!((boolean(&Content::Integer(2)), boolean(&Content::Null)), (None, None));
        assert_eq!((number(&Content::Null), integer(&Content::Null)), (None, None));
    }
}
