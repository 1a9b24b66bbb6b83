//! Changes members of JSON objects without parsing the rest, which keeps its bytes.

use std::borrow::Cow;
use std::collections::BTreeSet;

use bytes::Bytes;
use mcp_model::RawJson;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::protocol::response;

/// The definition with another `name`, which is added if it is missing.
pub fn with_name(definition: &RawJson, name: &str) -> Vec<u8> {
    #[derive(Deserialize)]
    struct RawDefinition<'a> {
        #[serde(borrow)]
        name: Option<&'a RawValue>,
    }
    let text = definition.as_bytes();
    let found = definition.read::<RawDefinition<'_>>().ok().and_then(|it| it.name);
    let name = response::text(name);
    let mut res = Vec::with_capacity(text.len() + name.len() + 10);
    match found {
        Some(found) => {
            let start = found.get().as_ptr() as usize - text.as_ptr() as usize;
            res.extend_from_slice(&text[..start]);
            res.extend_from_slice(name.as_bytes());
            res.extend_from_slice(&text[start + found.get().len()..]);
        }
        None => with_first(&mut res, text, &format!(r#""name":{name}"#)),
    }
    res
}

/// The object with these members added where they are missing. Values are JSON texts.
pub fn with_defaults(result: &RawJson, members: &[(&str, &str)]) -> Bytes {
    if !result.is_object() {
        return result.clone().into_bytes();
    }
    let text = result.as_bytes();
    // Fast path: most texts do not contain the keys.
    let maybe = |key: &str| memchr::memmem::find(text, key.as_bytes()).is_some();
    let keys = match members.iter().any(|(key, _)| maybe(key)) || memchr::memmem::find(text, b"\\u").is_some()
    {
        true => top_keys(result),
        false => BTreeSet::new(),
    };
    let missing: Vec<String> = members
        .iter()
        .filter(|(key, _)| !keys.contains(*key))
        .map(|(key, value)| format!(r#""{key}":{value}"#))
        .collect();
    if missing.is_empty() {
        return result.clone().into_bytes();
    }
    let mut res = Vec::with_capacity(text.len() + 80);
    with_first(&mut res, text, &missing.join(","));
    res.into()
}

/// The members of a JSON object, sorted by name. Empty for other values.
pub fn members(object: &RawJson) -> Vec<(String, RawJson)> {
    let read: std::collections::BTreeMap<Cow<'_, str>, &RawValue> = object.read().unwrap_or_default();
    read.into_iter().map(|(key, it)| (key.into_owned(), object.slice(it))).collect()
}

/// The members of a JSON object in their order, including repeated ones. `None` for other values.
pub(crate) fn ordered_members(object: &RawJson) -> Option<Vec<(String, RawJson)>> {
    let Ordered(members) = object.read().ok()?;
    Some(members.into_iter().map(|(key, it)| (key, object.slice(it))).collect())
}

/// The object with replaced values. `with` gets the name and value of each member, including repeated ones, and
/// returns the new JSON text or `None`. Other values are returned unchanged.
pub fn replace_values(object: &RawJson, with: impl Fn(&str, &str) -> Option<String>) -> RawJson {
    let Ok(Ordered(members)) = object.read() else { return object.clone() };
    let text = object.as_str();
    let mut res = String::with_capacity(text.len() + 80);
    let mut done = 0;
    for (key, value) in members {
        let Some(other) = with(&key, value.get()) else { continue };
        let start = value.get().as_ptr() as usize - text.as_ptr() as usize;
        res.push_str(&text[done..start]);
        res.push_str(&other);
        done = start + value.get().len();
    }
    if done == 0 {
        return object.clone();
    }
    res.push_str(&text[done..]);
    RawJson::parse(res.into()).expect("a value in the place of another one leaves JSON")
}

/// The object without the members of this name.
pub fn without_member(object: &RawJson, name: &str) -> RawJson {
    let text = object.as_bytes();
    // Fast path: most texts do not contain the name.
    if memchr::memmem::find(text, name.as_bytes()).is_none() && memchr::memchr(b'\\', text).is_none() {
        return object.clone();
    }
    let Some(members) = ordered_members(object) else { return object.clone() };
    if members.iter().all(|(key, _)| key != name) {
        return object.clone();
    }
    let left = members.iter().filter(|(key, _)| key != name);
    let left: Vec<String> =
        left.map(|(key, it)| format!("{}:{}", response::text(key), it.as_str())).collect();
    RawJson::parse(format!("{{{}}}", left.join(",")).into()).expect("members make an object")
}

struct Ordered<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Ordered<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut res = Vec::new();
                while let Some(member) = map.next_entry()? {
                    res.push(member);
                }
                Ok(res)
            }
        }
        deserializer.deserialize_map(Members).map(Ordered)
    }
}

