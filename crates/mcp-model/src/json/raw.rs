//! JSON that is carried, not understood.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use bytestring::ByteString;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json::cursor::JsonSlice;
use crate::json::unescape::unescape;

/// One complete JSON value as the text it arrived in: a slice of a shared buffer.
///
/// Invariant: valid JSON, one value, no white space around it. A schema, an argument object or a structured result passes
/// from a server to a caller as this, so that it is neither copied nor reordered.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawJson(ByteString);

impl RawJson {
    /// Checks that `bytes` hold exactly one JSON value. Fails with serde_json's own message, which may quote
    /// nothing but positions and token kinds.
    pub fn parse(bytes: Bytes) -> Result<RawJson, serde_json::Error> {
        let whole = text(bytes)?;
        serde_json::from_str::<IgnoredAny>(&whole)?;
        let inner = whole.trim_matches(|it: char| it.is_ascii_whitespace());
        Ok(RawJson(whole.slice_ref(inner)))
    }

    /// The value at the beginning of `bytes`. What stands behind it is not looked at. Fails as [`RawJson::parse`] does.
    pub fn parse_prefix(bytes: Bytes) -> Result<RawJson, serde_json::Error> {
        let whole = match ByteString::try_from(bytes.clone()) {
            Ok(whole) => whole,
            Err(why) => text(bytes.slice(..why.valid_up_to()))?,
        };
        let value = <&RawValue>::deserialize(&mut serde_json::Deserializer::from_str(&whole))?.get();
        Ok(RawJson(whole.slice_ref(value)))
    }

    /// The value that serde_json found inside this one, as a slice of it: no copy, no second check.
    ///
    /// A `value` that does not point into it is copied.
    pub fn slice(&self, value: &RawValue) -> RawJson {
        RawJson::slice_at(&self.0, self.0.as_ptr(), value.get())
    }

    /// What a walk over `whole` has passed over, as a slice of it. What was passed over elsewhere is copied.
    pub fn from_slice(whole: &ByteString, passed: JsonSlice<'_>) -> RawJson {
        RawJson::from_valid(RawJson::slice_at(whole, whole.as_ptr(), passed.as_str()).0)
    }

    /// What stands here where `value` stands in `text`, of which this is a copy. A `value` that is not in it is copied.
    pub(crate) fn slice_by_offset(&self, text: &str, value: &RawValue) -> RawJson {
        RawJson::slice_at(&self.0, text.as_ptr(), value.get())
    }

    /// The part of `whole` that is as far from its beginning as `json` is from `start`; a copy where there is none.
    fn slice_at(whole: &ByteString, start: *const u8, json: &str) -> RawJson {
        let start = (json.as_ptr() as usize).wrapping_sub(start as usize);
        let part = start.checked_add(json.len()).and_then(|end| whole.get(start..end));
        RawJson(part.map_or_else(|| ByteString::from(json), |it| whole.slice_ref(it)))
    }

    /// What is known to be one JSON value.
    pub(crate) fn from_valid(text: ByteString) -> RawJson {
        debug_assert!(serde_json::from_str::<IgnoredAny>(&text).is_ok());
        RawJson(text)
    }

    /// A copy of a value that serde_json found.
    pub fn copy_of(value: &RawValue) -> RawJson {
        RawJson(value.get().into())
    }

    /// The value as JSON. Fails only where `value`'s own `Serialize` does (a map whose keys are no strings).
    pub fn from_value(value: &impl Serialize) -> Result<RawJson, serde_json::Error> {
        Ok(RawJson(serde_json::to_string(value)?.into()))
    }

    /// The value `{}`.
    pub fn empty_object() -> RawJson {
        RawJson(ByteString::from_static("{}"))
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The JSON text's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// The shared buffer.
    pub fn into_bytes(self) -> Bytes {
        self.0.into_bytes()
    }

    /// Reads the value as `T`.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// The text of a JSON string, `None` for any other value.
    pub fn to_text(&self) -> Option<Cow<'_, str>> {
        string_text(self.as_str())
    }

    /// Is the value a JSON object?
    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }
}

/// Skipping a string does not look at its bytes, and what is no UTF-8 is no JSON.
fn text(bytes: Bytes) -> Result<ByteString, serde_json::Error> {
    ByteString::try_from(bytes).map_err(serde::de::Error::custom)
}

/// The text of a JSON string, `None` for the text of any other value.
pub(crate) fn string_text(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    match inner.contains('\\') {
        true => unescape(json).map(Cow::Owned),
        false => Some(Cow::Borrowed(inner)),
    }
}

impl AsRef<[u8]> for RawJson {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // `RawValue` borrowed from the text: serde_json writes it through byte for byte.
        serde_json::from_str::<&RawValue>(self.as_str())
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, want: Option<&str>) {
        let got = RawJson::parse(Bytes::copy_from_slice(text.as_bytes())).ok();
        assert_eq!(got.as_ref().map(RawJson::as_str), want, "{text:?}");
    }

    #[test]
    fn one_whole_value_without_the_space_around_it() {
        check(" {\"b\" : 1, \"a\":[]} \n", Some("{\"b\" : 1, \"a\":[]}"));
        check("null", Some("null"));
        check("1 2", None);
        check("{", None);
        check("", None);
        check("\"\u{e9}\"", Some("\"\u{e9}\""));
        assert!(RawJson::parse(Bytes::from_static(b"{\"a\":\"\xff\"}")).is_err());
    }

    #[test]
    fn a_slice_shares_its_buffer_and_a_stranger_is_copied() {
        let whole = Bytes::from_static(b"{\"schema\": {\"type\":\"object\"} }");
        #[derive(Deserialize)]
        struct Wire<'a> {
            #[serde(borrow)]
            schema: &'a RawValue,
        }
        let raw = RawJson::parse(whole.clone()).unwrap();
        let wire: Wire<'_> = raw.read().unwrap();
        let slice = raw.slice(wire.schema);
        assert_eq!(slice.as_str(), "{\"type\":\"object\"}");
        assert_eq!(slice.as_bytes().as_ptr(), whole[11..].as_ptr());
        let other: &RawValue = serde_json::from_str("true").unwrap();
        assert_eq!(raw.slice(other).as_str(), "true");
        let leading = RawJson::parse_prefix(whole.slice(10..)).unwrap();
        assert_eq!((leading.as_str(), leading.as_bytes().as_ptr()), (slice.as_str(), whole[11..].as_ptr()));
        assert_eq!(RawJson::parse_prefix(Bytes::from_static(b"[1] \xff")).unwrap().as_str(), "[1]");
        assert!(RawJson::parse_prefix(Bytes::from_static(b"[\"\xff\"]")).is_err());
    }

    #[test]
    fn text_is_read_out_of_strings_only() {
        let read = |text: &'static str| {
            RawJson::parse(Bytes::from_static(text.as_bytes())).unwrap().to_text().map(Cow::into_owned)
        };
        assert_eq!(read("\"plain\"").as_deref(), Some("plain"));
        assert_eq!(read(r#""a\nb\u00e9""#).as_deref(), Some("a\nb\u{e9}"));
        assert_eq!(read("7"), None);
    }

    #[test]
    fn it_is_written_as_it_came() {
        let raw = RawJson::parse(Bytes::from_static(b"{\"b\":1,\"a\": 2}")).unwrap();
        assert_eq!(serde_json::to_string(&[raw]).unwrap(), "[{\"b\":1,\"a\": 2}]");
    }
}
