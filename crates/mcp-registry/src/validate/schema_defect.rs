//! Mistakes in a schema that can be found without compiling it: types that do not exist, references without a target,
//! and keywords with a value of the wrong kind.
//!
//! The check is linear in the size of the schema, so a host can check every schema when it reads a list.

use mcp_host_model::RawJson;
use serde_json::{Map, Value};

use super::schema_cost::{MAX_SCHEMA_BYTES, decode_percent};
use crate::name::display::{quote, truncate};

/// The types of JSON Schema.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];
/// The maximum length of a message, in characters.
const MAX_MESSAGE: usize = 300;
/// The maximum depth of nested schemas. Deeper ones are not checked.
const MAX_DEPTH: usize = 64;

/// Returns what is wrong with the schema of a tool's arguments; `None` if nothing was found.
pub fn input_schema_defect(schema: &RawJson) -> Option<String> {
    read(schema).and_then(|schema| schema_defect(&schema).or_else(|| argument_type_defect(&schema)))
}

/// Returns what is wrong with the schema of a tool's results; `None` if nothing was found.
pub fn output_schema_defect(schema: &RawJson) -> Option<String> {
    read(schema).and_then(|schema| schema_defect(&schema))
}

/// Parses a schema. Returns `None` for one that is too large or invalid JSON, which is reported when it is compiled.
fn read(schema: &RawJson) -> Option<Value> {
    (schema.as_bytes().len() <= MAX_SCHEMA_BYTES).then(|| schema.read().ok()).flatten()
}

/// Returns why a schema cannot be that of arguments, which are an object.
pub(super) fn argument_type_defect(schema: &Value) -> Option<String> {
    let actual = match schema.get("type")? {
        Value::String(name) if name != "object" => quote(name),
        Value::Array(names) if !names.iter().any(|name| name == "object") => "a list without it".to_owned(),
        _ => return None,
    };
    Some(unusable(&format!("its type must be `object` and is {actual}")))
}

/// Returns the first mistake of a schema.
pub(super) fn schema_defect(schema: &Value) -> Option<String> {
    let mut finder = DefectFinder { root: schema, has_nested_ids: false, missing_target: None };
    let defect = finder.check(schema, &mut Vec::new());
    // Below another `$id`, references have another base.
    let defect = defect.or(finder.missing_target.filter(|_| !finder.has_nested_ids));
    defect.map(|defect| unusable(&defect))
}

/// The reason why a schema with this mistake cannot be used.
fn unusable(defect: &str) -> String {
    truncate(format!("its schema cannot be used: {defect}"), MAX_MESSAGE)
}

/// Finds the first mistake of a schema.
struct DefectFinder<'a> {
    root: &'a Value,
    /// Whether a schema inside has an `$id`, so that references below it cannot be resolved here.
    has_nested_ids: bool,
    /// The first reference without a target.
    missing_target: Option<String>,
}

impl<'a> DefectFinder<'a> {
    /// Returns the first mistake of this schema or one in it. `path` leads to the schema.
    fn check(&mut self, schema: &'a Value, path: &mut Vec<&'a str>) -> Option<String> {
        let Value::Object(members) = schema else { return None };
        self.has_nested_ids |= !path.is_empty() && members.get("$id").is_some_and(Value::is_string);
        if path.len() > MAX_DEPTH {
            return None;
        }
        for (key, value) in members {
            path.push(key);
            let defect = self.check_keyword(key, value, path);
            path.pop();
            if defect.is_some() {
                return defect;
            }
        }
        None
    }

