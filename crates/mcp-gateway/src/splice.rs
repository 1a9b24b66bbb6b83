//! Members of JSON objects, changed without reading the rest: a definition under another name, a result that says what
//! kind of result it is.
//!
//! Everything else stays the bytes it was.

use std::borrow::Cow;
use std::collections::BTreeSet;

use bytes::Bytes;
use mcp_model::RawJson;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::reply;

/// The definition with this `name`; one that has none gets it.
pub(crate) fn named(definition: &RawJson, name: &str) -> Vec<u8> {
    #[derive(Deserialize)]
    struct Wire<'a> {
        #[serde(borrow)]
        name: Option<&'a RawValue>,
    }
    let text = definition.as_bytes();
    let found = definition.read::<Wire<'_>>().ok().and_then(|it| it.name);
    let name = reply::text(name);
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

/// The result, a JSON object, with those of these members that it lacks. Values are JSON texts.
pub(crate) fn completed(result: &RawJson, members: &[(&str, &str)]) -> Bytes {
    if !result.is_object() {
        return result.clone().into_bytes();
    }
    let text = result.as_bytes();
    // What is nowhere in the text is no key of it either, and that is the common case.
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

/// The members of a JSON object, by name. Empty for anything else.
pub(crate) fn members(object: &RawJson) -> Vec<(String, RawJson)> {
    let whole = object.clone().into_bytes();
    let read: std::collections::BTreeMap<Cow<'_, str>, &RawValue> = object.read().unwrap_or_default();
    read.into_iter().map(|(key, it)| (key.into_owned(), RawJson::within(&whole, it))).collect()
}

fn top_keys(object: &RawJson) -> BTreeSet<String> {
    members(object).into_iter().map(|(key, _)| key).collect()
}

/// Writes the object `text` with `member` before all others.
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
        assert_eq!(String::from_utf8(named(&json(text), "s__\"t")).unwrap(), want);
    }

    #[test]
    fn only_the_name_changes() {
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
        assert_eq!(completed(&json(text), &members), want);
    }

    #[test]
    fn what_is_there_is_left_as_it_is() {
        check_completed("{}", r#"{"resultType":"complete","ttlMs":0}"#);
        check_completed(
            r#"{"a":{"resultType":"x","ttlMs":2}}"#,
            r#"{"resultType":"complete","ttlMs":0,"a":{"resultType":"x","ttlMs":2}}"#,
        );
        check_completed(r#"{"resultType":"input_required"}"#, r#"{"ttlMs":0,"resultType":"input_required"}"#);
        check_completed(r#"{"\u0074tlMs":5}"#, r#"{"resultType":"complete","\u0074tlMs":5}"#);
        check_completed("[1]", "[1]");
    }
}
