//! Gemini's function declarations.
//!
//! Each rule, and where it comes from: R is the reference of the Gemini API (`FunctionDeclaration` and `Schema`,
//! ai.google.dev/api/caching); V is that of Vertex AI for the same two; E is what either API answers.
//!
//! - A name has at most 63 characters, letters, digits, `_` and `-` (R), and begins with a letter or `_` (V, E). V and
//!   newer answers allow 64, `.` and `:` as well; a name within the stricter rule is taken everywhere.
//! - A property's name begins with a letter or `_`, and is 1 to 64 letters, digits and `_` (V).
//! - `Schema` has the keywords below and no other, as OpenAPI 3.0 has them (R); E of others: "Unknown name". There is no
//!   `$ref` (it is written out), no `oneOf`, `allOf`, `const` or `additionalProperties`.
//! - `type` is one type (E: "Proto field is not repeating"); a union with `null` is `nullable` (R), which here is what
//!   becomes of an `anyOf` with `null`, too. Where there is no `anyOf` there is a `type` (E: "must be specified").
//! - Beside `anyOf` stands nothing (E: "it must be the only field set").
//! - Enumerations are for texts (E: "only allowed for STRING type") that are not empty (E: "cannot be empty"); a
//!   `const` text is one of them.
//! - Formats are `enum` and `date-time` of texts (E: "only 'enum' and 'date-time' are supported for STRING type"),
//!   `float` and `double` of numbers, `int32` and `int64` of integers (R).
//! - An object has properties (E: "should be non-empty for OBJECT type"), so one without cannot be said, and a tool
//!   without arguments has no `parameters` at all. What is required is declared (E: "property is not defined").
//! - A list says what it holds (E: "items: missing field").
//!
//! The references give no limits, so ours are those of any schema that is read.

use mcp_model::RawJson;
use serde::Serialize;

use super::ProjectedTool;
use super::profile::{FirstCharacter, NameFormat, ProviderProfile, SchemaDialect};

pub(super) const PROFILE: ProviderProfile = ProviderProfile {
    names: NameFormat { max_bytes: 63, start: FirstCharacter::LetterOrUnderscore },
    keep: &["type", "format", "title", "description", "nullable", "enum", "anyOf"],
    keep_of: &[
        ("object", &["properties", "required", "minProperties", "maxProperties"]),
        ("array", &["items", "minItems", "maxItems"]),
        ("string", &["minLength", "maxLength", "pattern"]),
        ("number", &["minimum", "maximum"]),
        ("integer", &["minimum", "maximum"]),
    ],
    beside_any_of: &["anyOf"],
    formats: &[
        ("string", &["enum", "date-time"]),
        ("number", &["float", "double"]),
        ("integer", &["int32", "int64"]),
    ],
    depth: 32,
    properties: 5_000,
    enum_values: 5_000,
    characters: 256 << 10,
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
