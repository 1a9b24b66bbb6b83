//! Values to write, independent of the syntax.
//!
//! Printed YAML means the same in YAML 1.1 and 1.2: text that either version would read as another type is quoted.

use std::borrow::Cow;
use std::fmt::Write;

use mcp_host_model::RawJson;
use serde_json::value::RawValue;

use crate::diagnostic::is_invisible;

/// A value to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OutputValue {
    /// A number, a boolean or null, as in JSON.
    Scalar(String),
    Text(String),
    List(Vec<OutputValue>),
    Map(OutputMembers),
}

/// Names and values in the order in which they are written.
pub(crate) type OutputMembers = Vec<(String, OutputValue)>;

/// The maximum width of a list on one line, in characters.
const MAX_INLINE_CHARS: usize = 80;
/// The maximum depth of JSON to write.
const MAX_DEPTH: usize = 48;

impl OutputValue {
    pub(crate) fn text(text: impl Into<String>) -> OutputValue {
        OutputValue::Text(text.into())
    }

    pub(crate) fn scalar(word: impl ToString) -> OutputValue {
        OutputValue::Scalar(word.to_string())
    }

    /// The value of a JSON text, in order and with all digits; `None` if it is too deep.
    pub(crate) fn from_json(json: &RawJson) -> Option<OutputValue> {
        parse_json(json, MAX_DEPTH)
    }

    /// Returns whether this is a list or map without content.
    pub(crate) fn is_empty_collection(&self) -> bool {
        match self {
            OutputValue::List(items) => items.is_empty(),
            OutputValue::Map(members) => members.is_empty(),
            OutputValue::Scalar(_) | OutputValue::Text(_) => false,
        }
    }

    /// Whether this has no content below it.
    fn is_leaf(&self) -> bool {
        matches!(self, OutputValue::Scalar(_) | OutputValue::Text(_)) || self.is_empty_collection()
    }

    /// The value on one line, with brackets. With `QuoteStyle::Always` it is JSON.
    pub(crate) fn to_flow(&self, quotes: QuoteStyle) -> String {
        let mut res = String::new();
        self.write_flow(quotes, &mut res);
        res
    }

    fn write_flow(&self, quotes: QuoteStyle, out: &mut String) {
        match self {
            OutputValue::Scalar(word) => out.push_str(word),
            OutputValue::Text(text) => out.push_str(&quotes.write_text(text)),
            OutputValue::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index > 0 { ", " } else { "" });
                    item.write_flow(quotes, out);
                }
                out.push(']');
            }
            OutputValue::Map(members) => {
                out.push('{');
                for (index, (key, value)) in members.iter().enumerate() {
                    out.push_str(if index > 0 { ", " } else { "" });
                    out.push_str(&quotes.write_text(key));
                    out.push_str(": ");
                    value.write_flow(quotes, out);
                }
                out.push('}');
            }
        }
    }

    /// The value as block YAML: lines without line ends. The first line is not indented.
    pub(crate) fn to_block_lines(&self) -> Vec<String> {
        match self {
            OutputValue::Map(members) if !members.is_empty() => {
                members.iter().flat_map(|it| member_lines(&it.0, &it.1)).collect()
            }
            OutputValue::List(items) if !items.is_empty() => items.iter().flat_map(item_lines).collect(),
            OutputValue::Scalar(_) | OutputValue::Text(_) | OutputValue::List(_) | OutputValue::Map(_) => {
                vec![self.to_flow(QuoteStyle::AsNeeded)]
            }
        }
    }

    /// The value as JSON with an indentation of two blanks, as lines like those of [`OutputValue::to_block_lines`].
    pub(crate) fn to_json_lines(&self) -> Vec<String> {
        let (open, close, entries) = match self {
            OutputValue::Map(members) if !members.is_empty() => {
                let entry = |(key, value): &(String, OutputValue)| {
                    let mut lines = value.to_json_lines();
                    lines[0] = format!("{}: {}", QuoteStyle::Always.write_text(key), lines[0]);
                    lines
                };
                ("{", "}", members.iter().map(entry).collect::<Vec<_>>())
            }
            OutputValue::List(items) if !items.iter().all(OutputValue::is_leaf) => {
                ("[", "]", items.iter().map(OutputValue::to_json_lines).collect())
            }
            OutputValue::Scalar(_) | OutputValue::Text(_) | OutputValue::List(_) | OutputValue::Map(_) => {
                return vec![self.to_flow(QuoteStyle::Always)];
            }
        };
        let mut res = vec![open.to_owned()];
        let count = entries.len();
        for (index, mut entry) in entries.into_iter().enumerate() {
            if index + 1 < count
                && let Some(last) = entry.last_mut()
            {
                last.push(',');
            }
            res.extend(entry.into_iter().map(|it| format!("  {it}")));
        }
        res.push(close.to_owned());
        res
    }
}

/// A member of a block mapping, as lines.
pub(crate) fn member_lines(key: &str, value: &OutputValue) -> Vec<String> {
    let key = QuoteStyle::AsNeeded.write_text(key);
    let is_nested = match value {
        OutputValue::Map(members) => !members.is_empty(),
        OutputValue::List(items) => {
            let has_only_leaves = items.iter().all(OutputValue::is_leaf);
            !(has_only_leaves && value.to_flow(QuoteStyle::AsNeeded).chars().count() <= MAX_INLINE_CHARS)
        }
        OutputValue::Scalar(_) | OutputValue::Text(_) => false,
    };
    if !is_nested {
        return vec![format!("{key}: {}", value.to_flow(QuoteStyle::AsNeeded))];
    }
    let mut res = vec![format!("{key}:")];
    res.extend(value.to_block_lines().into_iter().map(|it| format!("  {it}")));
    res
}

