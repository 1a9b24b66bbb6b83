//! Gemini's function declarations.
//!
//! The rules, each with its source. R: the reference of the Gemini API (`FunctionDeclaration` and `Schema`,
//! ai.google.dev/api/caching). V: the reference of Vertex AI for the same two. E: an error message of either API.
//!
//! - A name has at most 63 characters: letters, digits, `_` and `-` (R). It begins with a letter or `_` (V, E). V
//!   and newer error messages also allow 64 characters, `.` and `:`; a name that follows the stricter rule is
//!   accepted by all.
//! - The name of a property begins with a letter or `_`, and is 1 to 64 letters, digits and `_` (V).
//! - `Schema` has only the keywords below, as in OpenAPI 3.0 (R; E for others: "Unknown name"). There is no
//!   `$ref`, so references are inlined, and no `oneOf`, `allOf`, `const` or `additionalProperties`.
//! - `type` is one type (E: "Proto field is not repeating"). A union with `null` is written as `nullable` (R), and
//!   so is an `anyOf` with `null`. A schema without `anyOf` has a `type` (E: "must be specified").
//! - A schema with `anyOf` has no other keyword (E: "it must be the only field set").
//! - Only strings have enumerations (E: "only allowed for STRING type"), and their values are not empty (E:
//!   "cannot be empty"). A `const` string is written as an enumeration.
//! - Formats are `enum` and `date-time` for strings (E: "only 'enum' and 'date-time' are supported for STRING
//!   type"), `float` and `double` for numbers, `int32` and `int64` for integers (R).
//! - An object has properties (E: "should be non-empty for OBJECT type"). So an object without properties cannot
//!   be expressed, and a tool without arguments has no `parameters`. A required property is declared (E: "property
//!   is not defined").
//! - An array has `items` (E: "items: missing field").
//!
//! The references give no limits, so the limits here are those for reading any schema.

use mcp_host_model::RawJson;
use serde::Serialize;

use super::profile::{FirstCharacter, NameFormat, ProviderProfile, SchemaDialect};
use super::projected_tool::ProjectedTool;

pub(super) const PROFILE: ProviderProfile = ProviderProfile {
    name_format: NameFormat { max_bytes: 63, start: FirstCharacter::LetterOrUnderscore },
    kept_keywords: &["type", "format", "title", "description", "nullable", "enum", "anyOf"],
    kept_keywords_by_type: &[
        ("object", &["properties", "required", "minProperties", "maxProperties"]),
        ("array", &["items", "minItems", "maxItems"]),
        ("string", &["minLength", "maxLength", "pattern"]),
        ("number", &["minimum", "maximum"]),
        ("integer", &["minimum", "maximum"]),
    ],
    allowed_beside_any_of: &["anyOf"],
    formats: &[
        ("string", &["enum", "date-time"]),
        ("number", &["float", "double"]),
        ("integer", &["int32", "int64"]),
    ],
    max_depth: 32,
    max_properties: 5_000,
    max_enum_values: 5_000,
    max_characters: 256 << 10,
    long_enum: None,
    dialect: SchemaDialect::OpenApi,
};

/// A `Tool` of the Gemini API: one item declares all functions.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolJson<'a> {
    function_declarations: Vec<FunctionJson<'a>>,
}

#[derive(Serialize)]
struct FunctionJson<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a RawJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a RawJson>,
}

impl<'a> ToolJson<'a> {
    pub(super) fn new(tools: impl Iterator<Item = &'a ProjectedTool>) -> ToolJson<'a> {
        let function = |tool: &'a ProjectedTool| FunctionJson {
            name: tool.name.as_str(),
            description: tool.description.as_ref(),
            parameters: tool.schema.as_ref(),
        };
        ToolJson { function_declarations: tools.map(function).collect() }
    }
}
