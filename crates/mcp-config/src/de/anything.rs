//! Values whose inside is none of our business: kept as JSON, or not looked at.

use std::borrow::Cow;
use std::fmt;

use mcp_model::RawJson;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// The newtype name of [`Json`].
pub(super) const JSON: &str = "mcp-config::json";
/// The newtype name of [`Anything`].
pub(super) const ANYTHING: &str = "mcp-config::anything";

/// A mapping, kept as JSON in the order of the file.
#[derive(Debug)]
pub(crate) struct Json(pub(crate) RawJson);

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(JSON, JsonVisitor)
    }
}

struct JsonVisitor;

impl Visitor<'_> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Json, E> {
        let bytes = text.as_bytes().to_vec().into();
        RawJson::parse(bytes).map(Json).map_err(|_| E::custom("the text is no JSON"))
    }
}

impl JsonSchema for Json {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}

/// Whatever it is, it is not for us.
#[derive(Debug)]
pub(crate) struct Anything;

impl<'de> Deserialize<'de> for Anything {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(ANYTHING, AnythingVisitor)
    }
}

struct AnythingVisitor;

impl Visitor<'_> for AnythingVisitor {
    type Value = Anything;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_unit<E: Error>(self) -> Result<Anything, E> {
        Ok(Anything)
    }
}

impl JsonSchema for Anything {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Anything".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Schema::default()
    }
}
