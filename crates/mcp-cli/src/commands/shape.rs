//! A JSON Schema as a person reads it: a line for each field, with its type in words.
//!
//! It is a reading aid and judges nothing: what the schema says that has no words here is simply not said. A schema is a
//! stranger's, so depth, width and the references that are followed are bounded.

use mcp_model::RawJson;
use serde_json::{Map, Value};

use crate::output::table::{Column, Look, table};

/// How deep fields within fields are shown.
const DEEPEST: usize = 4;
/// How many fields are shown.
const MOST: usize = 200;
/// How many references are followed from one place, and how many types are said of one field.
const HOPS: usize = 8;

/// The arguments of a tool, a line for each; empty where it takes none.
pub(super) fn arguments(schema: &RawJson, look: Look) -> String {
    rows("ARGUMENT", schema, look)
}

/// The fields of a tool's structured result.
pub(super) fn results(schema: &RawJson, look: Look) -> String {
    rows("RESULT", schema, look)
}

fn rows(heading: &'static str, schema: &RawJson, look: Look) -> String {
    let Ok(root) = schema.read::<Value>() else { return String::new() };
    let mut fields = Fields { root: &root, rows: Vec::new() };
    fields.of(&root, "", 1);
    let columns = [heading, "TYPE", "NEEDED", "DESCRIPTION"].map(Column::Words);
    table(&columns, &fields.rows, look)
}

struct Fields<'a> {
    root: &'a Value,
    rows: Vec<Vec<String>>,
}

impl<'a> Fields<'a> {
    /// Adds the fields of an object's schema, and theirs.
    fn of(&mut self, schema: &'a Value, prefix: &str, depth: usize) {
        let Value::Object(schema) = self.resolved(schema) else { return };
        let Some(Value::Object(properties)) = schema.get("properties") else { return };
        let required = |name: &str| {
            let list = schema.get("required").and_then(Value::as_array);
            list.is_some_and(|it| it.iter().any(|it| it.as_str() == Some(name)))
        };
        for (name, property) in properties {
            if self.rows.len() >= MOST {
                return;
            }
            let property = self.resolved(property);
            let path = format!("{prefix}{name}");
            let needed = if required(name) { "yes" } else { "no" };
            let row = vec![path.clone(), self.type_of(property, 1), needed.to_owned(), about(property)];
            self.rows.push(row);
            if depth >= DEEPEST {
                continue;
            }
            let items = property.get("items").map(|it| self.resolved(it));
            match items {
                Some(items) => self.of(items, &format!("{path}[]."), depth + 1),
                None => self.of(property, &format!("{path}."), depth + 1),
            }
        }
    }

    fn resolved(&self, schema: &'a Value) -> &'a Value {
        resolved(self.root, schema)
    }

    /// A type in words: `string`, `array of integer`, `"a" | "b"`.
    fn type_of(&self, schema: &'a Value, depth: usize) -> String {
        let schema = self.resolved(schema);
        if depth > DEEPEST {
            return "…".to_owned();
        }
        if let Some(it) = schema.get("const") {
            return it.to_string();
        }
        let either = |it: &'a Vec<Value>, word: &dyn Fn(&'a Value) -> String| {
            let mut words: Vec<String> = Vec::new();
            for it in it.iter().take(HOPS).map(word) {
                if !words.contains(&it) {
                    words.push(it);
                }
            }
            if it.len() > HOPS {
                words.push("…".to_owned());
            }
            words.join(" | ")
        };
        if let Some(Value::Array(values)) = schema.get("enum") {
            return either(values, &|it| it.to_string());
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(schemas)) = schema.get(key) {
                return either(schemas, &|it| self.type_of(it, depth + 1));
            }
        }
        match schema.get("type") {
            Some(Value::String(name)) if name == "array" => match schema.get("items") {
                Some(items) => format!("array of {}", self.type_of(items, depth + 1)),
                None => "array".to_owned(),
            },
            Some(Value::String(name)) => name.clone(),
            Some(Value::Array(names)) => either(names, &|it| it.as_str().unwrap_or("…").to_owned()),
            _ if schema.get("properties").is_some() => "object".to_owned(),
            _ => "any".to_owned(),
        }
    }
}

/// What a reference within the schema means; another one means itself.
pub(super) fn resolved<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut res = schema;
    for _ in 0..HOPS {
        let Some(reference) = res.get("$ref").and_then(Value::as_str) else { return res };
        let target = reference.strip_prefix('#').and_then(|it| root.pointer(it));
        let Some(target) = target else { return res };
        res = target;
    }
    res
}

/// The description, and in brackets what else is asked of the value.
fn about(schema: &Value) -> String {
    let Value::Object(schema) = schema else { return String::new() };
    let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let asked = asked(schema);
    match (description.is_empty(), asked.is_empty()) {
        (_, true) => description.to_owned(),
        (true, false) => format!("({asked})"),
        (false, false) => format!("{description} ({asked})"),
    }
}

fn asked(schema: &Map<String, Value>) -> String {
    const WORDS: [(&str, &str); 9] = [
        ("default", "default"),
        ("format", "format"),
        ("pattern", "pattern"),
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("minLength", "shortest"),
        ("maxLength", "longest"),
        ("minItems", "fewest"),
        ("maxItems", "most"),
    ];
    let said = WORDS.iter().filter_map(|(key, word)| {
        let value = schema.get(*key)?;
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Some(format!("{word} {value}"))
    });
    said.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use mcp_config::Colour;

    use super::*;

    /// The lines of the table without their heading, runs of spaces as one.
    #[track_caller]
    fn check(schema: &str, want: &str) {
        let schema = RawJson::parse(schema.to_owned().into()).unwrap();
        let got = arguments(&schema, Look { width: 200, colour: Colour::Never });
        let lines = got.lines().skip(1).map(|it| it.split_whitespace().collect::<Vec<_>>().join(" "));
        assert_eq!(lines.collect::<Vec<_>>().join("|"), want);
    }

    #[test]
    fn types_are_said_in_words() {
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
    fn what_is_asked_of_a_value_stands_behind_its_description() {
        check(
            r#"{"properties":{"a":{"type":"integer","description":"How many","default":5,"minimum":1,"maximum":10},
                "b":{"type":"string","format":"uri"}}}"#,
            "a integer no How many (default 5, at least 1, at most 10)|b string no (format uri)",
        );
    }

    #[test]
    fn fields_within_fields_and_references_are_followed_within_bounds() {
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
    fn a_schema_without_end_is_cut() {
        let many: Vec<String> = (0..500).map(|it| format!(r#""p{it}":{{}}"#)).collect();
        let schema = RawJson::parse(format!(r#"{{"properties":{{{}}}}}"#, many.join(",")).into()).unwrap();
        let got = arguments(&schema, Look { width: 200, colour: Colour::Never });
        assert_eq!(got.lines().count(), MOST + 1);
    }
}
