//! Writes a tree as JSON, in file order and with all digits of numbers.

use std::fmt::Write;

use mcp_host_model::RawJson;

use crate::syntax::parse::parse_any;
use crate::syntax::{Content, Node};

/// A file as JSON, for a validator of its [`schema`](crate::schema()). Returns `None` if the text is neither
/// YAML nor JSON, or has a value that JSON cannot express (infinity). Of duplicate keys, the first value
/// counts.
pub fn text_to_json(text: &str) -> Option<RawJson> {
    let json = to_json(&parse_any(text).root?)?;
    RawJson::parse(json.into()).ok()
}

/// The node as compact JSON. `None` if it has a number that JSON cannot express (infinity, NaN), or an unreadable
/// value.
pub fn to_json(node: &Node) -> Option<String> {
    let mut res = String::new();
    write_json(node, &mut res)?;
    Some(res)
}

fn write_json(node: &Node, out: &mut String) -> Option<()> {
    match node.resolved_content() {
        Content::Null => out.push_str("null"),
        Content::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Content::Integer(value) => write!(out, "{value}").ok()?,
        Content::Float(value) if value.is_finite() => out.push_str(&serde_json::to_string(value).ok()?),
        Content::Large(digits) if digits.bytes().all(|it| it.is_ascii_digit() || it == b'-') => {
            out.push_str(digits)
        }
        Content::Text(text) => out.push_str(&serde_json::to_string(text).ok()?),
        Content::Sequence(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(item, out)?;
            }
            out.push(']');
        }
        Content::Mapping(members) => {
            out.push('{');
            for (index, member) in members.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&serde_json::to_string(&*member.key.text).ok()?);
                out.push(':');
                write_json(&member.value, out)?;
            }
            out.push('}');
        }
        Content::Float(_) | Content::Large(_) | Content::Shared(_) | Content::Broken => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(yaml: &str, want: Option<&str>) {
        let root = parse_any(yaml).root.unwrap();
        assert_eq!(to_json(&root).as_deref(), want, "{yaml}");
    }

    #[test]
    fn order_and_digits_are_kept() {
        check("{b: 1, a: [1.5, ~, true, \"x\\n\"]}", Some(r#"{"b":1,"a":[1.5,null,true,"x\n"]}"#));
        check("n: 123456789012345678901234567890", Some(r#"{"n":123456789012345678901234567890}"#));
        check("x: &a {k: v}\ny: *a", Some(r#"{"x":{"k":"v"},"y":{"k":"v"}}"#));
        check("x: .inf", None);
        check("x: 1e400", None);
    }
}
