//! Renders a JSON Schema as a table: one line per field, with its type.
//!
//! Keywords that are not known here are left out. Schemas are untrusted, so depth, size and references are bounded.

use mcp_host_model::RawJson;
use serde_json::{Map, Value};

use crate::call_arguments::schema::{is_required, resolve_ref};
use crate::output::table::{Column, TableStyle, table};

/// The maximum depth of nested fields.
const MAX_DEPTH: usize = 4;
/// The maximum number of fields.
const MAX_FIELDS: usize = 200;
/// The maximum number of alternative types of a field.
const MAX_ALTERNATIVES: usize = 8;

/// The arguments of a tool; empty if it has none.
pub(crate) fn argument_table(schema: &RawJson, style: TableStyle) -> String {
    schema_table("ARGUMENT", schema, style)
}

/// The fields of a tool's structured result; empty if the schema names none.
pub(crate) fn result_table(schema: &RawJson, style: TableStyle) -> String {
    schema_table("RESULT", schema, style)
}

fn schema_table(heading: &'static str, schema: &RawJson, style: TableStyle) -> String {
    let Ok(root) = schema.read::<Value>() else { return String::new() };
    let mut fields = FieldRows { root: &root, rows: Vec::new() };
    fields.add(&root, "", 1);
    let columns = [
        Column::Text(heading),
        Column::Wrapped("TYPE"),
        Column::Text("REQUIRED"),
        Column::Wrapped("DESCRIPTION"),
    ];
    table(&columns, &fields.rows, style)
}

/// The rows of a table, while they are collected.
struct FieldRows<'a> {
    /// The document that references refer to.
    root: &'a Value,
    rows: Vec<Vec<String>>,
}

impl<'a> FieldRows<'a> {
    /// Adds the fields of an object's schema, and their fields.
    fn add(&mut self, schema: &'a Value, prefix: &str, depth: usize) {
        let schema = resolve_ref(self.root, schema);
        let Some(Value::Object(properties)) = schema.get("properties") else { return };
        for (name, property) in properties {
            if self.rows.len() >= MAX_FIELDS {
                return;
            }
            let property = resolve_ref(self.root, property);
            let path = format!("{prefix}{name}");
            let required = if is_required(schema, name) { "yes" } else { "no" };
            let row =
                vec![path.clone(), self.type_text(property, 1), required.to_owned(), description(property)];
            self.rows.push(row);
            if depth >= MAX_DEPTH {
                continue;
            }
            let items = property.get("items").map(|items| resolve_ref(self.root, items));
            match items {
                Some(items) => self.add(items, &format!("{path}[]."), depth + 1),
                None => self.add(property, &format!("{path}."), depth + 1),
            }
        }
    }

    /// A type as text: `string`, `array of integer`, `"a" | "b"`.
    fn type_text(&self, schema: &'a Value, depth: usize) -> String {
        let schema = resolve_ref(self.root, schema);
        if depth > MAX_DEPTH {
            return "…".to_owned();
        }
        if let Some(value) = schema.get("const") {
            return value.to_string();
        }
        let alternatives = |values: &'a Vec<Value>, name: &dyn Fn(&'a Value) -> String| {
            let mut names: Vec<String> = Vec::new();
            for name in values.iter().take(MAX_ALTERNATIVES).map(name) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            if values.len() > MAX_ALTERNATIVES {
                names.push("…".to_owned());
            }
            names.join(" | ")
        };
        if let Some(Value::Array(values)) = schema.get("enum") {
            return alternatives(values, &|it| it.to_string());
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(schemas)) = schema.get(key) {
                return alternatives(schemas, &|it| self.type_text(it, depth + 1));
            }
        }
        match schema.get("type") {
            Some(Value::String(name)) if name == "array" => match schema.get("items") {
                Some(items) => format!("array of {}", self.type_text(items, depth + 1)),
                None => "array".to_owned(),
            },
            Some(Value::String(name)) => name.clone(),
            Some(Value::Array(names)) => alternatives(names, &|it| it.as_str().unwrap_or("…").to_owned()),
            _ if schema.get("properties").is_some() => "object".to_owned(),
            _ => "any".to_owned(),
        }
    }
}

