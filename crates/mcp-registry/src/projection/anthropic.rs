//! Anthropic's tools: nearly any JSON Schema of draft 2020-12, sent unchanged.
//!
//! The rules, each with the error of the Messages API for a tool that violates it. The error fails the whole
//! request.
//!
//! - A name is 1 to 128 characters of `[a-zA-Z0-9_-]` ("tools.0.custom.name: String should match pattern").
//! - The root has the `type` `object` (API reference of `input_schema`) and no `oneOf`, `anyOf` or `allOf`
//!   ("input_schema does not support oneOf, allOf, or anyOf at the top level"). Nested schemas may have them.
//! - The name of a property of the root is 1 to 64 characters of `[a-zA-Z0-9_.-]` ("Property keys should match
//!   pattern"). Nested properties may have any name.
//! - The schema is valid in draft 2020-12 ("JSON schema is invalid. It must match JSON Schema draft 2020-12"), so
//!   `items` is not an array.

use mcp_host_model::RawJson;
use serde::Serialize;
use serde_json::Value;

use super::profile::{FirstCharacter, NameFormat};
use super::projected_tool::ProjectedTool;
use super::rewrite::INVALID_SCHEMA;
use crate::name::display::quote;

pub(super) const NAME_FORMAT: NameFormat = NameFormat { max_bytes: 128, start: FirstCharacter::Any };

/// Checks a schema. Fails with the reason why the provider does not accept it.
pub(super) fn check_schema(schema: &Value) -> Result<(), String> {
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("the root's `type` is not `object`".to_owned());
    }
    if let Some(keyword) = ["oneOf", "anyOf", "allOf"].into_iter().find(|it| schema.get(it).is_some()) {
        return Err(format!("the root has `{keyword}`"));
    }
    let is_allowed = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '.' | '-');
    let is_invalid = |it: &&String| !((1..=64).contains(&it.len()) && it.chars().all(is_allowed));
    if let Some(name) =
        schema.get("properties").and_then(Value::as_object).and_then(|it| it.keys().find(is_invalid))
    {
        return Err(format!("the provider does not accept the property name {}", quote(name)));
    }
    if !jsonschema::draft202012::meta::is_valid(schema) {
        return Err(INVALID_SCHEMA.to_owned());
    }
    Ok(())
}

/// A tool of the Messages API.
#[derive(Serialize)]
pub(super) struct ToolJson<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a RawJson>,
    input_schema: Option<&'a RawJson>,
}

impl<'a> ToolJson<'a> {
    pub(super) fn new(tool: &'a ProjectedTool) -> ToolJson<'a> {
        ToolJson {
            name: tool.name.as_str(),
            description: tool.description.as_ref(),
            input_schema: tool.schema.as_ref(),
        }
    }
}
