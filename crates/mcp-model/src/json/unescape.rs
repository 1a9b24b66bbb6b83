//! Unescaping of JSON strings, with one allocation, and escapes that are no characters.
//!
//! serde_json unescapes into a scratch buffer, and copies it. For results with megabytes of text, that second
//! allocation is expensive. JSON can escape one half of a surrogate pair. That is no character: readers of many
//! languages refuse the whole message. Here it becomes U+FFFD.

use std::borrow::Cow;
use std::sync::LazyLock;

use bytes::Bytes;
use memchr::memmem::Finder;
use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The escape that replaces an unpaired surrogate. It has the same length.
const REPLACEMENT: &[u8; 6] = b"\\ufffd";

/// A string that is deserialized with `unescape`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "not part of the public API")]
pub struct UnescapedString(pub String);

impl<'de> Deserialize<'de> for UnescapedString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<UnescapedString, D::Error> {
        let json = <&RawValue>::deserialize(deserializer)?.get();
        let another = || D::Error::invalid_type(Unexpected::Other("another value"), &"a string");
        unescape(json).map(UnescapedString).ok_or_else(another)
    }
}

/// Decodes a JSON string that serde_json has checked. Returns `None` for another value.
pub(crate) fn unescape(json: &str) -> Option<String> {
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

/// Decodes a `\u` escape, or the two of a surrogate pair. `text` begins after the first `\u`. Returns the character and
/// the text behind it. An unpaired surrogate is U+FFFD.
fn decode_code_point(text: &str) -> Option<(char, &str)> {
    let (first, behind) = read_code_unit(text)?;
    if let Some(character) = char::from_u32(first.into()) {
        return Some((character, behind));
    }
    let second = behind.strip_prefix("\\u").and_then(read_code_unit);
    let pair = second.and_then(|(second, behind)| {
        let mut pair = char::decode_utf16([first, second]);
        let character = pair.next()?.ok()?;
        pair.next().is_none().then_some((character, behind))
    });
    Some(pair.unwrap_or((char::REPLACEMENT_CHARACTER, behind)))
}

/// Reads a UTF-16 code unit in four hexadecimal digits. Returns it and the text behind it.
fn read_code_unit(text: &str) -> Option<(u16, &str)> {
    let (digits, behind) = text.split_at_checked(4)?;
    // `from_str_radix` accepts a sign too.
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    Some((u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)?, behind))
}

/// Decodes `json` if it is a string, without a copy if it has no escapes. Returns `None` for another value.
pub(crate) fn decode_string(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    match inner.contains('\\') {
        true => unescape(json).map(Cow::Owned),
        false => Some(Cow::Borrowed(inner)),
    }
}

/// Replaces the escapes of unpaired surrogates in a JSON text, which keeps its length. A text without them is returned
/// unchanged.
pub fn replace_unpaired_surrogates(text: Bytes) -> Bytes {
    if !may_have_surrogates(&text) {
        return text;
    }
    let mut copy: Option<Vec<u8>> = None;
    let mut from = 0;
    while let Some(found) = memchr::memchr(b'\\', &text[from..]) {
        let backslash = from + found;
        let EscapeScan { end, is_unpaired } = scan_escape(&text, backslash);
        if is_unpaired {
            let copy = copy.get_or_insert_with(|| text.to_vec());
            copy[backslash..end].copy_from_slice(REPLACEMENT);
        }
        from = end;
    }
    copy.map_or(text, Bytes::from)
}

/// Whether a JSON text may escape a surrogate. Fast for a text with many other escapes.
pub(crate) fn may_have_surrogates(text: &[u8]) -> bool {
    static FINDERS: LazyLock<[Finder<'static>; 2]> = LazyLock::new(|| ["\\ud", "\\uD"].map(Finder::new));
    FINDERS.iter().any(|finder| finder.find(text).is_some())
}

/// Replaces the escape at `backslash` if it is an unpaired surrogate. Returns the end of the escape, or of the two of a
/// pair.
pub fn replace_escape_if_unpaired(text: &mut [u8], backslash: usize) -> usize {
    let EscapeScan { end, is_unpaired } = scan_escape(text, backslash);
    if is_unpaired {
        text[backslash..end].copy_from_slice(REPLACEMENT);
    }
    end
}

/// An escape that was found in a JSON text.
struct EscapeScan {
    /// The end of the escape, or of the two of a surrogate pair.
    end: usize,
    /// Whether it is a surrogate without its other half.
    is_unpaired: bool,
}

/// Finds the end of the escape at `backslash`.
fn scan_escape(text: &[u8], backslash: usize) -> EscapeScan {
    let unit = |at: usize| {
        let escape = text.get(at..at + REPLACEMENT.len())?.strip_prefix(b"\\u")?;
        u16::from_str_radix(str::from_utf8(escape).ok()?, 16).ok()
    };
    let (first_end, pair_end) = (backslash + REPLACEMENT.len(), backslash + 2 * REPLACEMENT.len());
    match unit(backslash) {
        None => EscapeScan { end: text.len().min(backslash + 2), is_unpaired: false },
        Some(0xd800..0xdc00) if matches!(unit(first_end), Some(0xdc00..0xe000)) => {
            EscapeScan { end: pair_end, is_unpaired: false }
        }
        Some(first) => EscapeScan { end: first_end, is_unpaired: matches!(first, 0xd800..0xe000) },
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
        let read = serde_json::from_str::<UnescapedString>(json).ok().map(|it| it.0);
        assert_eq!(read.is_some(), json.starts_with('"'), "{json}");
        if let Ok(text) = serde_json::from_str::<String>(json) {
            assert_eq!(read, Some(text), "{json}");
        }
        assert_eq!(unescape(raw.get()), read, "{json}");
        // The text with replaced escapes is one that every reader accepts, and has the same meaning.
        let replaced = replace_unpaired_surrogates(Bytes::copy_from_slice(json.as_bytes()));
        let mut in_place = json.as_bytes().to_vec();
        let mut from = 0;
        while let Some(found) = memchr::memchr(b'\\', &in_place[from..]) {
            from = replace_escape_if_unpaired(&mut in_place, from + found);
        }
        assert_eq!(in_place, replaced, "{json}");
        assert_eq!(serde_json::from_slice::<String>(&replaced).ok(), read, "{json}");
        assert!(may_have_surrogates(json.as_bytes()) || replaced == json, "{json}");
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
