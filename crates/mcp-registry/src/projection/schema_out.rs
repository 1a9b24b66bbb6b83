//! A rewritten schema.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value};

/// A rewritten schema, ordered by key.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct SchemaOut(pub(super) BTreeMap<String, ValueOut>);

/// The value of a keyword in a rewritten schema.
#[derive(Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum ValueOut {
    Value(Value),
    Schema(SchemaOut),
    List(Vec<SchemaOut>),
    Map(BTreeMap<String, SchemaOut>),
}

impl SchemaOut {
    /// Allows `null`, with OpenAPI's `nullable`.
    pub(super) fn allow_null(&mut self) {
        self.0.insert("nullable".to_owned(), ValueOut::Value(Value::Bool(true)));
    }

    /// Copies title and description of another schema, if it has them.
    pub(super) fn copy_remarks(&mut self, schema: &Map<String, Value>) {
        for it in ["title", "description"] {
            let remark = schema.get(it).map(|text| (it.to_owned(), ValueOut::Value(text.clone())));
            self.0.extend(remark);
        }
    }
}
