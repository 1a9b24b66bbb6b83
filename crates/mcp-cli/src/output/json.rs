//! JSON for people, and documents for programs.
//!
//! What a server sent is indented as text, never read into a tree: its numbers and its order stay as they came.

use std::mem;

use serde::Serialize;

use crate::output::plain;

/// One document and a line end.
pub(crate) fn document(value: &impl Serialize) -> String {
    let mut res =
        serde_json::to_string_pretty(value).expect("our documents have text for keys, and write to memory");
    res.push('\n');
    plain::json(&res)
}

/// One document on one line, and a line end.
pub(crate) fn line(value: &impl Serialize) -> String {
    let mut res =
        serde_json::to_string(value).expect("our documents have text for keys, and write to memory");
    res.push('\n');
    plain::json(&res)
}

/// JSON text, one member or item a line. Whatever is no JSON comes out as some text, too.
pub(crate) fn indented(json: &str) -> String {
    let mut res = String::with_capacity(json.len() * 2);
    let mut depth = 0_usize;
    let (mut in_string, mut escaped) = (false, false);
    // An opening bracket waits for what follows, so that nothing stands between the brackets of what is empty.
    let mut opened = false;
    for it in json.chars() {
        if in_string {
            res.push(it);
            in_string = escaped || it != '"';
            escaped = !escaped && it == '\\';
            continue;
        }
        if it.is_ascii_whitespace() {
            continue;
        }
        let first = mem::take(&mut opened);
        match it {
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                if !first {
                    begin_line(&mut res, depth);
                }
            }
            _ if first => begin_line(&mut res, depth),
            _ => {}
        }
        res.push(it);
        match it {
            '{' | '[' => {
                depth += 1;
                opened = true;
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
    fn indented_json_looks_as_everybody_writes_it() {
        check("7");
        check("{}");
        check("[ ]");
        check(r#"{"a":{},"b":[],"c":[[]]}"#);
        check(r#"{"a":[1,2,{"b":"x, {y}: [\"z\\"}],"c":null}"#);
    }

    #[test]
    fn numbers_and_order_stay() {
        assert_eq!(
            indented(r#"{"b":1.0000000000000000000001,"a":123456789012345678901234567890}"#),
            "{\n  \"b\": 1.0000000000000000000001,\n  \"a\": 123456789012345678901234567890\n}"
        );
    }
}
