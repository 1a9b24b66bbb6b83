//! JSON that is forwarded without being parsed into a tree.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use bytestring::ByteString;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::json::cursor::{JsonCursor, JsonSlice};
use crate::json::unescape::{decode_string, may_have_surrogates, replace_unpaired_surrogates};

/// One complete JSON value as its original text, a slice of a shared buffer.
///
/// Invariant: valid UTF-8, valid JSON, exactly one value, no white space around it. Schemas, arguments and structured
/// results pass from a server to a caller in this form, so they are neither copied nor reordered.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawJson(ByteString);

impl RawJson {
    /// Checks that `bytes` contain exactly one JSON value. Fails with serde_json's message, which contains only
    /// positions and token kinds.
    pub fn parse(bytes: Bytes) -> Result<RawJson, serde_json::Error> {
        let whole = check_utf8(bytes)?;
        serde_json::from_str::<IgnoredAny>(&whole)?;
        let inner = whole.trim_matches(|it: char| it.is_ascii_whitespace());
        Ok(RawJson(whole.slice_ref(inner)))
    }

    /// Reads the value at the start of `bytes` and ignores what follows. Fails as [`RawJson::parse`] does.
    pub fn parse_prefix(bytes: Bytes) -> Result<RawJson, serde_json::Error> {
        let whole = match ByteString::try_from(bytes.clone()) {
            Ok(whole) => whole,
            Err(error) => check_utf8(bytes.slice(..error.valid_up_to()))?,
        };
        let value = <&RawValue>::deserialize(&mut serde_json::Deserializer::from_str(&whole))?.get();
        Ok(RawJson(whole.slice_ref(value)))
    }

    /// Returns a value that serde_json found inside this one, as a slice: no copy, no second check.
    ///
    /// A `value` outside this buffer is copied.
    pub fn slice(&self, value: &RawValue) -> RawJson {
        RawJson::slice_at(&self.0, self.0.as_ptr(), value.get())
    }

    /// Returns `value`, which a cursor over `whole` has read, as a slice of `whole`. A value of another text is copied.
    #[doc(hidden)]
    pub fn from_slice(whole: &ByteString, value: JsonSlice<'_>) -> RawJson {
        RawJson::from_valid(RawJson::slice_at(whole, whole.as_ptr(), value.as_str()).0)
    }

    /// Returns the slice that corresponds to `value`, a part of `text`, of which `self` is a copy. A `value` outside
    /// `text` is copied.
    pub(crate) fn slice_by_offset(&self, text: &str, value: &RawValue) -> RawJson {
        RawJson::slice_at(&self.0, text.as_ptr(), value.get())
    }

    /// Returns the part of `whole` at the offset of `json` from the address `base`, or a copy of `json` if `whole` has
    /// no such part.
    fn slice_at(whole: &ByteString, base: *const u8, json: &str) -> RawJson {
        let start = (json.as_ptr() as usize).wrapping_sub(base as usize);
        let part = start.checked_add(json.len()).and_then(|end| whole.get(start..end));
        RawJson(part.map_or_else(|| ByteString::from(json), |it| whole.slice_ref(it)))
    }

    /// Wraps text that is known to be one JSON value.
    pub(crate) fn from_valid(text: ByteString) -> RawJson {
        debug_assert!(serde_json::from_str::<IgnoredAny>(&text).is_ok());
        RawJson(text)
    }

    /// Copies a value that serde_json found. The escape of an unpaired surrogate becomes that of U+FFFD.
    pub fn copy_of(value: &RawValue) -> RawJson {
        RawJson(ByteString::from(value.get())).without_unpaired_surrogates()
    }

    /// Returns the value with U+FFFD instead of unpaired surrogates, which many readers refuse.
    pub fn without_unpaired_surrogates(self) -> RawJson {
        if !may_have_surrogates(self.as_bytes()) {
            return self;
        }
        let text = replace_unpaired_surrogates(self.0.into_bytes());
        RawJson(ByteString::try_from(text).expect("an escape in the place of another is UTF-8"))
    }

    /// Serializes `value`. Fails only if its `Serialize` does (a map whose keys are not strings).
    pub fn from_value(value: &impl Serialize) -> Result<RawJson, serde_json::Error> {
        Ok(RawJson(serde_json::to_string(value)?.into()))
    }

    /// Returns `{}`.
    pub fn empty_object() -> RawJson {
        RawJson(ByteString::from_static("{}"))
    }

    /// Returns the JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the bytes of the JSON text.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Returns the shared buffer.
    pub fn into_bytes(self) -> Bytes {
        self.0.into_bytes()
    }

    /// Deserializes the value.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// Returns the decoded text of a JSON string, and `None` for any other value.
    pub fn to_text(&self) -> Option<Cow<'_, str>> {
        decode_string(self.as_str())
    }

    /// Returns the names and values of an object in their order, including repeated names. Returns `None` for any other
    /// value.
    pub fn members(&self) -> Option<Vec<(Cow<'_, str>, RawJson)>> {
        let mut members = Vec::new();
        let mut cursor = JsonCursor::new(self.as_str());
        let read = cursor.read_object(|name, cursor| {
            members.push((name, RawJson::from_slice(&self.0, cursor.skip_value()?)));
            Ok(())
        });
        read.is_ok().then_some(members)
    }

    /// Returns whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }
}

/// Checks that `bytes` are UTF-8. serde_json does not check this in the strings that it skips.
fn check_utf8(bytes: Bytes) -> Result<ByteString, serde_json::Error> {
    ByteString::try_from(bytes).map_err(serde::de::Error::custom)
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
        // serde_json writes a borrowed `RawValue` byte for byte.
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
    fn parses_one_value_and_trims_white_space() {
        check(" {\"b\" : 1, \"a\":[]} \n", Some("{\"b\" : 1, \"a\":[]}"));
        check("null", Some("null"));
        check("1 2", None);
        check("{", None);
        check("", None);
        check("\"\u{e9}\"", Some("\"\u{e9}\""));
        assert!(RawJson::parse(Bytes::from_static(b"{\"a\":\"\xff\"}")).is_err());
    }

    #[test]
    fn slices_share_the_buffer_and_other_values_are_copied() {
        let whole = Bytes::from_static(b"{\"schema\": {\"type\":\"object\"} }");
        #[derive(Deserialize)]
        struct RawTool<'a> {
            #[serde(borrow)]
            schema: &'a RawValue,
        }
        let raw = RawJson::parse(whole.clone()).unwrap();
        let tool: RawTool<'_> = raw.read().unwrap();
        let slice = raw.slice(tool.schema);
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
    fn only_strings_have_text() {
        let read = |text: &'static str| {
            RawJson::parse(Bytes::from_static(text.as_bytes())).unwrap().to_text().map(Cow::into_owned)
        };
        assert_eq!(read("\"plain\"").as_deref(), Some("plain"));
        assert_eq!(read(r#""a\nb\u00e9""#).as_deref(), Some("a\nb\u{e9}"));
        assert_eq!(read("7"), None);
    }

    #[test]
    fn serializes_byte_for_byte() {
        let raw = RawJson::parse(Bytes::from_static(b"{\"b\":1,\"a\": 2}")).unwrap();
        assert_eq!(serde_json::to_string(&[raw]).unwrap(), "[{\"b\":1,\"a\": 2}]");
    }
}
