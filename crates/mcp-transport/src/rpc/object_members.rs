//! Reads the members of a JSON object in order, values as JSON text.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::rpc::frame;

/// A member's name, borrowed if it contains no escape.
#[derive(serde::Deserialize)]
pub(crate) struct MemberName<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// The members of an object in order, each with its value as JSON text.
pub(crate) struct ObjectMembers<'a>(pub(crate) Vec<(MemberName<'a>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for ObjectMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ObjectMembers<'a>, D::Error> {
        struct MembersVisitor;
        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Vec<(MemberName<'de>, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(MembersVisitor).map(ObjectMembers)
    }
}

/// Appends a member to members without braces. `value` is JSON text.
pub(crate) fn push_member(into: &mut String, name: &str, value: &str) {
    if !into.is_empty() {
        into.push(',');
    }
    into.push_str(&frame::json_string(name));
    into.push(':');
    into.push_str(value);
}
