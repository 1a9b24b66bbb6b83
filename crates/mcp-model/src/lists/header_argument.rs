//! Arguments of a tool that its calls repeat in HTTP headers (`x-mcp-header`, 2026-07-28).
//!
//! The keyword `x-mcp-header` in a property's schema is called a mark here. A property at any depth may have one, if
//! only `properties` keywords lead to it. One invalid mark makes the whole definition invalid: a client does not offer
//! such a tool, so no server can expect its headers.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::json::raw::RawJson;

const KEYWORD: &str = "x-mcp-header";

/// The start of the name of each header that repeats an argument.
const HEADER_PREFIX: &str = "Mcp-Param-";

/// Maximum number of headers of one tool.
const MAX_HEADERS: usize = 64;

/// An argument that a call repeats in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderArgument {
    header: Box<str>,
    /// The property names that lead to the argument.
    path: Vec<Box<str>>,
}

/// The error for a tool with an invalid mark.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidHeaderMark {
    /// The schema cannot be parsed.
    #[error("its `x-mcp-header` marks cannot be read")]
    Unreadable,
    /// Another keyword than `properties` leads to the mark.
    #[error("`x-mcp-header` is not reachable through `properties`")]
    Unreachable,
    /// The mark of this property is not a string.
    #[error("`x-mcp-header` of `{0}` is not a string")]
    NotText(String),
    /// The mark of this property cannot be a part of a header name.
    #[error("`x-mcp-header` of `{0}` is not a header name")]
    NotName(String),
    /// This property has a type that cannot be a header.
    #[error("`x-mcp-header` of `{0}` needs the type string, integer or boolean")]
    WrongType(String),
    /// Another property has the mark of this one.
    #[error("`x-mcp-header` of `{0}` is given twice")]
    Repeated(String),
    /// There are too many marks.
    #[error("it has more than {} `x-mcp-header` marks", MAX_HEADERS)]
    TooMany,
}

impl HeaderArgument {
    /// Returns the marked arguments in the input schema of a tool. Most tools have none.
    pub fn all_in(schema: &RawJson) -> Result<Vec<HeaderArgument>, InvalidHeaderMark> {
        // Fast path: most schemas do not contain the keyword.
        if memchr::memmem::find(schema.as_bytes(), KEYWORD.as_bytes()).is_none() {
            return Ok(Vec::new());
        }
        let schema: Map<String, Value> = schema.read().map_err(|_| InvalidHeaderMark::Unreadable)?;
        let mut collector = MarkCollector::default();
        collector.collect_object(&schema, Some(&[]))?;
        Ok(collector.arguments)
    }

    /// Returns the name of the header: `Mcp-Param-` and the mark. It is an HTTP token.
    pub fn header(&self) -> &str {
        &self.header
    }

    /// Returns the mark.
    pub fn mark(&self) -> &str {
        &self.header[HEADER_PREFIX.len()..]
    }

    /// Returns the text that the header repeats, not encoded. `None` for a missing argument, `null`, an array or an
    /// object.
    pub fn text(&self, arguments: &Value) -> Option<String> {
        match self.path.iter().try_fold(arguments, |value, name| value.get(&**name))? {
            Value::String(text) => Some(text.clone()),
            Value::Bool(flag) => Some(flag.to_string()),
            // A float without a fraction is written as an integer. Below 2^53, about 9e15, the conversion is exact.
            Value::Number(number) => match number.as_f64() {
                Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 9e15 => {
                    Some((float as i64).to_string())
                }
                _ => Some(number.to_string()),
            },
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }
}

/// Collects the marked arguments of one schema.
#[derive(Default)]
struct MarkCollector {
    arguments: Vec<HeaderArgument>,
    /// The marks in lower case, to find repeated ones.
    marks: HashSet<String>,
}

impl MarkCollector {
    /// Walks a schema. `path` leads to it through `properties` only; `None` if another keyword is on the way.
    fn collect_object(
        &mut self,
        schema: &Map<String, Value>,
        path: Option<&[Box<str>]>,
    ) -> Result<(), InvalidHeaderMark> {
        for (key, value) in schema {
            match (key.as_str(), value) {
                (KEYWORD, mark) => self.collect_mark(mark, schema, path)?,
                ("properties", Value::Object(properties)) => {
                    for (name, schema) in properties {
                        let property_path = path.map(|path| [path, &[name.as_str().into()]].concat());
                        self.collect_value(schema, property_path.as_deref())?;
                    }
                }
                (
                    "$defs" | "definitions" | "dependentSchemas" | "patternProperties",
                    Value::Object(schemas),
                ) => {
                    schemas.values().try_for_each(|schema| self.collect_value(schema, None))?;
                }
                // These contain values, not schemas.
                ("default" | "const" | "enum" | "examples", _) => {}
                (_, value) => self.collect_value(value, None)?,
            }
        }
        Ok(())
    }

