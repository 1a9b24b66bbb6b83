//! Tool arguments that are sent as headers too (`x-mcp-header`, 2026-07-28).
//!
//! The keyword `x-mcp-header` in a property's schema is called a mark here. A property at any depth may have one, if
//! only `properties` keywords lead to it. A tool with an invalid mark is rejected, because it cannot be called as its
//! server expects. A schema is parsed once, when the tool is listed, and only if it contains the keyword.

use std::collections::{HashMap, HashSet};

use mcp_host_model::{RawJson, Tool};
use serde_json::{Map, Value};

use crate::transport::HeaderParam;

const HEADER_KEYWORD: &str = "x-mcp-header";

/// Maximum number of headers of one tool.
const MAX_HEADERS: usize = 64;

/// The header marks of a server's tools. Tools without marks are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ToolHeaders(HashMap<Box<str>, Vec<HeaderMark>>);

/// An argument that is sent as a header.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HeaderMark {
    /// The name of the header, as in the schema.
    header: Box<str>,
    /// The property names that lead to the argument.
    path: Vec<Box<str>>,
}

impl ToolHeaders {
    /// Records the marks of a tool. Returns the reason if a mark is invalid.
    pub(crate) fn add_tool(&mut self, tool: &Tool) -> Result<(), String> {
        let schema = tool.input_schema.as_bytes();
        if memchr::memmem::find(schema, HEADER_KEYWORD.as_bytes()).is_none() {
            return Ok(());
        }
        let Ok(schema) = tool.input_schema.read::<Map<String, Value>>() else {
            return Err(format!("its `{HEADER_KEYWORD}` marks cannot be read"));
        };
        let mut collector = MarkCollector::default();
        collector.collect_object(&schema, Some(&[]))?;
        if !collector.marks.is_empty() {
            self.0.insert(tool.name.clone(), collector.marks);
        }
        Ok(())
    }

    /// Whether no tool has marks.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The headers of one call. Fails when an argument cannot be a header.
    pub(crate) fn for_call(&self, tool: &str, arguments: &RawJson) -> Result<Vec<HeaderParam>, String> {
        let Some(marks) = self.0.get(tool) else { return Ok(Vec::new()) };
        let arguments: Value = arguments.read().map_err(|it| it.to_string())?;
        let mut res = Vec::with_capacity(marks.len());
        for HeaderMark { header, path } in marks {
            let value = path.iter().try_fold(&arguments, |value, name| value.get(&**name));
            if let Some(value) = value.and_then(header_value) {
                res.push(HeaderParam { name: header.clone(), value: value.into() });
            }
        }
        Ok(res)
    }
}

/// An argument as a header value; `None` for a missing argument, `null`, an array or an object.
fn header_value(value: &Value) -> Option<String> {
    match value {
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

/// Collects the marks of one schema.
#[derive(Default)]
struct MarkCollector {
    marks: Vec<HeaderMark>,
    /// The header names in lower case, to find duplicates.
    headers: HashSet<String>,
}

impl MarkCollector {
    /// Walks a schema. `path` leads to it through `properties` only; `None` if another keyword is on the way.
    fn collect_object(
        &mut self,
        schema: &Map<String, Value>,
        path: Option<&[Box<str>]>,
    ) -> Result<(), String> {
        for (key, value) in schema {
            match (key.as_str(), value) {
                (HEADER_KEYWORD, mark) => self.collect_mark(mark, schema, path)?,
                ("properties", Value::Object(properties)) => {
                    for (name, schema) in properties {
                        let property_path = path.map(|it| [it, &[name.as_str().into()]].concat());
                        self.collect_value(schema, property_path.as_deref())?;
                    }
                }
                (
                    "$defs" | "definitions" | "dependentSchemas" | "patternProperties",
                    Value::Object(schemas),
                ) => {
                    schemas.values().try_for_each(|it| self.collect_value(it, None))?;
                }
                // These contain values, not schemas.
                ("default" | "const" | "enum" | "examples", _) => {}
                (_, value) => self.collect_value(value, None)?,
            }
        }
        Ok(())
    }

    /// Walks a value that may be a schema or contain schemas.
    fn collect_value(&mut self, value: &Value, path: Option<&[Box<str>]>) -> Result<(), String> {
        match value {
            Value::Object(schema) => self.collect_object(schema, path),
            Value::Array(items) => items.iter().try_for_each(|it| self.collect_value(it, None)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        }
    }

    /// Checks and adds the mark of `schema`.
    fn collect_mark(
        &mut self,
        mark: &Value,
        schema: &Map<String, Value>,
        path: Option<&[Box<str>]>,
    ) -> Result<(), String> {
        let Some(path) = path.filter(|it| !it.is_empty()) else {
            return Err(format!("`{HEADER_KEYWORD}` is not reachable through `properties`"));
        };
        let path_text = path.join("/");
        let Some(header) = mark.as_str() else {
            return Err(format!("`{HEADER_KEYWORD}` of `{path_text}` is not a string"));
        };
        if header.is_empty() || !header.bytes().all(is_token_char) {
            return Err(format!("`{HEADER_KEYWORD}` of `{path_text}` is not a header name"));
        }
        if !matches!(schema.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
            return Err(format!(
                "`{HEADER_KEYWORD}` of `{path_text}` needs the type string, integer or boolean"
            ));
        }
        if !self.headers.insert(header.to_ascii_lowercase()) {
            return Err(format!("`{HEADER_KEYWORD}` of `{path_text}` is given twice"));
        }
        if self.marks.len() == MAX_HEADERS {
            return Err(format!("it has more than {MAX_HEADERS} `{HEADER_KEYWORD}` marks"));
        }
        self.marks.push(HeaderMark { header: header.into(), path: path.to_vec() });
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
    use mcp_host_model::read_tools;

    fn tool(schema: &str) -> Tool {
        let page = format!(r#"{{"tools":[{{"name":"t","inputSchema":{schema}}}]}}"#);
        read_tools(&RawJson::parse(page.into()).unwrap()).unwrap().items.remove(0)
    }

    /// Compares the headers of a call with these arguments, or the reason why the tool is rejected.
    #[track_caller]
    fn check(properties: &str, arguments: &str, want: &str) {
        let mut tool_headers = ToolHeaders::default();
        let result =
            tool_headers.add_tool(&tool(&format!(r#"{{"type":"object","properties":{{{properties}}}}}"#)));
        let arguments = RawJson::parse(arguments.to_owned().into()).unwrap();
        let got = match result {
            Err(reason) => reason,
            Ok(()) => {
                let headers = tool_headers.for_call("t", &arguments).unwrap();
                let texts = headers.iter().map(|it| format!("{}={}", it.name, it.value));
                texts.collect::<Vec<_>>().join(" ")
            }
        };
        assert_eq!(got, want, "{properties}");
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
    fn tool_with_an_invalid_mark_is_rejected() {
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
        let root = tool(r#"{"type":"object","x-mcp-header":"R"}"#);
        assert_eq!(ToolHeaders::default().add_tool(&root), Err(unreachable.to_owned()));
    }
}
