//! OpenAI's strict functions.
//!
//! The rules, each with its source. G: the part "Supported schemas" of OpenAI's guide "Structured model outputs"
//! (developers.openai.com/api/docs/guides/structured-outputs). S: the check in OpenAI's Java SDK before it sends a
//! schema (openai-java, `JsonSchemaValidator`). E: an error message of the API.
//!
//! - A name is 1 to 64 characters of `[a-zA-Z0-9_-]` (API reference; E: "Invalid 'tools[0].function.name'").
//! - The root is an object without `anyOf` (G) and without `enum`, `oneOf`, `allOf` and `not` (E).
//! - Every property is required, and every object is closed: `additionalProperties: false` (G, S), which is added
//!   if it is missing. A tool with an optional property is left out; a host can offer it without `strict`.
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
//! References are inlined, so a recursive schema is left out, although OpenAI would accept it.

use mcp_model::RawJson;
use serde::Serialize;

use super::ProjectedTool;
use super::profile::{FirstCharacter, NameFormat, ProviderProfile, SchemaDialect};

const NUMBERS: &[&str] = &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];

pub(super) const STRICT: ProviderProfile = ProviderProfile {
    names: NameFormat { max_bytes: 64, start: FirstCharacter::Any },
    keep: &["type", "anyOf", "enum", "const", "description", "title"],
    keep_of: &[
        ("object", &["properties", "required"]),
        ("array", &["items", "minItems", "maxItems"]),
        ("string", &["pattern", "format"]),
        ("number", NUMBERS),
        ("integer", NUMBERS),
    ],
    beside_any_of: &["anyOf", "title", "description"],
    formats: &[(
        "string",
        &["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"],
    )],
    depth: 10,
    properties: 5_000,
    enum_values: 1_000,
    characters: 120_000,
    long_enum: Some((250, 15_000)),
    dialect: SchemaDialect::Closed,
};

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
            strict: true,
        };
        ToolJson { r#type: "function", function }
    }
}
