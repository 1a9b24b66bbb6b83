//! A cursor over JSON text that reads each value once, typed, and knows its position.
//!
//! serde_json reads and skips the values; this module reads the punctuation between the members of the outermost
//! containers.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{Error as _, IgnoredAny};
use serde_json::{Deserializer, Error};

use crate::json::unescape::decode_string;

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
    /// The position in `text`, in bytes.
    position: usize,
    /// Whether the next element is the first one of its container, so that no comma precedes it.
    is_first: bool,
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
        decode_string(self.0)
    }
}

impl<'a> JsonCursor<'a> {
    /// Creates a cursor at the start of `text`.
    pub fn new(text: &'a str) -> JsonCursor<'a> {
        JsonCursor { text, position: 0, is_first: false }
    }

    /// Moves past `bracket`, which begins an object (`{`) or a list (`[`). Fails if another byte is at this position.
    pub(crate) fn begin_container(&mut self, bracket: u8) -> Result<(), Error> {
        if self.peek_byte() != Some(bracket) {
            return Err(Error::custom(format_args!("expected `{}`", char::from(bracket))));
        }
        self.position += 1;
        self.is_first = true;
        Ok(())
    }

    /// Moves to the next member of the current container and returns true, or moves past its `end` (`}` or `]`) and
    /// returns false.
    pub(crate) fn next_element(&mut self, end: u8) -> Result<bool, Error> {
        let is_first = std::mem::take(&mut self.is_first);
        let next = self.peek_byte();
        if next == Some(end) {
            self.position += 1;
            return Ok(false);
        }
        if !is_first {
            if next != Some(b',') {
                return Err(Error::custom(format_args!("expected `,` or `{}`", char::from(end))));
            }
            self.position += 1;
            self.skip_white_space();
        }
        Ok(true)
    }

    /// Reads the name of the next member and moves to its value. Returns `None` after the end of the object.
    pub(crate) fn next_key(&mut self) -> Result<Option<Cow<'a, str>>, Error> {
        if !self.next_element(b'}')? {
            return Ok(None);
        }
        let key = match self.read_key_without_escapes() {
            Some(key) => Cow::Borrowed(key),
            None => self.skip_value()?.to_text().ok_or_else(|| Error::custom("expected a name"))?,
        };
        if self.peek_byte() != Some(b':') {
            return Err(Error::custom("expected `:`"));
        }
        self.position += 1;
        Ok(Some(key))
    }

