//! JSON objects with members in file order, whatever map serde_json uses.

use serde_json::value::RawValue;

/// The members of a JSON object in their order.
pub(crate) struct OrderedMembers<'a>(pub(crate) Vec<(String, &'a RawValue)>);

impl<'de> serde::Deserialize<'de> for OrderedMembers<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = OrderedMembers<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut res = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    res.push(entry);
                }
                Ok(OrderedMembers(res))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}
