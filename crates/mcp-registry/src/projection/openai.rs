//! OpenAI's strict functions.
//!
//! Each rule, and where it comes from: G is OpenAI's guide "Structured model outputs", its part "Supported schemas"
//! (developers.openai.com/api/docs/guides/structured-outputs); S is what OpenAI's own Java SDK checks a schema for
//! before it sends one (openai-java, `JsonSchemaValidator`); E is what the API answers.
//!
//! - A name is 1 to 64 of `[a-zA-Z0-9_-]` (the API reference, and E: "Invalid 'tools[0].function.name'").
//! - The root is an object and no `anyOf` (G), and has no `enum`, `oneOf`, `allOf` or `not` either (E).
//! - Every property is required, and every object is closed: `additionalProperties: false` (G, S). It is written where
//!   nothing else is said. A tool with an optional property is left out: a host shows it without `strict`.
//! - Texts have `pattern` and nine formats, numbers their bounds and `multipleOf`, lists `minItems` and `maxItems` (G);
//!   of other types these words are refused (S), so they are dropped there. `minLength` and `uniqueItems` have no place.
//! - A schema has one of `type`, `anyOf` and `$ref` (S; E: "schema must have a 'type' key"); beside `anyOf` stand only
//!   `title` and `description` (S). An enumeration without a type gets the type of its values.
//! - `type` is one type, or one and `null` (G, S). A list says what it holds (S).
//! - At most 10 levels below the root, 5,000 properties, 1,000 enumerated values and 120,000 characters of names and
//!   values; a single enumeration of more than 250 texts has at most 15,000 characters (G). S counts levels: each step
//!   into a property, a list or an alternative is one.
//! - No `oneOf`, `allOf`, `not`, `if` and so on (G; E: "'oneOf' is not permitted").
//!
//! `$ref` is written out, so a recursive schema, which OpenAI would take, is left out here.

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
