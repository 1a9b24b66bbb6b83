//! A cursor over JSON text that reads each value once, typed, and knows its position.
//!
//! serde_json reads and skips the values; this module reads the punctuation between the members of the outermost
//! containers.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{Error as _, IgnoredAny};
use serde_json::{Deserializer, Error};

use crate::json::unescape::string_text;

/// A position in a JSON text.
///
/// Each value is read in place, so the text is scanned once. An error is reported when the cursor reaches it;
/// positions in serde_json's messages are relative to the value that was being read.
///
/// ```
/// use mcp_host_model::internal::JsonCursor;
///
/// let mut cursor = JsonCursor::new(r#"{"id": 7, "params": {"name": "echo"}}"#);
/// let mut id = None;
/// cursor.read_object(|key, cursor| {
///     match &*key {
///         "id" => id = Some(cursor.read_value::<u32>()?),
///         _ => assert_eq!(cursor.skip_value()?.as_str(), r#"{"name": "echo"}"#),
///     }
///     Ok(())
/// })?;
/// cursor.finish()?;
/// assert_eq!(id, Some(7));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct JsonCursor<'a> {
    text: &'a str,
    at: usize,
    /// A container was opened, and none of its members was read.
    is_begun: bool,
}

/// The text of a JSON value that a [`JsonCursor`] has skipped.
#[derive(Debug, Clone, Copy)]
pub struct JsonSlice<'a>(&'a str);

impl<'a> JsonSlice<'a> {
    /// Returns the JSON text.
    pub fn as_str(self) -> &'a str {
        self.0
    }

    /// Returns the decoded text of a JSON string, and `None` for any other value.
    pub fn to_text(self) -> Option<Cow<'a, str>> {
        string_text(self.0)
    }
}

impl<'a> JsonCursor<'a> {
    /// Creates a cursor at the start of `text`.
    pub fn new(text: &'a str) -> JsonCursor<'a> {
        JsonCursor { text, at: 0, is_begun: false }
    }

    /// Enters an object (`{`) or a list (`[`). Fails if there is none at this position.
    pub(crate) fn begin_container(&mut self, mark: u8) -> Result<(), Error> {
        if self.peek_byte() != Some(mark) {
            return Err(Error::custom(format_args!("expected `{}`", char::from(mark))));
        }
        self.at += 1;
        self.is_begun = true;
        Ok(())
    }

    /// Moves to the next member of the current container and returns true, or moves past its `end` (`}` or `]`) and
    /// returns false.
    pub(crate) fn next_element(&mut self, end: u8) -> Result<bool, Error> {
        let is_first = std::mem::take(&mut self.is_begun);
        let next = self.peek_byte();
        if next == Some(end) {
            self.at += 1;
            return Ok(false);
        }
        if !is_first {
            if next != Some(b',') {
                return Err(Error::custom(format_args!("expected `,` or `{}`", char::from(end))));
            }
            self.at += 1;
            // The next value begins at its first byte.
            self.peek_byte();
        }
        Ok(true)
    }

    /// Reads the name of the next member and moves to its value. Returns `None` after the end of the object.
    pub(crate) fn next_key(&mut self) -> Result<Option<Cow<'a, str>>, Error> {
        if !self.next_element(b'}')? {
            return Ok(None);
        }
        let key = match self.unescaped_key() {
            Some(key) => Cow::Borrowed(key),
            None => self.read_value::<Key<'a>>()?.0,
        };
        if self.peek_byte() != Some(b':') {
            return Err(Error::custom("expected `:`"));
        }
        self.at += 1;
        Ok(Some(key))
    }

    /// Reads a name without escapes, the common case.
    fn unescaped_key(&mut self) -> Option<&'a str> {
        let rest = self.text.as_bytes()[self.at..].strip_prefix(b"\"")?;
        let length = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))?;
        if rest[length] != b'"' {
            return None;
        }
        let start = self.at + 1;
        self.at = start + length + 1;
        self.text.get(start..start + length)
    }

    /// Reads an object. `member` receives each name and must read exactly the value. Fails if it reads nothing.
    pub fn read_object(
        &mut self,
        mut member: impl FnMut(Cow<'a, str>, &mut JsonCursor<'a>) -> Result<(), Error>,
    ) -> Result<JsonSlice<'a>, Error> {
        self.begin_container(b'{')?;
        let start = self.at - 1;
        while let Some(key) = self.next_key()? {
            let before = self.at;
            member(key, self)?;
            if self.at == before {
                return Err(Error::custom("a member's value was not read"));
            }
        }
        Ok(JsonSlice(&self.text[start..self.at]))
    }

    /// Reads a list. `element` must read exactly one value. Fails if it reads nothing.
    pub fn read_array(
        &mut self,
        mut element: impl FnMut(&mut JsonCursor<'a>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.begin_container(b'[')?;
        while self.next_element(b']')? {
            let before = self.at;
            element(self)?;
            if self.at == before {
                return Err(Error::custom("an element was not read"));
            }
        }
        Ok(())
    }

    /// Reads the value as `T`. On an error the cursor does not move.
    pub fn read_value<T: Deserialize<'a>>(&mut self) -> Result<T, Error> {
        let mut deserializer = Deserializer::from_str(&self.text[self.at..]);
        let value = T::deserialize(&mut deserializer)?;
        self.at += deserializer.into_iter::<IgnoredAny>().byte_offset();
        Ok(value)
    }

    /// Skips the value, whatever its type.
    pub fn skip_value(&mut self) -> Result<JsonSlice<'a>, Error> {
        self.peek_byte();
        let start = self.at;
        self.read_value::<IgnoredAny>()?;
        Ok(JsonSlice(&self.text[start..self.at]))
    }

    /// Reads the value with its text. If it is JSON but not a `T`, returns the reason and skips it.
    pub(crate) fn read_with_text<T: Deserialize<'a>>(
        &mut self,
    ) -> Result<(&'a str, Result<T, Error>), Error> {
        let start = self.at;
        let value = match self.read_value() {
            Ok(value) => Ok(value),
            Err(why) => {
                self.read_value::<IgnoredAny>()?;
                Err(why)
            }
        };
        Ok((&self.text[start..self.at], value))
    }

    /// Returns the number of bytes after this position.
    pub(crate) fn remaining_bytes(&self) -> usize {
        self.text.len() - self.at
    }

    /// Fails if anything but white space follows.
    pub fn finish(mut self) -> Result<(), Error> {
        match self.peek_byte() {
            None => Ok(()),
            Some(_) => Err(Error::custom("trailing characters")),
        }
    }

    /// Skips white space and returns the byte after it.
    pub fn peek_byte(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        let blank = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
        self.at += blank;
        rest.get(blank).copied()
    }
}

