//! Values that are kept as JSON or ignored.

use std::borrow::Cow;
use std::fmt;

use mcp_host_model::RawJson;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, Visitor};

/// The newtype name of [`RawObject`], by which the deserializer recognizes it and passes the mapping as JSON text.
pub(super) const RAW_OBJECT: &str = "mcp-config::json";

/// A mapping, kept as JSON in file order.
#[derive(Debug)]
pub(crate) struct RawObject(pub(crate) RawJson);

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(RAW_OBJECT, RawObjectVisitor)
    }
}

struct RawObjectVisitor;

impl Visitor<'_> for RawObjectVisitor {
    type Value = RawObject;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<RawObject, E> {
        let bytes = text.as_bytes().to_vec().into();
        RawJson::parse(bytes).map(RawObject).map_err(|_| E::custom("the text is no JSON"))
    }
}

impl JsonSchema for RawObject {
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

/// Any value, ignored.
#[derive(Debug)]
pub(crate) struct Ignored;

impl<'de> Deserialize<'de> for Ignored {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Ignored)
    }
}

impl JsonSchema for Ignored {
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
