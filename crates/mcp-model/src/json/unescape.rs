//! Unescaping of JSON strings, with one allocation.
//!
//! serde_json unescapes into a scratch buffer, and copies it. For results with megabytes of text, that second
//! allocation is expensive.

use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A string that is deserialized with [`unescape`]. An unpaired surrogate becomes U+FFFD, so that the text around it is
/// kept.
pub(crate) struct UnescapedString(pub(crate) String);

impl<'de> Deserialize<'de> for UnescapedString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<UnescapedString, D::Error> {
        let json = <&RawValue>::deserialize(deserializer)?.get();
        let text = unescape(json).or_else(|| unescape_with(json, decode_escape_lossily));
        let another = || D::Error::invalid_type(Unexpected::Other("another value"), &"a string");
        text.map(UnescapedString).ok_or_else(another)
    }
}

/// Decodes a JSON string that serde_json has checked. Returns `None` for another value, and for an unpaired surrogate.
pub(crate) fn unescape(json: &str) -> Option<String> {
    unescape_with(json, decode_escape)
}

/// Decodes a JSON string with a decoder of escapes. Generic, so that the decoder is inlined.
fn unescape_with(json: &str, decode_escape: impl Fn(&str) -> Option<(char, &str)>) -> Option<String> {
    let mut rest = json.strip_prefix('"')?.strip_suffix('"')?;
    let mut decoded = String::with_capacity(rest.len());
    while let Some(backslash) = memchr::memchr(b'\\', rest.as_bytes()) {
        decoded.push_str(&rest[..backslash]);
        let (character, behind) = decode_escape(&rest[backslash + 1..])?;
        decoded.push(character);
        rest = behind;
    }
    decoded.push_str(rest);
    // The JSON of a text with many `\u` escapes is several times as long as the text.
    if decoded.capacity() > 2 * decoded.len() {
        decoded.shrink_to_fit();
    }
    Some(decoded)
}

/// Decodes the escape at the start of `text`, which follows a backslash. Returns the character and the text behind it.
fn decode_escape(text: &str) -> Option<(char, &str)> {
    let mut chars = text.chars();
    let character = match chars.next()? {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'u' => return decode_code_point(chars.as_str()),
        itself @ ('"' | '\\' | '/') => itself,
        _ => return None,
    };
    Some((character, chars.as_str()))
}

/// Decodes the escape at the start of `text` as [`decode_escape`] does, and an unpaired surrogate as U+FFFD.
fn decode_escape_lossily(text: &str) -> Option<(char, &str)> {
    let replace = || {
        let (_, behind) = read_code_unit(text.strip_prefix('u')?)?;
        Some((char::REPLACEMENT_CHARACTER, behind))
    };
    decode_escape(text).or_else(replace)
}

/// Decodes a `\u` escape, or the two of a surrogate pair. `text` begins after the first `\u`. Returns the character and
/// the text behind it.
fn decode_code_point(text: &str) -> Option<(char, &str)> {
    let (first, behind) = read_code_unit(text)?;
    if let Some(character) = char::from_u32(first.into()) {
        return Some((character, behind));
    }
    let (second, behind) = read_code_unit(behind.strip_prefix("\\u")?)?;
    let mut pair = char::decode_utf16([first, second]);
    let character = pair.next()?.ok()?;
    pair.next().is_none().then_some((character, behind))
}

/// Reads a UTF-16 code unit in four hexadecimal digits. Returns it and the text behind it.
fn read_code_unit(text: &str) -> Option<(u16, &str)> {
    let (digits, behind) = text.split_at_checked(4)?;
    // `from_str_radix` accepts a sign too.
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    Some((u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)?, behind))
}

/// Decodes `json` if it is a string, without a copy if it has no escapes. Returns `None` for another value, and for an
/// unpaired surrogate.
pub(crate) fn decode_string(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    match inner.contains('\\') {
        true => unescape(json).map(Cow::Owned),
        false => Some(Cow::Borrowed(inner)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Checks that `unescape` agrees with serde_json on a text that is valid JSON.
    #[track_caller]
    fn check(json: &str) {
        let Ok(raw) = serde_json::from_str::<&RawValue>(json) else { return };
        assert_eq!(unescape(raw.get()), serde_json::from_str::<String>(json).ok(), "{json}");
        let read = serde_json::from_str::<UnescapedString>(json).ok().map(|it| it.0);
        assert_eq!(read.is_some(), json.starts_with('"'), "{json}");
        if let Ok(text) = serde_json::from_str::<String>(json) {
            assert_eq!(read, Some(text), "{json}");
        }
    }

    #[test]
    fn decodes_every_escape() {
        for json in [
            r#""""#,
            r#""a\nb\tc\rd\be\ff\"g\\h\/i""#,
            r#""\u0000\u00e9\u20AC\ud83d\ude00é😀""#,
            r#""\ud83d""#,
            r#""\ude00\ud83d""#,
            r#""\ud83d\ud83d""#,
            r#""\ud83d\n""#,
            r#""\ud83d a""#,
            r#""\ud83dé\ude00""#,
            r#""\\u0041""#,
            "7",
            "null",
            "[\"a\"]",
        ] {
            check(json);
        }
    }

    // RPT-034
    #[test]
    fn unpaired_surrogate_is_replaced() {
        #[track_caller]
        fn check(json: &str, want: &str) {
            assert_eq!(serde_json::from_str::<UnescapedString>(json).unwrap().0, want, "{json}");
        }
        check(r#""a\ud83d b""#, "a\u{fffd} b");
        check(r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}");
        check(r#""\ud83d\ud83d\ude00\n""#, "\u{fffd}😀\n");
        check(r#""\ud83d\u0041""#, "\u{fffd}A");
    }

    proptest! {
        #[test]
        fn agrees_with_serde_json(json in r#""([a é"😀]|\\[nrtbf/"\\]|\\u[0-9a-fA-F]{4}|\\ud[89a-f][0-9]{2}){0,12}""#) {
            check(&json);
        }

        #[test]
        fn round_trips(text in any::<String>()) {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(unescape(&json), Some(text));
        }
    }
}
