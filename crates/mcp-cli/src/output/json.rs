//! JSON output.
//!
//! JSON of a server is indented as text and not parsed into a tree, so that its numbers and member order stay exact.

use std::mem;

use serde::Serialize;

use crate::output::sanitize;

/// Serializes a value as an indented document with a final line feed.
pub(crate) fn document(value: &impl Serialize) -> String {
    let mut res = serde_json::to_string_pretty(value)
        .expect("document keys are strings, and writing to memory cannot fail");
    res.push('\n');
    sanitize::json(&res)
}

/// Serializes a value as a document on one line with a final line feed.
pub(crate) fn line(value: &impl Serialize) -> String {
    let mut res =
        serde_json::to_string(value).expect("document keys are strings, and writing to memory cannot fail");
    res.push('\n');
    sanitize::json(&res)
}

/// Indents JSON text, one member or item per line. Accepts any text.
pub(crate) fn indented(json: &str) -> String {
    let mut res = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let (mut in_string, mut is_escaped) = (false, false);
    // Whether the previous character is an opening bracket. Empty brackets stay on one line.
    let mut is_after_opening = false;
    for it in json.chars() {
        if in_string {
            res.push(it);
            in_string = is_escaped || it != '"';
            is_escaped = !is_escaped && it == '\\';
            continue;
        }
        if it.is_ascii_whitespace() {
            continue;
        }
        let is_first = mem::take(&mut is_after_opening);
        match it {
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                if !is_first {
                    begin_line(&mut res, depth);
                }
            }
            _ if is_first => begin_line(&mut res, depth),
            _ => {}
        }
        res.push(it);
        match it {
            '{' | '[' => {
                depth += 1;
                is_after_opening = true;
            }
            ',' => begin_line(&mut res, depth),
            ':' => res.push(' '),
            '"' => in_string = true,
            _ => {}
        }
    }
    res
}

fn begin_line(text: &mut String, depth: usize) {
    text.push('\n');
    text.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str) {
        let value: serde_json::Value = serde_json::from_str(json).unwrap();
        let again: serde_json::Value = serde_json::from_str(&indented(json)).unwrap();
        assert_eq!(again, value);
        assert_eq!(indented(json), serde_json::to_string_pretty(&value).unwrap());
    }

    #[test]
    fn indentation_equals_serde_json() {
        check("7");
        check("{}");
        check("[ ]");
        check(r#"{"a":{},"b":[],"c":[[]]}"#);
        check(r#"{"a":[1,2,{"b":"x, {y}: [\"z\\"}],"c":null}"#);
    }

    #[test]
    fn numbers_and_member_order_are_kept() {
        assert_eq!(
            indented(r#"{"b":1.0000000000000000000001,"a":123456789012345678901234567890}"#),
            "{\n  \"b\": 1.0000000000000000000001,\n  \"a\": 123456789012345678901234567890\n}"
        );
    }
}
