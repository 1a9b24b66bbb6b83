//! Automatic answers to elicitation forms: defaults, and the first valid value for required properties.

use serde_json::{Map, Value, json};

/// Values for an object schema: each property's default; for required properties without one, a value that the schema
/// allows.
pub(crate) fn fill(schema: &Value) -> Value {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let is_required = |name: &str| {
        schema["required"].as_array().is_some_and(|it| it.iter().any(|it| it.as_str() == Some(name)))
    };
    let values = properties.iter().filter_map(|(name, property)| {
        let value = match property.get("default") {
            Some(proposed) => proposed.clone(),
            None if is_required(name) => allowed_value(property),
            None => return None,
        };
        Some((name.clone(), value))
    });
    Value::Object(values.collect())
}

/// A value that a property allows.
fn allowed_value(property: &Value) -> Value {
    if let Some(first) = property["enum"].get(0) {
        return first.clone();
    }
    if let Some(first) = property["oneOf"].get(0).and_then(|it| it.get("const")) {
        return first.clone();
    }
    match property["type"].as_str() {
        Some("boolean") => json!(true),
        Some("integer" | "number") => property.get("minimum").cloned().unwrap_or(json!(2)),
        Some("array") => json!([]),
        Some("object") => fill(property),
        _ => json!("text"),
    }
}
