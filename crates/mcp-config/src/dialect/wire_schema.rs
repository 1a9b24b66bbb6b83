//! The JSON Schema of a serde struct of a file format.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::de::OPTIONAL_MARK;

/// The schema of a serde struct.
pub(crate) fn wire_schema<T: schemars::JsonSchema>() -> Value {
    let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>();
    let mut res = schema.to_value();
    resolve_optional_marks(&mut res);
    res
}

/// Removes the marks of optional fields, and the fields' names from `required`.
pub(crate) fn resolve_optional_marks(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let marked: Vec<String> = match members.get("properties") {
                Some(Value::Object(properties)) => {
                    let marked = properties.iter().filter(|it| it.1.get(OPTIONAL_MARK).is_some());
                    marked.map(|it| it.0.clone()).collect()
                }
                _ => Vec::new(),
            };
            if let Some(Value::Array(required)) = members.get_mut("required") {
                required.retain(|it| !marked.iter().any(|name| it == name));
                if required.is_empty() {
                    members.remove("required");
                }
            }
            members.remove(OPTIONAL_MARK);
            members.values_mut().for_each(resolve_optional_marks);
        }
        Value::Array(items) => items.iter_mut().for_each(resolve_optional_marks),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
