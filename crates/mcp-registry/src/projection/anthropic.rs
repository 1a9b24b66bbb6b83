//! Anthropic's tools: nearly any JSON Schema of draft 2020-12, sent as it is.
//!
//! Its API refuses a name that does not match `^[a-zA-Z0-9_-]{1,128}$`, a root whose `type` is not `object` or that has
//! `oneOf`, `anyOf` or `allOf`, a property of the root whose name does not match `^[a-zA-Z0-9_.-]{1,64}$`, and a schema
//! that its draft's own schema refuses, such as one with a list under `items`.

use serde_json::Value;

use super::profile::{Names, Start};
use crate::quote::quote;

pub(super) const NAMES: Names = Names { longest: 128, start: Start::Any };

pub(super) fn check(schema: &Value) -> Result<(), String> {
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("the root's `type` is not `object`".to_owned());
    }
    if let Some(keyword) = ["oneOf", "anyOf", "allOf"].into_iter().find(|it| schema.get(it).is_some()) {
        return Err(format!("the root has `{keyword}`"));
    }
    let kept = |it: char| it.is_ascii_alphanumeric() || matches!(it, '_' | '.' | '-');
    let named = |it: &&String| !((1..=64).contains(&it.len()) && it.chars().all(kept));
    if let Some(name) =
        schema.get("properties").and_then(Value::as_object).and_then(|it| it.keys().find(named))
    {
        return Err(format!("the property name {} is not one the provider takes", quote(name)));
    }
    if !jsonschema::draft202012::meta::is_valid(schema) {
        return Err("its schema is none of draft 2020-12".to_owned());
    }
    Ok(())
}
