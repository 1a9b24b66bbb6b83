//! Canonical JSON for comparing request parameters. No I/O.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// Maximum depth of nesting; deeper values stay unchanged.
const MAX_DEPTH: usize = 64;

/// The largest integer up to which all integers are exact in a float.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// The canonical text of parameters without `_meta`; empty if there are none.
pub(crate) fn params(json: Option<&RawValue>) -> String {
    let Some(json) = json else { return String::new() };
    match parse_members(json) {
        Some(mut members) => {
            members.remove("_meta");
            if members.is_empty() { String::new() } else { canonical_object(members, 1) }
        }
        None => canonical_value(json, 0),
    }
}

/// The members of a JSON object; `None` for other values.
pub(crate) fn parse_members(json: &RawValue) -> Option<BTreeMap<String, &RawValue>> {
    if !json.get().trim_start().starts_with('{') {
        return None;
    }
    serde_json::from_str(json.get()).ok()
}

/// The canonical text of a value.
fn canonical_value(json: &RawValue, depth: usize) -> String {
    let text = json.get().trim();
    if depth > MAX_DEPTH {
        return text.to_owned();
    }
    match text.as_bytes().first() {
        Some(b'{') => parse_members(json).map(|it| canonical_object(it, depth + 1)),
        Some(b'[') => serde_json::from_str::<Vec<&RawValue>>(text).ok().map(|items| {
            let items: Vec<String> = items.into_iter().map(|it| canonical_value(it, depth + 1)).collect();
            format!("[{}]", items.join(","))
        }),
        Some(b'"') => serde_json::from_str::<String>(text).ok().map(|it| quote(&it)),
        Some(b'-' | b'0'..=b'9') => canonical_number(text),
        Some(_) | None => None,
    }
    .unwrap_or_else(|| text.to_owned())
}

/// The canonical text of an object, with sorted members.
fn canonical_object(members: BTreeMap<String, &RawValue>, depth: usize) -> String {
    let members: Vec<String> = members
        .into_iter()
        .map(|(name, it)| format!("{}:{}", quote(&name), canonical_value(it, depth)))
        .collect();
    format!("{{{}}}", members.join(","))
}

/// The canonical text of an integral number, without fraction; `None` for all others, which stay unchanged.
fn canonical_number(text: &str) -> Option<String> {
    if !text.contains(['.', 'e', 'E']) {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    let is_integral = value.fract() == 0.0 && value.abs() < MAX_EXACT_INTEGER;
    // Negative zero is zero.
    is_integral.then(|| format!("{}", if value == 0.0 { 0.0 } else { value }))
}

fn quote(text: &str) -> String {
    serde_json::to_string(text).expect("a string is JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, want: &str) {
        assert_eq!(params(Some(serde_json::from_str(json).unwrap())), want);
    }

    #[test]
    fn equal_values_have_one_text() {
        check(
            r#"{ "b": 1.0, "a": [ "\u0078", {"d":null,"c":true} ] }"#,
            r#"{"a":["x",{"c":true,"d":null}],"b":1}"#,
        );
        check(r#"{"a":1e3,"b":-0.0,"c":0.1}"#, r#"{"a":1000,"b":0,"c":0.1}"#);
        check(r#"{"a":123456789012345678901234567890}"#, r#"{"a":123456789012345678901234567890}"#);
        check(r#"{"name":"x","_meta":{"progressToken":7}}"#, r#"{"name":"x"}"#);
        check(r#"{"_meta":{}}"#, "");
        check("{}", "");
        check("[1, 2]", "[1,2]");
        assert_eq!(params(None), "");
    }

    #[test]
    fn deep_nesting_is_bounded() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(20_000), "]".repeat(20_000));
        assert_eq!(params(Some(serde_json::from_str::<Box<RawValue>>(&deep).unwrap().as_ref())), deep);
    }
}
