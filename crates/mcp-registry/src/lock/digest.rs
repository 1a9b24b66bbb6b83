//! Hashes of JSON values, independent of member order and white space.
//!
//! The encoding is defined here, because the map order of a library must not change a hash. Members are sorted by
//! key; duplicates of a key both count, since a reader may take either. Strings are compared decoded, numbers as
//! written. Values nested deeper than [`MAX_DEPTH`] are hashed as text.

use std::borrow::Cow;
use std::fmt;

use mcp_host_model::RawJson;
use mcp_host_model::internal::{JsonCursor, JsonSlice};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

/// The maximum depth of values that are encoded. Deeper ones are hashed as text.
const MAX_DEPTH: usize = 32;

/// The prefix of a printed hash.
const PREFIX: &str = "sha256:";

/// The SHA-256 of a value's encoding. Printed as `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, derive_more::Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[debug("{self}")]
pub struct JsonDigest([u8; 32]);

impl JsonDigest {
    /// Hashes a JSON value.
    pub fn of(json: &RawJson) -> JsonDigest {
        let mut res = Vec::with_capacity(json.as_bytes().len() + 32);
        encode(json.as_str(), 0, &mut res);
        JsonDigest::of_encoding(&res)
    }

    /// Hashes a text, as the JSON string with this content.
    pub(crate) fn of_text(text: &str) -> JsonDigest {
        let mut res = Vec::with_capacity(text.len() + 16);
        write_bytes(b's', text.as_bytes(), &mut res);
        JsonDigest::of_encoding(&res)
    }

    /// Hashes members, in any order.
    pub(super) fn of_members(members: &[Member<'_>]) -> JsonDigest {
        let mut res = Vec::new();
        encode_object(members.to_vec(), 0, &mut res);
        JsonDigest::of_encoding(&res)
    }

    /// Hashes two hashes, in order.
    pub(super) fn combine(self, other: JsonDigest) -> JsonDigest {
        JsonDigest::of_encoding(&[b"+".as_slice(), &self.0, &other.0].concat())
    }

    /// Hashes an encoding.
    fn of_encoding(bytes: &[u8]) -> JsonDigest {
        JsonDigest(Sha256::digest(bytes).into())
    }

    /// Parses the printed form. `None` if it is invalid.
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

/// Reads the members of a JSON object in order, duplicates included. `None` for other values.
pub(super) fn read_members(json: &str) -> Option<Vec<Member<'_>>> {
    let (mut cursor, mut members) = (JsonCursor::new(json), Vec::new());
    let read = cursor.read_object(|key, cursor| {
        members.push((key, cursor.skip_value()?));
        Ok(())
    });
    read.and_then(|_| cursor.finish()).ok()?;
    Some(members)
}

/// A member of an object: its decoded key, and its value.
pub(super) type Member<'a> = (Cow<'a, str>, JsonSlice<'a>);

/// Writes the type of a value, its length, and its content.
fn write_bytes(kind: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Writes the type of a value and the number of its parts.
fn write_count(kind: u8, length: usize, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(&(length as u64).to_le_bytes());
}

/// Writes the encoding of a value.
fn encode(json: &str, depth: usize, out: &mut Vec<u8>) {
    let json = json.trim();
    match json.as_bytes().first() {
        _ if depth > MAX_DEPTH => write_bytes(b'r', json.as_bytes(), out),
        Some(b'{') => match read_members(json) {
            Some(members) => encode_object(members, depth, out),
            None => write_bytes(b'r', json.as_bytes(), out),
        },
        Some(b'[') => match serde_json::from_str::<Vec<&RawValue>>(json) {
            Ok(items) => {
                write_count(b'a', items.len(), out);
                items.iter().for_each(|it| encode(it.get(), depth + 1, out));
            }
            Err(_) => write_bytes(b'r', json.as_bytes(), out),
        },
        Some(b'"') => match serde_json::from_str::<String>(json) {
            Ok(text) => write_bytes(b's', text.as_bytes(), out),
            Err(_) => write_bytes(b'r', json.as_bytes(), out),
        },
        Some(_) | None => write_bytes(b'l', json.as_bytes(), out),
    }
}

/// Writes the encoding of an object.
fn encode_object(mut members: Vec<Member<'_>>, depth: usize, out: &mut Vec<u8>) {
    // The sort is stable: duplicates keep their order.
    members.sort_by(|one, other| one.0.cmp(&other.0));
    write_count(b'o', members.len(), out);
    for (key, value) in members {
        write_bytes(b'k', key.as_bytes(), out);
        encode(value.as_str(), depth + 1, out);
    }
}

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
    fn content_changes_the_hash() {
        check_other("[1,2]", "[2,1]");
        check_other("1", "1.0");
        check_other("\"1\"", "1");
        check_other("[[1],2]", "[[1,2]]");
        check_other(r#"{"a":"b"}"#, r#"{"a":{"b":null}}"#);
        check_other("null", "\"null\"");
        check_other("[]", "{}");
        // A reader may take either duplicate.
        check_other(r#"{"a":1,"a":2}"#, r#"{"a":2}"#);
        check_other(r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#);
        check_other(r#"{"a":"x","b":"y"}"#, r#"{"a":"y","b":"x"}"#);
    }

    #[test]
    fn deeply_nested_value_has_a_hash() {
        let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(5_000), "]".repeat(5_000));
        check_same(&deep("1"), &deep("1"));
        check_other(&deep("1"), &deep("2"));
    }

    #[test]
    fn hash_text_round_trips_and_is_stable() {
        let text = digest(r#"{"type":"object"}"#).to_string();
        assert_eq!(text, "sha256:0a2fae70ce0789b8ba8099d4a862a845fb697bb922c0cceffeb2d64944901ec2");
        assert_eq!(JsonDigest::parse(&text), Some(digest(r#"{"type":"object"}"#)));
        for bad in ["", "sha256:", &text[..70], &text.to_uppercase(), &format!("{text}0"), "sha512:00"] {
            assert_eq!(JsonDigest::parse(bad), None, "{bad}");
        }
    }
}
