//! The parameters of a message, split into members once.

use std::borrow::Cow;
use std::collections::HashSet;

use bytestring::ByteString;
use mcp_host_model::internal::JsonCursor;
use mcp_host_model::{RawJson, RpcError, code};
use serde::de::DeserializeOwned;

use crate::protocol::meta::RequestMeta;

/// Common member names. They are interned, to save a copy.
const COMMON_NAMES: [&str; 9] =
    ["name", "arguments", "_meta", "uri", "cursor", "requestState", "inputResponses", "requestId", "level"];

/// Up to this number of members, duplicates are found by comparing all pairs of names, which is faster than a hash set.
const MAX_PAIRWISE_MEMBERS: usize = 12;

/// The parameters of a message: a JSON object without repeated names.
#[derive(Debug, Clone, PartialEq)]
pub struct MessageParams {
    raw: RawJson,
    members: Vec<(Cow<'static, str>, RawJson)>,
    meta: RequestMeta,
    /// The string member `name`, which several steps of a request need.
    name: Option<ByteString>,
}

impl MessageParams {
    /// No parameters.
    pub(crate) fn empty() -> MessageParams {
        let (raw, meta) = (RawJson::empty_object(), RequestMeta::default());
        MessageParams { raw, members: Vec::new(), meta, name: None }
    }

    /// Reads the value at the position of `cursor` in `text`. The outer error is for invalid JSON, the inner one for
    /// JSON that is not a valid `params`.
    pub(crate) fn read_at(
        cursor: &mut JsonCursor<'_>,
        text: &ByteString,
    ) -> serde_json::Result<Result<MessageParams, RpcError>> {
        let invalid = |message: &str| Ok(Err(RpcError::new(code::INVALID_PARAMS, message)));
        if cursor.peek_byte() != Some(b'{') {
            return match cursor.skip_value()?.as_str() {
                "null" => Ok(Ok(MessageParams::empty())),
                _ => invalid("`params` must be a JSON object"),
            };
        }
        let mut members = Vec::with_capacity(4);
        let mut meta = RequestMeta::default();
        let mut item_name = None;
        let object = cursor.read_object(|name, cursor| {
            let value;
            if name == "_meta" {
                (value, meta) = RequestMeta::read_at(cursor, text)?;
            } else {
                value = cursor.skip_value()?;
                if name == "name" {
                    item_name = value.to_text().map(|name| match name {
                        Cow::Borrowed(name) => text.slice_ref(name),
                        Cow::Owned(name) => name.into(),
                    });
                }
            }
            members.push((intern_name(name), RawJson::from_slice(text, value)));
            Ok(())
        })?;
        // A repeated name would be ambiguous.
        let names = || members.iter().map(|(name, _)| &**name);
        let has_repeated = match members.len() {
            0..=MAX_PAIRWISE_MEMBERS => {
                names().enumerate().any(|(at, name)| names().take(at).any(|other| other == name))
            }
            count => names().collect::<HashSet<_>>().len() < count,
        };
        if has_repeated {
            return invalid("`params` has a duplicate key");
        }
        Ok(Ok(MessageParams { raw: RawJson::from_slice(text, object), members, meta, name: item_name }))
    }

    /// Parses the parameters from a text that contains only them.
    pub(crate) fn parse(raw: RawJson) -> Result<MessageParams, RpcError> {
        let text = ByteString::from(raw.as_str());
        MessageParams::read_at(&mut JsonCursor::new(&text), &text).expect("the text is JSON")
    }

    /// The whole object, unchanged.
    pub fn raw(&self) -> &RawJson {
        &self.raw
    }

    /// The member `_meta`.
    pub fn meta(&self) -> &RequestMeta {
        &self.meta
    }

    /// The member of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&RawJson> {
        self.members.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// The string member `name`: the tool or prompt of a request.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The string member of this name.
    pub(crate) fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        if name == "name" {
            return self.name().map(Cow::Borrowed);
        }
        self.get(name)?.to_text()
    }

    /// All members in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &RawJson)> {
        self.members.iter().map(|(key, value)| (&**key, value))
    }

    /// Deserializes the object.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, RpcError> {
        self.raw.read().map_err(|error| {
            RpcError::new(code::INVALID_PARAMS, format!("the parameters are invalid: {error}"))
        })
    }
}

/// Returns the static copy of a common name, or an owned one.
fn intern_name(name: Cow<'_, str>) -> Cow<'static, str> {
    match COMMON_NAMES.iter().find(|common| **common == name) {
        Some(common) => Cow::Borrowed(common),
        None => Cow::Owned(name.into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: &str) {
        let got = match MessageParams::parse(RawJson::parse(text.to_owned().into()).unwrap()) {
            Ok(params) => params
                .iter()
                .map(|(key, value)| format!("{key}={}", value.as_str()))
                .collect::<Vec<_>>()
                .join(" "),
            Err(error) => error.message,
        };
        assert_eq!(got, want, "{text}");
    }

    #[test]
    fn member_names_are_unescaped_and_unique() {
        check(
            r#"{"name" : "a","arguments":{ "name":1}, "x":[1]}"#,
            r#"name="a" arguments={ "name":1} x=[1]"#,
        );
        check(r#"{"n\u0061me":"a"}"#, r#"name="a""#);
        check("{}", "");
        check("[1]", "`params` must be a JSON object");
        check(r#"{"name":"a","n\u0061me":"b"}"#, "`params` has a duplicate key");
        let many: Vec<String> = (0..50).map(|number| format!(r#""{number}":{number}"#)).collect();
        let repeated = format!("{{{},\"7\":1}}", many.join(","));
        check(&repeated, "`params` has a duplicate key");
        let params =
            MessageParams::parse(RawJson::parse(r#"{"name":"a\n","uri":7}"#.into()).unwrap()).unwrap();
        assert_eq!(params.text("name").as_deref(), Some("a\n"));
        assert_eq!((params.text("uri"), params.get("cursor")), (None, None));
        assert_eq!(params.raw().as_str(), r#"{"name":"a\n","uri":7}"#);
    }
}
