//! The hash of a JSON value, whatever the order of its members and the blanks between them.
//!
//! The encoding is our own, for no library's idea of a map's order may move a hash. Members are sorted by key; a key that
//! stands twice counts twice, since a reader may take either. Texts are compared by what they say, not by how they are
//! escaped; numbers by how they are written. What is nested deeper than anybody nests a schema is taken as it stands.

use std::borrow::Cow;
use std::fmt;

use mcp_model::RawJson;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

/// How deep it is looked.
const MAX_DEPTH: usize = 32;

/// How a hash begins when it is written.
const PREFIX: &str = "sha256:";

/// A SHA-256 over the encoding of a value. Written `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JsonDigest([u8; 32]);

impl JsonDigest {
    /// The hash of a JSON value.
    pub fn of(json: &RawJson) -> JsonDigest {
        let mut res = Vec::with_capacity(json.as_bytes().len() + 32);
        encode(json.as_str(), 0, &mut res);
        JsonDigest::of_encoding(&res)
    }

    /// The hash of a text, which is that of the JSON string.
    pub fn of_text(text: &str) -> JsonDigest {
        let mut res = Vec::with_capacity(text.len() + 16);
        put(b's', text.as_bytes(), &mut res);
        JsonDigest::of_encoding(&res)
    }

    /// The hash of several members, each a key with its value; sorted here.
    pub(super) fn of_members(members: &[(Cow<'_, str>, &RawValue)]) -> JsonDigest {
        let mut res = Vec::new();
        object(members.to_vec(), 0, &mut res);
        JsonDigest::of_encoding(&res)
    }

    /// The hash of several hashes, in their order.
    pub(super) fn combine(self, other: JsonDigest) -> JsonDigest {
        JsonDigest::of_encoding(&[b"+".as_slice(), &self.0, &other.0].concat())
    }

    fn of_encoding(bytes: &[u8]) -> JsonDigest {
        JsonDigest(Sha256::digest(bytes).into())
    }

    /// The reverse of `Display`. `None` where it is no such text.
    pub fn parse(text: &str) -> Option<JsonDigest> {
        let digits = text.strip_prefix(PREFIX)?.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let digit = |it: u8| match it {
            b'0'..=b'9' => Some(it - b'0'),
            b'a'..=b'f' => Some(it - b'a' + 10),
            _ => None,
        };
        let mut res = [0; 32];
        for (byte, pair) in res.iter_mut().zip(digits.chunks(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(JsonDigest(res))
    }
}

impl fmt::Display for JsonDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|it| write!(f, "{it:02x}"))
    }
}

impl fmt::Debug for JsonDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The members of a JSON object in their order, one that stands there twice as well. `None` for anything else.
pub(super) fn members(json: &str) -> Option<Vec<(Cow<'_, str>, &RawValue)>> {
    serde_json::from_str::<Members<'_>>(json).ok().map(|it| it.0)
}

/// The kind of a value, its length, and what it holds.
fn put(kind: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn count(kind: u8, length: usize, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(&(length as u64).to_le_bytes());
}

fn encode(json: &str, depth: usize, out: &mut Vec<u8>) {
    let json = json.trim();
    match json.as_bytes().first() {
        _ if depth > MAX_DEPTH => put(b'r', json.as_bytes(), out),
        Some(b'{') => match members(json) {
            Some(members) => object(members, depth, out),
            None => put(b'r', json.as_bytes(), out),
        },
        Some(b'[') => match serde_json::from_str::<Vec<&RawValue>>(json) {
            Ok(items) => {
                count(b'a', items.len(), out);
                items.iter().for_each(|it| encode(it.get(), depth + 1, out));
            }
            Err(_) => put(b'r', json.as_bytes(), out),
        },
        Some(b'"') => match serde_json::from_str::<String>(json) {
            Ok(text) => put(b's', text.as_bytes(), out),
            Err(_) => put(b'r', json.as_bytes(), out),
        },
        Some(_) | None => put(b'l', json.as_bytes(), out),
    }
}

fn object(mut members: Vec<(Cow<'_, str>, &RawValue)>, depth: usize, out: &mut Vec<u8>) {
    // Stable: of two with one key the first stays first.
    members.sort_by(|one, other| one.0.cmp(&other.0));
    count(b'o', members.len(), out);
    for (key, value) in members {
        put(b'k', key.as_bytes(), out);
        encode(value.get(), depth + 1, out);
    }
}

struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut res = Vec::new();
                while let Some(member) = map.next_entry::<Key<'de>, &'de RawValue>()? {
                    res.push((member.0.0, member.1));
                }
                Ok(res)
            }
        }
        deserializer.deserialize_map(Visitor).map(Members)
    }
}

/// A key, borrowed where it has no escapes.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> JsonDigest {
        JsonDigest::of(&RawJson::parse(text.to_owned().into()).unwrap())
    }

    #[track_caller]
    fn check_same(one: &str, other: &str) {
        assert_eq!(digest(one), digest(other), "{one} {other}");
    }

    #[track_caller]
    fn check_other(one: &str, other: &str) {
        assert_ne!(digest(one), digest(other), "{one} {other}");
    }

    #[test]
    fn order_blanks_and_escapes_do_not_matter() {
        check_same(r#"{"a":1,"b":[true,null]}"#, "{ \"b\" : [ true , null ],\n\"a\":1}");
        check_same(r#""\u0061\n""#, "\"a\\u000a\"");
        check_same(r#"{"\u0061":1}"#, r#"{"a":1}"#);
        assert_eq!(digest("\"x\""), JsonDigest::of_text("x"));
    }

    #[test]
    fn what_is_said_does() {
        check_other("[1,2]", "[2,1]");
        check_other("1", "1.0");
        check_other("\"1\"", "1");
        check_other("[[1],2]", "[[1,2]]");
        check_other(r#"{"a":"b"}"#, r#"{"a":{"b":null}}"#);
        check_other("null", "\"null\"");
        check_other("[]", "{}");
        // A reader may take either of two.
        check_other(r#"{"a":1,"a":2}"#, r#"{"a":2}"#);
        check_other(r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#);
        check_other(r#"{"a":"x","b":"y"}"#, r#"{"a":"y","b":"x"}"#);
    }

    #[test]
    fn what_is_nested_without_end_has_a_hash_too() {
        let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(5_000), "]".repeat(5_000));
        check_same(&deep("1"), &deep("1"));
        check_other(&deep("1"), &deep("2"));
    }

    #[test]
    fn a_hash_is_read_back_and_never_moves() {
        let text = digest(r#"{"type":"object"}"#).to_string();
        assert_eq!(text, "sha256:0a2fae70ce0789b8ba8099d4a862a845fb697bb922c0cceffeb2d64944901ec2");
        assert_eq!(JsonDigest::parse(&text), Some(digest(r#"{"type":"object"}"#)));
        for bad in ["", "sha256:", &text[..70], &text.to_uppercase(), &format!("{text}0"), "sha512:00"] {
            assert_eq!(JsonDigest::parse(bad), None, "{bad}");
        }
    }
}
