//! Unescaping of JSON strings, with one allocation.
//!
//! serde_json assembles a string with escapes in a scratch buffer and copies it. Results may contain megabytes of
//! text, nearly all of it with line breaks, and the kernel must clear new memory each time.

use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A string that deserializes through [`unescape`].
pub(crate) struct Text(pub(crate) String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text, D::Error> {
        let json = <&RawValue>::deserialize(deserializer)?.get();
        unescape(json).map(Text).ok_or_else(|| match json.starts_with('"') {
            true => D::Error::custom("half of a surrogate pair in a string"),
            false => D::Error::invalid_type(Unexpected::Other("another value"), &"a string"),
        })
    }
}

/// Returns the text of a JSON string that serde_json has checked. `None` for another value, or for an unpaired
/// surrogate.
pub(crate) fn unescape(json: &str) -> Option<String> {
    let mut rest = json.strip_prefix('"')?.strip_suffix('"')?;
    let mut res = String::with_capacity(rest.len());
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        res.push_str(&rest[..at]);
        let (character, behind) = escape(&rest[at + 1..])?;
        res.push(character);
        rest = behind;
    }
    res.push_str(rest);
    // Escaped text of some scripts is three times as long.
    if res.capacity() > 2 * res.len() {
        res.shrink_to_fit();
    }
    Some(res)
}

/// Decodes one escape, without its backslash; returns the rest.
fn escape(text: &str) -> Option<(char, &str)> {
    let mut chars = text.chars();
    let character = match chars.next()? {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'u' => return code_point(chars.as_str()),
        itself @ ('"' | '\\' | '/') => itself,
        _ => return None,
    };
    Some((character, chars.as_str()))
}

/// Decodes `\u` escapes, the first without its `\u`.
fn code_point(text: &str) -> Option<(char, &str)> {
    let (first, behind) = unit(text)?;
    if let Some(character) = char::from_u32(first.into()) {
        return Some((character, behind));
    }
    let (second, behind) = unit(behind.strip_prefix("\\u")?)?;
    let mut pair = char::decode_utf16([first, second]);
    let character = pair.next()?.ok()?;
    pair.next().is_none().then_some((character, behind))
}

fn unit(text: &str) -> Option<(u16, &str)> {
    let (digits, behind) = text.split_at_checked(4)?;
    let all = digits.bytes().all(|it| it.is_ascii_hexdigit());
    Some((u16::from_str_radix(digits, 16).ok().filter(|_| all)?, behind))
}

/// Returns the decoded text if `json` is a string.
pub(crate) fn string_text(json: &str) -> Option<Cow<'_, str>> {
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

    /// Must agree with serde_json on every text that it accepts.
    #[track_caller]
    fn check(json: &str) {
        let Ok(raw) = serde_json::from_str::<&RawValue>(json) else { return };
        assert_eq!(unescape(raw.get()), serde_json::from_str::<String>(json).ok(), "{json}");
        let read = serde_json::from_str::<Text>(json).ok().map(|it| it.0);
        assert_eq!(read, serde_json::from_str::<String>(json).ok(), "{json}");
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