    /// Returns the first mistake in the value of a keyword. `path` leads to the value.
    fn check_keyword(&mut self, key: &str, value: &'a Value, path: &mut Vec<&'a str>) -> Option<String> {
        match key {
            "type" => type_defect(value).map(|defect| format!("{} {defect}", pointer(path))),
            "$ref" => {
                let reference = value.as_str()?;
                if self.missing_target.is_none() && self.is_dangling(reference) {
                    let target = quote(reference);
                    self.missing_target =
                        Some(format!("{} is {target}, which does not exist", pointer(path)));
                }
                None
            }
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas" => {
                match value {
                    Value::Object(named) => self.check_named(named, path),
                    _ => Some(format!("{} is no object", pointer(path))),
                }
            }
            "required" => match value {
                Value::Array(names) if names.iter().all(Value::is_string) => None,
                // Draft 3 had a boolean in the schema of each property.
                _ => Some(format!("{} is no list of names", pointer(path))),
            },
            "items"
            | "additionalItems"
            | "additionalProperties"
            | "contains"
            | "propertyNames"
            | "not"
            | "if"
            | "then"
            | "else"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "allOf"
            | "anyOf"
            | "oneOf"
            | "prefixItems" => match value {
                Value::Array(schemas) => schemas.iter().find_map(|schema| self.check(schema, path)),
                schema => self.check(schema, path),
            },
            _ => None,
        }
    }

    /// Returns the first mistake in a map of schemas by name.
    fn check_named(&mut self, named: &'a Map<String, Value>, path: &mut Vec<&'a str>) -> Option<String> {
        for (name, schema) in named {
            path.push(name);
            let defect = match schema {
                Value::Object(_) | Value::Bool(_) => self.check(schema, path),
                _ => Some(format!("{} is no schema", pointer(path))),
            };
            path.pop();
            if defect.is_some() {
                return defect;
            }
        }
        None
    }

    /// Whether a reference within the document has no target. Other references are not followed.
    fn is_dangling(&self, reference: &str) -> bool {
        let Some(pointer) = reference.strip_prefix('#').filter(|it| it.starts_with('/')) else {
            return false;
        };
        let decoded = if pointer.contains('%') { decode_percent(pointer) } else { None };
        self.root.pointer(decoded.as_deref().unwrap_or(pointer)).is_none()
    }
}

/// Returns what is wrong with the value of `type`.
fn type_defect(value: &Value) -> Option<String> {
    let is_type = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
    let invalid = match value {
        Value::Array(names) => names.iter().find(|name| !is_type(name))?,
        name if is_type(name) => return None,
        name => name,
    };
    match invalid {
        Value::String(name) => Some(format!("is {}, which is no type", quote(name))),
        _ => Some("is no type".to_owned()),
    }
}

/// The path as a JSON pointer. Positions in lists are left out.
fn pointer(path: &[&str]) -> String {
    path.iter().map(|step| format!("/{step}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: &str, want: &str) {
        let schema = RawJson::parse(schema.as_bytes().to_vec().into()).unwrap();
        let got = input_schema_defect(&schema).unwrap_or_default();
        assert_eq!(got.strip_prefix("its schema cannot be used: ").unwrap_or(&got), want);
    }

    #[test]
    fn mistakes_are_found_without_compiling() {
        check(
            r#"{"type":"object","properties":{"a":{"type":["string","null"]},"type":{"type":"number"}}}"#,
            "",
        );
        check("{}", "");
        check(r#"{"type":"strin"}"#, "/type is `strin`, which is no type");
        check(
            r#"{"properties":{"a":{"items":{"type":["string","nul"]}}}}"#,
            "/properties/a/items/type is `nul`, which is no type",
        );
        check(r#"{"properties":{"a":{"type":7}}}"#, "/properties/a/type is no type");
        check(r#"{"anyOf":[{"type":"any"}]}"#, "/anyOf/type is `any`, which is no type");
        check(
            r##"{"properties":{"a":{"$ref":"#/$defs/none"}}}"##,
            "/properties/a/$ref is `#/$defs/none`, which does not exist",
        );
        check(r##"{"properties":{"a":{"$ref":"#/$defs/a%20b"}},"$defs":{"a b":true}}"##, "");
        check(r##"{"properties":{"a":{"$ref":"#"},"b":{"$ref":"#anchor"},"c":{"$ref":"https://x"}}}"##, "");
        check(r##"{"properties":{"a":{"$id":"https://x","$ref":"#/none"}}}"##, "");
        check(r#"{"type":"string"}"#, "its type must be `object` and is `string`");
        check(r#"{"type":["string","null"]}"#, "its type must be `object` and is a list without it");
        check(r#"{"type":["object","null"]}"#, "");
        check(r#"{"properties":[]}"#, "/properties is no object");
        check(r#"{"properties":{"a":"string"}}"#, "/properties/a is no schema");
        check(r#"{"required":true}"#, "/required is no list of names");
        // Data is no schema.
        check(r#"{"default":{"type":"x"},"examples":[{"type":"x"}],"x-own":{"type":"x"}}"#, "");
    }

    #[test]
    fn result_may_have_any_type() {
        let schema = RawJson::parse(r#"{"type":"string"}"#.into()).unwrap();
        assert_eq!(output_schema_defect(&schema), None);
        let schema = RawJson::parse(r#"{"type":"strin"}"#.into()).unwrap();
        assert!(output_schema_defect(&schema).is_some());
    }
}
