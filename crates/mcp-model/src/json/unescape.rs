//! The texts of JSON strings, each written once, to where it stays.
//!
//! serde_json puts a string with escapes together in memory of its own, and copies it from there. Results may have megabytes
//! of text, nearly all of it with line breaks, and memory that is new has to be cleared by the system each time.

use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A text, to be read from JSON text.
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

/// The text of a JSON value that serde_json has walked over. `None` where it is no string, or has half of a surrogate pair.
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
    // Texts of some scripts are a third of what they are escaped.
    if res.capacity() > 2 * res.len() {
        res.shrink_to_fit();
    }
    Some(res)
}

/// The character that is escaped like this, and what stands behind it.
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

/// The character whose UTF-16 units stand here, the first one without its `\u`.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Whatever serde_json walks over is the text that it reads itself, or none where it reads none.
    #[track_caller]
    fn check(json: &str) {
        let Ok(raw) = serde_json::from_str::<&RawValue>(json) else { return };
        assert_eq!(unescape(raw.get()), serde_json::from_str::<String>(json).ok(), "{json}");
        let read = serde_json::from_str::<Text>(json).ok().map(|it| it.0);
        assert_eq!(read, serde_json::from_str::<String>(json).ok(), "{json}");
    }

    #[test]
    fn every_escape_is_read() {
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
        fn it_reads_what_serde_json_reads(json in r#""([a é"😀]|\\[nrtbf/"\\]|\\u[0-9a-fA-F]{4}|\\ud[89a-f][0-9]{2}){0,12}""#) {
            check(&json);
        }

        #[test]
        fn what_is_written_is_read_again(text in any::<String>()) {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(unescape(&json), Some(text));
        }
    }
}
