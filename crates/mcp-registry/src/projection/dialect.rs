//! Dialect-specific changes to one rewritten schema: OpenAI's closed objects and OpenAPI's unions.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::schema_out::{SchemaOut, ValueOut};
use crate::name::display::quote;

/// Returns the types that a schema names or implies by its properties or values.
pub(super) fn schema_types(schema: &Map<String, Value>) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::Array(types)) => types.iter().filter_map(Value::as_str).collect(),
        Some(only) => only.as_str().into_iter().collect(),
        None if schema.contains_key("properties") => vec!["object"],
        None => {
            let listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
            let mut res: Vec<&str> = listed.chain(schema.get("const")).map(type_of).collect();
            res.sort_unstable();
            res.dedup();
            res
        }
    }
}

/// The type of a value.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(it) if it.is_i64() || it.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns the only type besides `null`; `None` if there is only `null`. Fails if there are several.
fn single_type<'a>(types: &[&'a str]) -> Result<Option<&'a str>, String> {
    let mut others = types.iter().filter(|it| **it != "null");
    match (others.next(), others.next()) {
        (only, None) => Ok(only.copied()),
        (_, Some(_)) => Err("a union of several types cannot be expressed".to_owned()),
    }
}

/// Closes an object, and adds the type of an enumeration. Fails if a property is optional.
pub(super) fn close_object(
    schema: &Map<String, Value>,
    res: &mut SchemaOut,
    depth: usize,
) -> Result<(), String> {
    let types = schema_types(schema);
    single_type(&types)?;
    if !types.is_empty() {
        let type_value = match types.as_slice() {
            [only] => Value::from(*only),
            several => several.iter().copied().collect(),
        };
        res.0.entry("type".to_owned()).or_insert(ValueOut::Value(type_value));
    }
    if !types.contains(&"object") {
        return Ok(());
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    if properties.is_none() && depth > 0 {
        return Err("an object of unknown properties cannot be expressed".to_owned());
    }
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|it| it.iter().any(|it| it == name));
    let mut names: Vec<&String> = properties.into_iter().flat_map(Map::keys).collect();
    names.sort();
    if let Some(name) = names.iter().find(|it| !is_required(it)) {
        return Err(format!("its property {} is optional", quote(name)));
    }
    res.0.entry("properties".to_owned()).or_insert_with(|| ValueOut::Map(BTreeMap::new()));
    res.0.insert("required".to_owned(), ValueOut::Value(names.into_iter().cloned().collect()));
    res.0.insert("additionalProperties".to_owned(), ValueOut::Value(Value::Bool(false)));
    Ok(())
}

/// Writes unions with `null`, constants and enumerations in the way of OpenAPI. Fails if it has none.
pub(super) fn apply_open_api(
    schema: &Map<String, Value>,
    res: &mut SchemaOut,
    depth: usize,
) -> Result<(), String> {
    if schema.contains_key("anyOf") {
        return Ok(());
    }
    let types = schema_types(schema);
    let only = single_type(&types)?.ok_or("`null` alone cannot be expressed")?;
    res.0.insert("type".to_owned(), ValueOut::Value(Value::from(only)));
    if types.contains(&"null") {
        res.allow_null();
    }
    if let Some(values) = enumerated_values(schema, &types) {
        if only != "string" || !values.iter().all(Value::is_string) {
            return Err("an enumeration of values that are not strings cannot be expressed".to_owned());
        }
        if values.iter().any(|it| it == "") {
            return Err("an empty string in an enumeration cannot be expressed".to_owned());
        }
        res.0.insert("enum".to_owned(), ValueOut::Value(Value::Array(values)));
    }
    if only != "object" {
        return Ok(());
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    if depth > 0 && properties.is_none_or(Map::is_empty) {
        return Err("an object of unknown properties cannot be expressed".to_owned());
    }
    if let Some(name) = properties.into_iter().flat_map(Map::keys).find(|it| !is_property_name(it)) {
        return Err(format!("the provider does not accept the property name {}", quote(name)));
    }
    if let Some(ValueOut::Value(Value::Array(required))) = res.0.get_mut("required") {
        let is_declared =
            |it: &Value| it.as_str().is_some_and(|it| properties.is_some_and(|all| all.contains_key(it)));
        required.retain(is_declared);
        if required.is_empty() {
            res.0.remove("required");
        }
    }
    Ok(())
}

/// Returns the values of an enumeration, or the constant; without `null` if `nullable` covers it.
fn enumerated_values(schema: &Map<String, Value>, types: &[&str]) -> Option<Vec<Value>> {
    let mut res = match (schema.get("const"), schema.get("enum")) {
        (Some(constant), _) => vec![constant.clone()],
        (None, Some(Value::Array(values))) => values.clone(),
        (None, Some(_) | None) => return None,
    };
    if types.contains(&"null") {
        res.retain(|it| !it.is_null());
    }
    Some(res)
}

/// Whether Gemini accepts a property name.
fn is_property_name(name: &str) -> bool {
    let is_allowed = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let is_start_allowed = name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
    is_start_allowed && name.len() <= 64 && name.chars().all(is_allowed)
}