fn top_keys(object: &RawJson) -> BTreeSet<String> {
    members(object).into_iter().map(|(key, _)| key).collect()
}

/// Writes the object `text` with `member` inserted at the front.
fn with_first(res: &mut Vec<u8>, text: &[u8], member: &str) {
    res.push(b'{');
    res.extend_from_slice(member.as_bytes());
    let rest = &text[1..];
    if rest.iter().find(|it| !it.is_ascii_whitespace()) != Some(&b'}') {
        res.push(b',');
    }
    res.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> RawJson {
        RawJson::parse(text.to_owned().into()).unwrap()
    }

    #[track_caller]
    fn check_named(text: &str, want: &str) {
        assert_eq!(String::from_utf8(with_name(&json(text), "s__\"t")).unwrap(), want);
    }

    #[test]
    fn with_name_changes_only_the_name() {
        check_named(
            r#"{"x":{"name":"no"}, "name" : "t","inputSchema":{"name":1}}"#,
            r#"{"x":{"name":"no"}, "name" : "s__\"t","inputSchema":{"name":1}}"#,
        );
        check_named("{}", r#"{"name":"s__\"t"}"#);
        check_named(r#"{"uri":"f:x"}"#, r#"{"name":"s__\"t","uri":"f:x"}"#);
    }

    #[track_caller]
    fn check_completed(text: &str, want: &str) {
        let members = [("resultType", r#""complete""#), ("ttlMs", "0")];
        assert_eq!(with_defaults(&json(text), &members), want);
    }

    #[test]
    fn with_defaults_keeps_existing_members() {
        check_completed("{}", r#"{"resultType":"complete","ttlMs":0}"#);
        check_completed(
            r#"{"a":{"resultType":"x","ttlMs":2}}"#,
            r#"{"resultType":"complete","ttlMs":0,"a":{"resultType":"x","ttlMs":2}}"#,
        );
        check_completed(r#"{"resultType":"input_required"}"#, r#"{"ttlMs":0,"resultType":"input_required"}"#);
        check_completed(r#"{"\u0074tlMs":5}"#, r#"{"resultType":"complete","\u0074tlMs":5}"#);
        check_completed("[1]", "[1]");
    }

    #[test]
    fn repeated_and_escaped_members_are_found() {
        let with = |key: &str, value: &str| (key == "k" && value != "0").then(|| "0".to_owned());
        for (text, want) in [
            (r#"{ "k" : 1,"x":{"k":1},"\u006b":[2] }"#, r#"{ "k" : 0,"x":{"k":1},"\u006b":0 }"#),
            (r#"{"k":0}"#, r#"{"k":0}"#),
            ("[1]", "[1]"),
        ] {
            assert_eq!(replace_values(&json(text), with).as_str(), want);
        }
        assert_eq!(without_member(&json(r#"{"k":1,"a": 2,"\u006b":3}"#), "k").as_str(), r#"{"a":2}"#);
        assert_eq!(without_member(&json("{ }"), "k").as_str(), "{ }");
    }
}