/// The description, followed by the constraints in parentheses.
fn description(schema: &Value) -> String {
    let Value::Object(schema) = schema else { return String::new() };
    let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let constraints = constraints(schema);
    match (description.is_empty(), constraints.is_empty()) {
        (_, true) => description.to_owned(),
        (true, false) => format!("({constraints})"),
        (false, false) => format!("{description} ({constraints})"),
    }
}

/// The constraints as text: `default 5, at least 1`.
fn constraints(schema: &Map<String, Value>) -> String {
    const LABELS: [(&str, &str); 9] = [
        ("default", "default"),
        ("format", "format"),
        ("pattern", "pattern"),
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("minLength", "min length"),
        ("maxLength", "max length"),
        ("minItems", "min items"),
        ("maxItems", "max items"),
    ];
    let texts = LABELS.iter().filter_map(|(key, label)| {
        let value = schema.get(*key)?;
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Some(format!("{label} {value}"))
    });
    texts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use mcp_host_config::Colour;

    use super::*;

    /// Compares the rows. Each run of spaces counts as one space.
    #[track_caller]
    fn check(schema: &str, want: &str) {
        let schema = RawJson::parse(schema.to_owned().into()).unwrap();
        let got = argument_table(&schema, TableStyle { width: 200, colour: Colour::Never });
        let lines = got.lines().skip(1).map(|it| it.split_whitespace().collect::<Vec<_>>().join(" "));
        assert_eq!(lines.collect::<Vec<_>>().join("|"), want);
    }

    #[test]
    fn types_have_a_text() {
        check(
            r#"{"properties":{
                "a":{"type":"string"},"b":{"type":["integer","null"]},"c":{"enum":["x","y"]},
                "d":{"anyOf":[{"type":"number"},{"type":"boolean"},{"type":"number"}]},"e":{"const":7},"f":{},
                "g":{"type":"array","items":{"type":"string"}}},"required":["a"]}"#,
            concat!(
                "a string yes|b integer | null no|c \"x\" | \"y\" no|d number | boolean no|e 7 no|f any no|",
                "g array of string no"
            ),
        );
    }

    #[test]
    fn constraints_follow_the_description() {
        check(
            r#"{"properties":{"a":{"type":"integer","description":"How many","default":5,"minimum":1,"maximum":10},
                "b":{"type":"string","format":"uri"}}}"#,
            "a integer no How many (default 5, at least 1, at most 10)|b string no (format uri)",
        );
    }

    #[test]
    fn nested_fields_and_references_are_bounded() {
        check(
            r##"{"properties":{"who":{"$ref":"#/$defs/who"},"list":{"type":"array","items":{"$ref":"#/$defs/who"}}},
                "$defs":{"who":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}"##,
            "who object no|who.name string yes|list array of object no|list[].name string yes",
        );
        check(
            r##"{"properties":{"a":{"$ref":"#"}}}"##,
            "a object no|a.a object no|a.a.a object no|a.a.a.a object no",
        );
        check(
            r##"{"properties":{"a":{"$ref":"#/properties/a"},"b":{"$ref":"http://elsewhere"}}}"##,
            "a any no|b any no",
        );
        check(
            r##"{"properties":{"a":{"type":"array","items":{"$ref":"#/properties/a"}}}}"##,
            "a array of array of array of array of … no",
        );
        check("true", "");
        check("{}", "");
    }

    #[test]
    fn large_schema_is_truncated() {
        let many: Vec<String> = (0..500).map(|it| format!(r#""p{it}":{{}}"#)).collect();
        let schema = RawJson::parse(format!(r#"{{"properties":{{{}}}}}"#, many.join(",")).into()).unwrap();
        let got = argument_table(&schema, TableStyle { width: 200, colour: Colour::Never });
        assert_eq!(got.lines().count(), MAX_FIELDS + 1);
    }
}
