//! OpenAI's functions: strict ones, and others where the strict rules do not allow a schema.
//!
//! The rules, each with its source. G: the part "Supported schemas" of OpenAI's guide "Structured model outputs"
//! (developers.openai.com/api/docs/guides/structured-outputs). S: the check in OpenAI's Java SDK before it sends a
//! schema (openai-java, `JsonSchemaValidator`). E: an error message of the API.
//!
//! - A name is 1 to 64 characters of `[a-zA-Z0-9_-]` (API reference; E: "Invalid 'tools[0].function.name'").
//! - The root is an object without `anyOf` (G) and without `enum`, `oneOf`, `allOf` and `not` (E).
//! - Every property is required, and every object is closed: `additionalProperties: false` (G, S), which is added
//!   if it is missing. So a tool with an optional property is not strict.
//! - Strings may have `pattern` and nine formats, numbers their bounds and `multipleOf`, arrays `minItems` and
//!   `maxItems` (G). With other types these keywords are refused (S), so they are dropped. `minLength` and
//!   `uniqueItems` are always dropped.
//! - A schema has one of `type`, `anyOf` and `$ref` (S; E: "schema must have a 'type' key"). Beside `anyOf` only
//!   `title` and `description` are allowed (S). An enumeration without a type gets the type of its values.
//! - `type` is one type, or one type and `null` (G, S). An array has `items` (S).
//! - At most 10 levels below the root, 5,000 properties, 1,000 enumerated values, and 120,000 characters of names
//!   and values; an enumeration of more than 250 strings has at most 15,000 characters (G). Each step into a
//!   property, an array or an alternative is a level (S).
//! - No `oneOf`, `allOf`, `not`, `if` and similar keywords (G; E: "'oneOf' is not permitted").
//!
//! References are inlined, so a recursive schema is not strict, although OpenAI would accept it.
//!
//! The rules for a function with `strict: false`. Its schema is otherwise sent unchanged:
//!
//! - The name and the root are as above (E: "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/
//!   'enum'/'not' at the top level"). A tool with another root is left out, because the error fails the whole request.
//! - An array has `items` and an object has `properties` (E: "array schema missing items", "object schema missing
//!   properties"). The keyword is added with an empty value, which does not change the meaning.
//! - The schema is valid in draft 2020-12, and references lead to a part of the schema.

use mcp_host_model::RawJson;
use serde::Serialize;
use serde_json::{Value, json};

use super::profile::{FirstCharacter, NameFormat, ProviderProfile, SchemaDialect};
use super::projected_tool::ProjectedTool;
use super::rewrite::{INVALID_SCHEMA, no_target_reason};

const NUMBER_KEYWORDS: &[&str] =
    &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];

pub(super) const STRICT: ProviderProfile = ProviderProfile {
    name_format: NameFormat { max_bytes: 64, start: FirstCharacter::Any },
    kept_keywords: &["type", "anyOf", "enum", "const", "description", "title"],
    kept_keywords_by_type: &[
        ("object", &["properties", "required"]),
        ("array", &["items", "minItems", "maxItems"]),
        ("string", &["pattern", "format"]),
        ("number", NUMBER_KEYWORDS),
        ("integer", NUMBER_KEYWORDS),
    ],
    allowed_beside_any_of: &["anyOf", "title", "description"],
    formats: &[(
        "string",
        &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"],
    )],
    max_depth: 10,
    max_properties: 5_000,
    max_enum_values: 1_000,
    max_characters: 120_000,
    long_enum: Some((250, 15_000)),
    dialect: SchemaDialect::Closed,
};

/// Returns the schema for a function with `strict: false`. `schema` is the value of `original`.
pub(super) fn prepare_non_strict(original: &RawJson, mut schema: Value) -> Result<RawJson, String> {
    if !jsonschema::draft202012::meta::is_valid(&schema) {
        return Err(INVALID_SCHEMA.to_owned());
    }
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("the root's `type` is not `object`".to_owned());
    }
    let keywords = ["oneOf", "anyOf", "allOf", "enum", "not"];
    if let Some(keyword) = keywords.into_iter().find(|keyword| schema.get(keyword).is_some()) {
        return Err(format!("the root has `{keyword}`"));
    }
    let mut completer = SchemaCompleter { references: Vec::new(), is_changed: false };
    completer.complete(&mut schema);
    let has_no_target = |reference: &&String| {
        reference.strip_prefix('#').and_then(|pointer| schema.pointer(pointer)).is_none()
    };
    match completer.references.iter().find(has_no_target) {
        Some(reference) => Err(no_target_reason(reference)),
        None if completer.is_changed => {
            // Sorted, because the order of serde_json's map depends on its features.
            schema.sort_all_objects();
            Ok(RawJson::from_value(&schema).expect("member names are strings"))
        }
        None => Ok(original.clone()),
    }
}

/// Adds missing `properties` and `items` to a schema and collects its references.
struct SchemaCompleter {
    references: Vec<String>,
    is_changed: bool,
}

impl SchemaCompleter {
    /// Completes a schema and the schemas inside it.
    fn complete(&mut self, schema: &mut Value) {
        let Value::Object(members) = schema else { return };
        for (name, keyword) in [("object", "properties"), ("array", "items")] {
            let has_type = members.get("type").is_some_and(|types| match types {
                Value::Array(types) => types.iter().any(|each| each == name),
                only => only == name,
            });
            if has_type && !members.contains_key(keyword) {
                members.insert(keyword.to_owned(), json!({}));
                self.is_changed = true;
            }
        }
        for (keyword, value) in members {
            match (keyword.as_str(), value) {
                ("$ref", Value::String(reference)) => self.references.push(reference.clone()),
                (
                    "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions",
                    Value::Object(schemas),
                ) => schemas.values_mut().for_each(|each| self.complete(each)),
                ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(schemas)) => {
                    schemas.iter_mut().for_each(|each| self.complete(each));
                }
                (
                    "items"
                    | "contains"
                    | "additionalProperties"
                    | "propertyNames"
                    | "not"
                    | "if"
                    | "then"
                    | "else"
                    | "unevaluatedItems"
                    | "unevaluatedProperties",
                    schema,
                ) => self.complete(schema),
                _ => {}
            }
        }
    }
}

/// A tool of the Chat Completions API.
#[derive(Serialize)]
pub(super) struct ToolJson<'a> {
    r#type: &'static str,
    function: FunctionJson<'a>,
}

#[derive(Serialize)]
struct FunctionJson<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a RawJson>,
    parameters: Option<&'a RawJson>,
    strict: bool,
}

impl<'a> ToolJson<'a> {
    pub(super) fn new(tool: &'a ProjectedTool) -> ToolJson<'a> {
        let function = FunctionJson {
            name: tool.name.as_str(),
            description: tool.description.as_ref(),
            parameters: tool.schema.as_ref(),
            strict: tool.not_strict.is_none(),
        };
        ToolJson { r#type: "function", function }
    }
}