/// An item of a block sequence, as lines.
pub(crate) fn item_lines(value: &OutputValue) -> Vec<String> {
    let add_dash = |(index, line): (usize, String)| format!("{}{line}", if index == 0 { "- " } else { "  " });
    value.to_block_lines().into_iter().enumerate().map(add_dash).collect()
}

/// Which strings are quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuoteStyle {
    /// All, as in JSON.
    Always,
    /// Those that would be another type without quotes.
    AsNeeded,
}

impl QuoteStyle {
    /// Writes a text, quoted if this style needs it.
    fn write_text(self, text: &str) -> String {
        match self {
            QuoteStyle::AsNeeded if is_plain_scalar(text) => text.to_owned(),
            QuoteStyle::AsNeeded | QuoteStyle::Always => quote(text),
        }
    }
}

/// Returns whether an unquoted text is the same string in block and flow context, in YAML 1.1 and 1.2.
fn is_plain_scalar(text: &str) -> bool {
    const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    let has_plain_start = text.starts_with(|it: char| it.is_ascii_alphabetic() || it == '/' || it == '_');
    let is_plain_char = |it: char| it.is_ascii_alphanumeric() || " _-./@=+~^()%;:".contains(it);
    has_plain_start
        && text.chars().all(is_plain_char)
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !WORDS.iter().any(|it| it.eq_ignore_ascii_case(text))
}

/// The text in double quotes, as in JSON; invisible characters become escapes.
fn quote(text: &str) -> String {
    let mut res = String::with_capacity(text.len() + 2);
    res.push('"');
    for character in text.chars() {
        match character {
            '"' => res.push_str("\\\""),
            '\\' => res.push_str("\\\\"),
            '\n' => res.push_str("\\n"),
            '\r' => res.push_str("\\r"),
            '\t' => res.push_str("\\t"),
            it if is_invisible(it) => {
                // All invisible characters are below U+10000.
                write!(res, "\\u{:04x}", u32::from(it)).expect("writing to a String never fails");
            }
            it => res.push(it),
        }
    }
    res.push('"');
    res
}

/// Converts JSON of at most `depth` levels.
fn parse_json(json: &RawJson, depth: usize) -> Option<OutputValue> {
    let below = depth.checked_sub(1)?;
    Some(match json.as_bytes().first()? {
        b'{' => {
            let members = json.members()?.into_iter();
            let member =
                |(key, value): (Cow<'_, str>, RawJson)| Some((key.into(), parse_json(&value, below)?));
            OutputValue::Map(members.map(member).collect::<Option<_>>()?)
        }
        b'[' => {
            let items: Vec<&RawValue> = json.read().ok()?;
            let items = items.into_iter().map(|it| parse_json(&RawJson::copy_of(it), below));
            OutputValue::List(items.collect::<Option<_>>()?)
        }
        b'"' => OutputValue::text(json.to_text()?),
        _ => OutputValue::Scalar(json.as_str().to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax;

    #[track_caller]
    fn check(json: &str, block: &str, pretty: &str) {
        let data = OutputValue::from_json(&RawJson::parse(json.to_owned().into()).unwrap()).unwrap();
        assert_eq!(data.to_block_lines().join("\n"), block);
        assert_eq!(data.to_json_lines().join("\n"), pretty);
        for text in [
            data.to_block_lines().join("\n"),
            data.to_flow(QuoteStyle::AsNeeded),
            data.to_flow(QuoteStyle::Always),
        ] {
            let root = syntax::parse_any(&text).root.unwrap();
            assert_eq!(syntax::to_json(&root).as_deref(), Some(json), "{text}");
        }
    }

    #[test]
    fn a_value_is_the_same_in_every_syntax() {
        check(r#"{"a":1,"b":"x y"}"#, "a: 1\nb: x y", "{\n  \"a\": 1,\n  \"b\": \"x y\"\n}");
        check(
            r#"{"z":[{"k":"v","l":[]},{"m":{}}],"a":["-y","npx"]}"#,
            "z:\n  - k: v\n    l: []\n  - m: {}\na: [\"-y\", npx]",
            "{\n  \"z\": [\n    {\n      \"k\": \"v\",\n      \"l\": []\n    },\n    {\n      \"m\": {}\n    }\n  \
             ],\n  \"a\": [\"-y\", \"npx\"]\n}",
        );
        check("[[1],null]", "- - 1\n- null", "[\n  [1],\n  null\n]");
        check(r#"{"t":"a\nb\"c\\"}"#, "t: \"a\\nb\\\"c\\\\\"", "{\n  \"t\": \"a\\nb\\\"c\\\\\"\n}");
    }

    #[track_caller]
    fn check_text(text: &str, want: &str) {
        assert_eq!(QuoteStyle::AsNeeded.write_text(text), want);
        let root = syntax::parse_any(&format!("[{want}]")).root.unwrap();
        assert_eq!(root.items().unwrap()[0].text(), Some(text));
    }

    #[test]
    fn strings_that_look_like_other_types_are_quoted() {
        for plain in ["npx", "https://a.example/x", "a b", "/usr/bin/x", "x@1.2"] {
            check_text(plain, plain);
        }
        for quoted in [
            "", "-y", "yes", "No", "1", "1:30", "~", "a, b", "a: b", "a:", "a #b", "${A}", "{", "é", "n",
            ".5", "<<",
        ] {
            check_text(quoted, &format!("\"{quoted}\""));
        }
        check_text("a\u{1b}\u{7f}", "\"a\\u001b\\u007f\"");
    }
}
