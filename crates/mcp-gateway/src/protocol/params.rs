//! The parameters of a message, split into members once.

use std::borrow::Cow;
use std::collections::HashSet;

use bytestring::ByteString;
use mcp_model::{JsonCursor, RawJson, RpcError, code};
use serde::de::DeserializeOwned;

/// Common member names, which are not copied.
const KNOWN: [&str; 9] =
    ["name", "arguments", "_meta", "uri", "cursor", "requestState", "inputResponses", "requestId", "level"];

/// Up to this number of members, names are compared one by one.
const FEW: usize = 12;

/// The parameters of a message: a JSON object without repeated names.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    raw: RawJson,
    members: Vec<(Cow<'static, str>, RawJson)>,
}

impl Params {
    /// No parameters.
    pub(crate) fn none() -> Params {
        Params { raw: RawJson::empty_object(), members: Vec::new() }
    }

    /// Reads the value at the position of `walk` in `whole`. The inner error is for valid JSON that is not a valid
    /// `params`.
    pub(crate) fn walked(
        walk: &mut JsonCursor<'_>,
        whole: &ByteString,
    ) -> Result<Result<Params, RpcError>, serde_json::Error> {
        let invalid = |message: &str| Ok(Err(RpcError::new(code::INVALID_PARAMS, message)));
        if walk.peek_byte() != Some(b'{') {
            return match walk.skip_value()?.as_str() {
                "null" => Ok(Ok(Params::none())),
                _ => invalid("`params` must be a JSON object"),
            };
        }
        let mut members = Vec::with_capacity(4);
        let start = walk.clone();
        let read = walk.read_object(|name, walk| {
            members.push((known(name), RawJson::from_slice(whole, walk.skip_value()?)));
            Ok(())
        });
        let passed = match read {
            Ok(passed) => passed,
            // A name may contain half of a surrogate pair, which only reading it as text detects.
            Err(why) => {
                *walk = start;
                walk.skip_value()?;
                return invalid(&format!("`params` cannot be read: {why}"));
            }
        };
        // A repeated name would be ambiguous.
        let is_twice = match members.len() {
            0..=FEW => {
                members.iter().enumerate().any(|(at, (key, _))| members[..at].iter().any(|it| it.0 == *key))
            }
            many => members.iter().map(|(key, _)| &**key).collect::<HashSet<_>>().len() < many,
        };
        if is_twice {
            return invalid("a member of `params` is repeated");
        }
        Ok(Ok(Params { raw: RawJson::from_slice(whole, passed), members }))
    }

    /// Reads the parameters from a text of their own.
    #[cfg(test)]
    pub(crate) fn of(raw: RawJson) -> Result<Params, RpcError> {
        let whole = ByteString::from(raw.as_str());
        Params::walked(&mut JsonCursor::new(&whole), &whole).expect("it is JSON")
    }

    /// The whole object, unchanged.
    pub fn raw(&self) -> &RawJson {
        &self.raw
    }

    /// The member of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&RawJson> {
        self.members.iter().find(|(key, _)| key == name).map(|(_, it)| it)
    }

    /// The string member of this name.
    pub(crate) fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        self.get(name)?.to_text()
    }

    /// All members in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &RawJson)> {
        self.members.iter().map(|(key, it)| (&**key, it))
    }

    /// Deserializes the object.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, RpcError> {
        self.raw
            .read()
            .map_err(|it| RpcError::new(code::INVALID_PARAMS, format!("the parameters cannot be read: {it}")))
    }
}

/// A member's name, shared if it is a common one.
fn known(name: Cow<'_, str>) -> Cow<'static, str> {
    match KNOWN.iter().find(|it| **it == name) {
        Some(it) => Cow::Borrowed(it),
        None => Cow::Owned(name.into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        let got = match Params::of(RawJson::parse(text.to_owned().into()).unwrap()) {
            Ok(params) => {
                params.iter().map(|(key, it)| format!("{key}={}", it.as_str())).collect::<Vec<_>>().join(" ")
            }
            Err(error) => error.message,
        };
        assert_eq!(got, want, "{text}");
    }

    #[test]
    fn members_are_found_by_what_their_names_mean_and_stand_once() {
        check(
            r#"{"name" : "a","arguments":{ "name":1}, "x":[1]}"#,
            r#"name="a" arguments={ "name":1} x=[1]"#,
        );
        check(r#"{"n\u0061me":"a"}"#, r#"name="a""#);
        check("{}", "");
        check("[1]", "`params` must be a JSON object");
        check(r#"{"name":"a","n\u0061me":"b"}"#, "a member of `params` is repeated");
        let many: Vec<String> = (0..50).map(|it| format!(r#""{it}":{it}"#)).collect();
        let twice = format!("{{{},\"7\":1}}", many.join(","));
        check(&twice, "a member of `params` is repeated");
        let params = Params::of(RawJson::parse(r#"{"name":"a\n","uri":7}"#.into()).unwrap()).unwrap();
        assert_eq!(params.text("name").as_deref(), Some("a\n"));
        assert_eq!((params.text("uri"), params.get("cursor")), (None, None));
        assert_eq!(params.raw().as_str(), r#"{"name":"a\n","uri":7}"#);
    }
}