    /// Walks a value that may be a schema or contain schemas.
    fn collect_value(&mut self, value: &Value, path: Option<&[Box<str>]>) -> Result<(), InvalidHeaderMark> {
        match value {
            Value::Object(schema) => self.collect_object(schema, path),
            Value::Array(items) => items.iter().try_for_each(|item| self.collect_value(item, None)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    /// Checks and adds the mark of `schema`.
    fn collect_mark(
        &mut self,
        mark: &Value,
        schema: &Map<String, Value>,
        path: Option<&[Box<str>]>,
    ) -> Result<(), InvalidHeaderMark> {
        let path = path.filter(|path| !path.is_empty()).ok_or(InvalidHeaderMark::Unreachable)?;
        let label = || path.join("/");
        let mark = mark.as_str().ok_or_else(|| InvalidHeaderMark::NotText(label()))?;
        if mark.is_empty() || !mark.bytes().all(is_token_char) {
            return Err(InvalidHeaderMark::NotName(label()));
        }
        if !matches!(schema.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
            return Err(InvalidHeaderMark::WrongType(label()));
        }
        if !self.marks.insert(mark.to_ascii_lowercase()) {
            return Err(InvalidHeaderMark::Repeated(label()));
        }
        if self.arguments.len() == MAX_HEADERS {
            return Err(InvalidHeaderMark::TooMany);
        }
        let header = format!("{HEADER_PREFIX}{mark}").into();
        self.arguments.push(HeaderArgument { header, path: path.to_vec() });
        Ok(())
    }
}

/// Whether an HTTP token may contain this character (RFC 9110).
fn is_token_char(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the headers of a call with these arguments, or the reason why the tool is invalid.
    #[track_caller]
    fn check_schema(schema: &str, arguments: &str, want: &str) {
        let parsed = RawJson::parse(schema.to_owned().into()).unwrap();
        let got = match HeaderArgument::all_in(&parsed) {
            Err(reason) => reason.to_string(),
            Ok(repeated) => {
                let arguments = serde_json::from_str(arguments).unwrap();
                let text = |it: &HeaderArgument| Some(format!("{}={}", it.mark(), it.text(&arguments)?));
                repeated.iter().filter_map(text).collect::<Vec<_>>().join(" ")
            }
        };
        assert_eq!(got, want, "{schema}");
    }

    #[track_caller]
    fn check(properties: &str, arguments: &str, want: &str) {
        check_schema(&format!(r#"{{"type":"object","properties":{{{properties}}}}}"#), arguments, want);
    }

    #[test]
    fn marked_arguments_become_headers() {
        check(r#""a":{"type":"string"}"#, r#"{"a":"x"}"#, "");
        check(r#""a":{"type":"string","x-mcp-header":"Region"}"#, r#"{"a":" x"}"#, "Region= x");
        check(r#""a":{"type":"string","x-mcp-header":"R"}"#, r#"{"a":""}"#, "R=");
        check(r#""a":{"type":"boolean","x-mcp-header":"B"}"#, r#"{"a":false}"#, "B=false");
        check(r#""a":{"type":"integer","x-mcp-header":"I"}"#, r#"{"a":42}"#, "I=42");
        check(r#""a":{"type":"integer","x-mcp-header":"I"}"#, r#"{"a":-4.2e1}"#, "I=-42");
        for absent in [r#"{"a":null}"#, "{}", r#"{"a":[1]}"#, r#"{"a":{"b":1}}"#] {
            check(r#""a":{"type":"string","x-mcp-header":"R"}"#, absent, "");
        }
        check(
            r#""a":{"type":"object","properties":{"b":{"type":"string","x-mcp-header":"Deep"}}}"#,
            r#"{"a":{"b":"c"}}"#,
            "Deep=c",
        );
        check(r#""x-mcp-header":{"type":"string"}"#, r#"{"x-mcp-header":"v"}"#, "");
        check(r#""a":{"type":"string","default":{"x-mcp-header":7}}"#, r#"{"a":"v"}"#, "");
    }

    #[test]
    fn tool_with_an_invalid_mark_is_invalid() {
        let mark = |mark: &str| format!(r#""a":{{"type":"string","x-mcp-header":{mark}}}"#);
        for invalid in [r#""""#, r#""a b""#, r#""a:b""#, r#""é""#, r#""a\r\nb""#] {
            check(&mark(invalid), "{}", "`x-mcp-header` of `a` is not a header name");
        }
        check(&mark("7"), "{}", "`x-mcp-header` of `a` is not a string");
        for kind in [r#""type":"number","#, r#""type":"object","#, r#""type":["string"],"#, ""] {
            let want = "`x-mcp-header` of `a` needs the type string, integer or boolean";
            check(&format!(r#""a":{{{kind}"x-mcp-header":"R"}}"#), "{}", want);
        }
        let twice = r#""a":{"type":"string","x-mcp-header":"R"},"b":{"type":"string","x-mcp-header":"r"}"#;
        check(twice, "{}", "`x-mcp-header` of `b` is given twice");
        let unreachable = "`x-mcp-header` is not reachable through `properties`";
        check(r#""a":{"type":"array","items":{"type":"string","x-mcp-header":"R"}}"#, "{}", unreachable);
        check(r#""a":{"anyOf":[{"type":"string","x-mcp-header":"R"}]}"#, "{}", unreachable);
        check(
            r#""a":{"$defs":{"b":{"properties":{"c":{"type":"string","x-mcp-header":"R"}}}}}"#,
            "{}",
            unreachable,
        );
        check_schema(r#"{"type":"object","x-mcp-header":"R"}"#, "{}", unreachable);
    }
}
