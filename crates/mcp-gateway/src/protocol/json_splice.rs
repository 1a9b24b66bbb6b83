//! Changes members of JSON objects without parsing the rest, which keeps its bytes.

use std::borrow::Cow;

use bytes::Bytes;
use mcp_host_model::RawJson;
use memchr::{memchr, memmem};

use crate::protocol::message_writer::json_string;

/// Sets the `name` of a definition, which is added if it is missing.
pub fn with_name(definition: &RawJson, name: &str) -> Bytes {
    let name = json_string(name);
    match member(definition, "name") {
        Some(_) => replace_values(definition, |key, _| (key == "name").then(|| name.clone())).into_bytes(),
        None => with_first(definition, &format!(r#""name":{name}"#)),
    }
}

/// Adds the members of `defaults` that an object does not have; their values are JSON texts. A value that is not an
/// object is returned unchanged.
pub fn with_defaults(object: &RawJson, defaults: &[(&str, &str)]) -> Bytes {
    if !object.is_object() {
        return object.clone().into_bytes();
    }
    // Fast path: most texts do not contain the keys.
    let text = object.as_bytes();
    let may_contain = |text_part: &str| memmem::find(text, text_part.as_bytes()).is_some();
    let existing = match defaults.iter().any(|(key, _)| may_contain(key)) || may_contain("\\u") {
        true => members(object),
        false => Vec::new(),
    };
    let missing = defaults.iter().filter(|(key, _)| existing.iter().all(|(name, _)| name != key));
    let missing: Vec<String> = missing.map(|(key, value)| format!(r#""{key}":{value}"#)).collect();
    match missing.is_empty() {
        true => object.clone().into_bytes(),
        false => with_first(object, &missing.join(",")),
    }
}

/// The members of a JSON object in their order, including repeated ones. Empty for other values.
pub fn members(object: &RawJson) -> Vec<(Cow<'_, str>, RawJson)> {
    object.members().unwrap_or_default()
}

/// The member of this name in a JSON object; the last one if the name is repeated.
pub(crate) fn member(object: &RawJson, name: &str) -> Option<RawJson> {
    members(object).into_iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
}

/// Replaces values of an object's members. `replacement` gets the name and value of each member, including repeated
/// ones, and returns the new JSON text, or `None` to keep the value. A value that is not an object is returned
/// unchanged.
pub fn replace_values(object: &RawJson, replacement: impl Fn(&str, &str) -> Option<String>) -> RawJson {
    let members = members(object);
    let replaced =
        members.iter().filter_map(|(key, value)| Some((value.as_str(), replacement(key, value.as_str())?)));
    replace_slices(object, replaced)
}

/// Replaces parts of a value. `parts` has slices of its text in their order, each one JSON value, and the new JSON text
/// of each.
pub(crate) fn replace_slices<'a>(whole: &RawJson, parts: impl Iterator<Item = (&'a str, String)>) -> RawJson {
    let text = whole.as_str();
    let mut result = String::new();
    let mut copied = 0;
    for (old, new) in parts {
        let start = old.as_ptr() as usize - text.as_ptr() as usize;
        result.reserve(if copied == 0 { text.len() + 80 } else { 0 });
        result.push_str(&text[copied..start]);
        result.push_str(&new);
        copied = start + old.len();
    }
    if copied == 0 {
        return whole.clone();
    }
    result.push_str(&text[copied..]);
    RawJson::parse(result.into()).expect("a value with other parts is JSON")
}

/// Removes the members of these names from an object.
pub fn without_members(object: &RawJson, names: &[&str]) -> RawJson {
    let text = object.as_bytes();
    // Fast path: most texts do not contain the names.
    let may_contain = |name: &&str| memmem::find(text, name.as_bytes()).is_some();
    if !names.iter().any(may_contain) && memchr(b'\\', text).is_none() {
        return object.clone();
    }
    let mut members = members(object);
    let count = members.len();
    members.retain(|(key, _)| !names.contains(&&**key));
    if members.len() == count {
        return object.clone();
    }
    let members: Vec<String> =
        members.iter().map(|(key, value)| format!("{}:{}", json_string(key), value.as_str())).collect();
    RawJson::parse(format!("{{{}}}", members.join(",")).into()).expect("members make an object")
}

/// Inserts the JSON text of a member at the front of an object.
fn with_first(object: &RawJson, member: &str) -> Bytes {
    let rest = &object.as_str()[1..];
    let comma = if rest.trim_ascii_start() == "}" { "" } else { "," };
    format!("{{{member}{comma}{rest}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> RawJson {
        RawJson::parse(text.to_owned().into()).unwrap()
    }

    #[track_caller]
    fn check_named(text: &str, want: &str) {
        assert_eq!(with_name(&json(text), "s__\"t"), want);
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
        assert_eq!(
            without_members(&json(r#"{"k":1,"a": 2,"\u006b":3,"j":4}"#), &["j", "k"]).as_str(),
            r#"{"a":2}"#
        );
        assert_eq!(without_members(&json("{ }"), &["k"]).as_str(), "{ }");
    }
}