    /// Reads a name without escapes, the common case. Returns `None`, and does not move, if it has one.
    fn read_key_without_escapes(&mut self) -> Option<&'a str> {
        let rest = self.text.as_bytes()[self.position..].strip_prefix(b"\"")?;
        let length = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))?;
        if rest[length] != b'"' {
            return None;
        }
        let start = self.position + 1;
        self.position = start + length + 1;
        self.text.get(start..start + length)
    }

    /// Reads an object and returns its text. `read_member` is called with each name, and must read or skip the value.
    /// Fails if it does not.
    pub fn read_object(
        &mut self,
        mut read_member: impl FnMut(Cow<'a, str>, &mut JsonCursor<'a>) -> Result<(), Error>,
    ) -> Result<JsonSlice<'a>, Error> {
        self.begin_container(b'{')?;
        let start = self.position - 1;
        while let Some(key) = self.next_key()? {
            let before = self.position;
            read_member(key, self)?;
            if self.position == before {
                return Err(Error::custom("a member's value was not read"));
            }
        }
        Ok(JsonSlice(&self.text[start..self.position]))
    }

    /// Reads a list. `read_element` is called at each element, and must read or skip it. Fails if it does not.
    pub fn read_array(
        &mut self,
        mut read_element: impl FnMut(&mut JsonCursor<'a>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.begin_container(b'[')?;
        while self.next_element(b']')? {
            let before = self.position;
            read_element(self)?;
            if self.position == before {
                return Err(Error::custom("an element was not read"));
            }
        }
        Ok(())
    }

    /// Reads the value as `T`. On an error the cursor does not move.
    pub fn read_value<T: Deserialize<'a>>(&mut self) -> Result<T, Error> {
        let mut deserializer = Deserializer::from_str(&self.text[self.position..]);
        let value = T::deserialize(&mut deserializer)?;
        self.position += deserializer.into_iter::<IgnoredAny>().byte_offset();
        Ok(value)
    }

    /// Skips the value of any type and returns its text.
    pub fn skip_value(&mut self) -> Result<JsonSlice<'a>, Error> {
        self.skip_white_space();
        let start = self.position;
        self.read_value::<IgnoredAny>()?;
        Ok(JsonSlice(&self.text[start..self.position]))
    }

    /// Reads the value as `T`, and returns its text as well. If it is JSON but not a `T`, the inner result is the
    /// error, and the cursor moves past the value.
    pub(crate) fn read_with_text<T: Deserialize<'a>>(
        &mut self,
    ) -> Result<(&'a str, Result<T, Error>), Error> {
        let start = self.position;
        let value = match self.read_value() {
            Ok(value) => Ok(value),
            Err(error) => {
                self.read_value::<IgnoredAny>()?;
                Err(error)
            }
        };
        Ok((&self.text[start..self.position], value))
    }

    /// Returns the number of bytes after this position.
    pub(crate) fn remaining_bytes(&self) -> usize {
        self.text.len() - self.position
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
        self.skip_white_space();
        self.text.as_bytes().get(self.position).copied()
    }

    fn skip_white_space(&mut self) {
        let rest = &self.text.as_bytes()[self.position..];
        self.position += rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;
    use serde_json::value::RawValue;

    use super::*;

    /// Reads an object. Each value is returned as the texts of its elements, or as its own text if it is no list.
    fn read_members(text: &str) -> Result<Vec<(String, Vec<String>)>, Error> {
        let mut cursor = JsonCursor::new(text);
        let mut res = Vec::new();
        cursor.begin_container(b'{')?;
        while let Some(key) = cursor.next_key()? {
            let mut items = Vec::new();
            let is_list = cursor.begin_container(b'[').is_ok();
            while is_list && cursor.next_element(b']')? {
                items.push(cursor.read_with_text::<&RawValue>()?.0.to_owned());
            }
            if !is_list {
                items.push(cursor.read_value::<&RawValue>()?.to_string());
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
    fn elements_are_read_with_their_texts() {
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
    fn value_of_another_type_is_skipped() {
        let mut cursor = JsonCursor::new(r#"[ {"a":"x","b":[1]} , 7]"#);
        cursor.begin_container(b'[').unwrap();
        assert!(cursor.next_element(b']').unwrap());
        let (text, read) = cursor.read_with_text::<u8>().unwrap();
        assert_eq!((text, read.is_err()), (r#"{"a":"x","b":[1]}"#, true));
        assert!(cursor.next_element(b']').unwrap());
        assert!(matches!(cursor.read_with_text::<u8>(), Ok(("7", Ok(7)))));
        assert!(!cursor.next_element(b']').unwrap());
    }

    #[test]
    fn skipped_values_are_returned_as_text() {
        let mut cursor = JsonCursor::new(r#" {"a": {"b" : "x\n" } ,"c":[1 ] } "#);
        let mut seen = Vec::new();
        let whole = cursor.read_object(|key, cursor| {
            let passed = match &*key {
                "a" => cursor.read_object(|_, cursor| {
                    assert_eq!(cursor.skip_value()?.to_text().as_deref(), Some("x\n"));
                    Ok(())
                })?,
                _ => cursor.skip_value()?,
            };
            seen.push(format!("{key}={}", passed.as_str()));
            Ok(())
        });
        assert_eq!(whole.unwrap().as_str(), r#"{"a": {"b" : "x\n" } ,"c":[1 ] }"#);
        assert_eq!(seen, [r#"a={"b" : "x\n" }"#, "c=[1 ]"]);
        cursor.finish().unwrap();
        let unread = JsonCursor::new(r#"{"a":}"#).read_object(|_, _| Ok(()));
        assert!(unread.is_err());
        let mut cursor = JsonCursor::new("7 8");
        assert_eq!((cursor.skip_value().unwrap().to_text(), cursor.finish().is_err()), (None, true));
    }

    proptest! {
        /// The cursor accepts a text if and only if serde_json does.
        #[test]
        fn agrees_with_serde_json(text in r#"[\[\]{},:"a1 ]{0,14}"#) {
            for text in [text.clone(), format!("{{\"a\":[{text}]}}"), format!("{{{text}}}")] {
                let mut values = Deserializer::from_str(&text).into_iter::<Value>();
                let known = matches!(values.next(), Some(Ok(Value::Object(_))));
                prop_assert_eq!(read_members(&text).is_ok(), known, "{}", text);
            }
        }
    }
}
