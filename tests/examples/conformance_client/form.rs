//! A form as a hurried user fills it in: what the schema proposes stays, what it demands gets the first thing that fits.

use serde_json::{Map, Value, json};

/// Values for an object schema: each property's default; for those that are required and have none, something that the
/// schema allows.
pub(crate) fn filled(schema: &Value) -> Value {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|it| it.iter().any(|it| it.as_str() == Some(name)))
    };
    let values = properties.iter().filter_map(|(name, property)| {
        let value = match property.get("default") {
            Some(proposed) => proposed.clone(),
            None if required(name) => any(property),
            None => return None,
        };
        Some((name.clone(), value))
    });
    Value::Object(values.collect())
}

/// Something that a property allows.
fn any(property: &Value) -> Value {
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
        Some("object") => filled(property),
        _ => json!("text"),
    }
}