/// The name of a member.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;
    use serde_json::value::RawValue;

    use super::*;

    /// Reads an object of lists, as serde_json would.
    fn read_members(text: &str) -> Result<Vec<(String, Vec<String>)>, Error> {
        let mut walk = JsonCursor::new(text);
        let mut res = Vec::new();
        walk.begin_container(b'{')?;
        while let Some(key) = walk.next_key()? {
            let mut items = Vec::new();
            let is_list = walk.begin_container(b'[').is_ok();
            while is_list && walk.next_element(b']')? {
                items.push(walk.read_with_text::<&RawValue>()?.0.to_owned());
            }
            if !is_list {
                items.push(walk.read_value::<&RawValue>()?.to_string());
            }
            res.push((key.into_owned(), items));
        }
        Ok(res)
    }

    #[track_caller]
    fn check(text: &str, want: &str) {
        let got = match read_members(text) {
            Ok(got) => got
                .iter()
                .map(|(key, items)| format!("{key}={}", items.join("|")))
                .collect::<Vec<_>>()
                .join(" "),
            Err(error) => format!("! {error}"),
        };
        assert_eq!(got, want, "{text}");
    }

    #[test]
    fn each_item_is_read_with_its_text() {
        check(r#"{"a":[1, {"b":[]} ,"x" ],"c":[]} and more"#, r#"a=1|{"b":[]}|"x" c="#);
        check(" { } ", "");
        check(r#"{"a\n":7}"#, "a\n=7");
        check(r#"{"\u00e9é":7}"#, "éé=7");
        check("[]", "! expected `{`");
        check("", "! expected `{`");
        check(r#"{"a":[1 2]}"#, "! expected `,` or `]`");
        check(r#"{"a":[1]"b":[]}"#, "! expected `,` or `}`");
        check(r#"{"a" [1]}"#, "! expected `:`");
        for broken in [
            r#"{"a":[1,]}"#,
            r#"{"a":[,1]}"#,
            r#"{"a":[1],}"#,
            r#"{,"a":[1]}"#,
            r#"{"a":["#,
            "{7:[]}",
            "{\"a\u{1}\":[]}",
            r#"{"a"#,
        ] {
            assert!(read_members(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn what_is_another_thing_is_passed_over() {
        let mut walk = JsonCursor::new(r#"[ {"a":"x","b":[1]} , 7]"#);
        walk.begin_container(b'[').unwrap();
        assert!(walk.next_element(b']').unwrap());
        let (text, read) = walk.read_with_text::<u8>().unwrap();
        assert_eq!((text, read.is_err()), (r#"{"a":"x","b":[1]}"#, true));
        assert!(walk.next_element(b']').unwrap());
        assert!(matches!(walk.read_with_text::<u8>(), Ok(("7", Ok(7)))));
        assert!(!walk.next_element(b']').unwrap());
    }

    #[test]
    fn what_was_passed_over_is_known_to_be_json() {
        let mut walk = JsonCursor::new(r#" {"a": {"b" : "x\n" } ,"c":[1 ] } "#);
        let mut seen = Vec::new();
        let whole = walk.read_object(|key, walk| {
            let passed = match &*key {
                "a" => walk.read_object(|_, walk| {
                    assert_eq!(walk.skip_value()?.to_text().as_deref(), Some("x\n"));
                    Ok(())
                })?,
                _ => walk.skip_value()?,
            };
            seen.push(format!("{key}={}", passed.as_str()));
            Ok(())
        });
        assert_eq!(whole.unwrap().as_str(), r#"{"a": {"b" : "x\n" } ,"c":[1 ] }"#);
        assert_eq!(seen, [r#"a={"b" : "x\n" }"#, "c=[1 ]"]);
        walk.finish().unwrap();
        let unread = JsonCursor::new(r#"{"a":}"#).read_object(|_, _| Ok(()));
        assert!(unread.is_err());
        let mut walk = JsonCursor::new("7 8");
        assert_eq!((walk.skip_value().unwrap().to_text(), walk.finish().is_err()), (None, true));
    }

    proptest! {
        /// It takes what serde_json takes, and nothing else.
        #[test]
        fn it_agrees_with_serde_json(text in r#"[\[\]{},:"a1 ]{0,14}"#) {
            for text in [text.clone(), format!("{{\"a\":[{text}]}}"), format!("{{{text}}}")] {
                let mut values = Deserializer::from_str(&text).into_iter::<Value>();
                let known = matches!(values.next(), Some(Ok(Value::Object(_))));
                prop_assert_eq!(read_members(&text).is_ok(), known, "{}", text);
            }
        }
    }
}
