//! The parameters of a message, read once: whoever wants one of them later need not read the others again.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use mcp_model::{RawJson, RpcError, code};
use serde::Deserialize;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Names that need not be copied, for every client writes them.
const KNOWN: [&str; 9] =
    ["name", "arguments", "_meta", "uri", "cursor", "requestState", "inputResponses", "requestId", "level"];

/// Up to how many members are compared with each other one by one.
const FEW: usize = 12;

/// The parameters of a message: a JSON object in which no name stands twice.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Params {
    raw: RawJson,
    members: Vec<(Cow<'static, str>, RawJson)>,
}

impl Params {
    /// None.
    pub(crate) fn none() -> Params {
        Params { raw: RawJson::empty_object(), members: Vec::new() }
    }

    /// Reads an object. Of two members of one name nobody could say which counts.
    pub(crate) fn of(raw: RawJson) -> Result<Params, RpcError> {
        let invalid = |message: &str| RpcError::new(code::INVALID_PARAMS, message);
        let whole = raw.clone().into_bytes();
        let Members(members) = raw.read().map_err(|_| invalid("`params` must be a JSON object"))?;
        let is_twice = match members.len() {
            0..=FEW => {
                members.iter().enumerate().any(|(at, (key, _))| members[..at].iter().any(|it| it.0 == *key))
            }
            many => members.iter().map(|(key, _)| &**key).collect::<HashSet<_>>().len() < many,
        };
        if is_twice {
            return Err(invalid("a member of `params` stands there twice"));
        }
        let members = members.into_iter().map(|(key, it)| (key, RawJson::within(&whole, it))).collect();
        Ok(Params { raw, members })
    }

    /// All of them, as they came.
    pub(crate) fn raw(&self) -> &RawJson {
        &self.raw
    }

    /// The one of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&RawJson> {
        self.members.iter().find(|(key, _)| key == name).map(|(_, it)| it)
    }

    /// The text of this name; `None` where there is none, or something else.
    pub(crate) fn text(&self, name: &str) -> Option<Cow<'_, str>> {
        self.get(name)?.to_text()
    }

    /// Each of them with its name, in the order in which they came.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &RawJson)> {
        self.members.iter().map(|(key, it)| (&**key, it))
    }

    /// Reads them as `T`.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, RpcError> {
        self.raw
            .read()
            .map_err(|it| RpcError::new(code::INVALID_PARAMS, format!("the parameters cannot be read: {it}")))
    }
}

/// The members of an object as they stand there.
struct Members<'a>(Vec<(Cow<'static, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Vec<(Cow<'static, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut res = Vec::with_capacity(4);
                while let Some(key) = map.next_key_seed(Name)? {
                    res.push((key, map.next_value()?));
                }
                Ok(res)
            }
        }
        deserializer.deserialize_map(All).map(Members)
    }
}

/// A member's name.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Cow<'static, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Cow<'static, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        let known = KNOWN.iter().find(|it| **it == name);
        Ok(known.map_or_else(|| Cow::Owned(name.to_owned()), |it| Cow::Borrowed(*it)))
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
        check(r#"{"name":"a","n\u0061me":"b"}"#, "a member of `params` stands there twice");
        let many: Vec<String> = (0..50).map(|it| format!(r#""{it}":{it}"#)).collect();
        let twice = format!("{{{},\"7\":1}}", many.join(","));
        check(&twice, "a member of `params` stands there twice");
        let params = Params::of(RawJson::parse(r#"{"name":"a\n","uri":7}"#.into()).unwrap()).unwrap();
        assert_eq!(params.text("name").as_deref(), Some("a\n"));
        assert_eq!((params.text("uri"), params.get("cursor")), (None, None));
        assert_eq!(params.raw().as_str(), r#"{"name":"a\n","uri":7}"#);
    }
}
