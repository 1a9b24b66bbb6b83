//! A walk over JSON text, value by value: each is read once, as what it should be, and its place in the text is known.
//!
//! serde_json reads the values, and what is passed over; here are the marks between the members of the outermost ones.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{Error as _, IgnoredAny};
use serde_json::{Deserializer, Error};

/// A place in a text.
pub(crate) struct Walk<'a> {
    text: &'a str,
    at: usize,
    /// An object or a list was begun, and none of its members was read.
    is_begun: bool,
}

impl<'a> Walk<'a> {
    /// At the beginning of a text. What stands behind the value at its beginning is never looked at.
    pub(crate) fn new(text: &'a str) -> Walk<'a> {
        Walk { text, at: 0, is_begun: false }
    }

    /// Begins an object, or a list. Fails where none does.
    pub(crate) fn begin(&mut self, mark: u8) -> Result<(), Error> {
        if self.next_byte() != Some(mark) {
            return Err(Error::custom(format_args!("expected `{}`", char::from(mark))));
        }
        self.at += 1;
        self.is_begun = true;
        Ok(())
    }

    /// Is there another member? Goes to it, or to the end.
    pub(crate) fn more(&mut self, end: u8) -> Result<bool, Error> {
        let is_first = std::mem::take(&mut self.is_begun);
        let next = self.next_byte();
        if next == Some(end) {
            self.at += 1;
            return Ok(false);
        }
        if !is_first {
            if next != Some(b',') {
                return Err(Error::custom(format_args!("expected `,` or `{}`", char::from(end))));
            }
            self.at += 1;
            // What is read next begins at its first byte.
            self.next_byte();
        }
        Ok(true)
    }

    /// The next member's name, up to the value.
    pub(crate) fn key(&mut self) -> Result<Option<Cow<'a, str>>, Error> {
        if !self.more(b'}')? {
            return Ok(None);
        }
        let key = self.value::<Key<'a>>()?.0;
        if self.next_byte() != Some(b':') {
            return Err(Error::custom("expected `:`"));
        }
        self.at += 1;
        Ok(Some(key))
    }

    /// The value that stands here. Where it is no `T` nothing is passed over.
    pub(crate) fn value<T: Deserialize<'a>>(&mut self) -> Result<T, Error> {
        let mut deserializer = Deserializer::from_str(&self.text[self.at..]);
        let value = T::deserialize(&mut deserializer)?;
        self.at += deserializer.into_iter::<IgnoredAny>().byte_offset();
        Ok(value)
    }

    /// The value that stands here, and its text. Where it is JSON and no `T`, why not.
    pub(crate) fn item<T: Deserialize<'a>>(&mut self) -> Result<(&'a str, Result<T, Error>), Error> {
        let start = self.at;
        let value = match self.value() {
            Ok(value) => Ok(value),
            Err(why) => {
                self.value::<IgnoredAny>()?;
                Err(why)
            }
        };
        Ok((&self.text[start..self.at], value))
    }

    /// How many bytes of the text are behind this place.
    pub(crate) fn left(&self) -> usize {
        self.text.len() - self.at
    }

    /// Passes over white space; the byte behind it.
    fn next_byte(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        let blank = rest.iter().take_while(|it| matches!(it, b' ' | b'\t' | b'\n' | b'\r')).count();
        self.at += blank;
        rest.get(blank).copied()
    }
}

/// A member's name.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;
    use serde_json::value::RawValue;

    use super::*;

    /// What it reads of an object of lists, as serde_json would.
    fn walked(text: &str) -> Result<Vec<(String, Vec<String>)>, Error> {
        let mut walk = Walk::new(text);
        let mut res = Vec::new();
        walk.begin(b'{')?;
        while let Some(key) = walk.key()? {
            let mut items = Vec::new();
            let is_list = walk.begin(b'[').is_ok();
            while is_list && walk.more(b']')? {
                items.push(walk.item::<&RawValue>()?.0.to_owned());
            }
            if !is_list {
                items.push(walk.value::<&RawValue>()?.to_string());
            }
            res.push((key.into_owned(), items));
        }
        Ok(res)
    }

    #[track_caller]
    fn check(text: &str, want: &str) {
        let got = match walked(text) {
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
            r#"{"a"#,
        ] {
            assert!(walked(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn what_is_another_thing_is_passed_over() {
        let mut walk = Walk::new(r#"[ {"a":"x","b":[1]} , 7]"#);
        walk.begin(b'[').unwrap();
        assert!(walk.more(b']').unwrap());
        let (text, read) = walk.item::<u8>().unwrap();
        assert_eq!((text, read.is_err()), (r#"{"a":"x","b":[1]}"#, true));
        assert!(walk.more(b']').unwrap());
        assert!(matches!(walk.item::<u8>(), Ok(("7", Ok(7)))));
        assert!(!walk.more(b']').unwrap());
    }

    proptest! {
        /// It takes what serde_json takes, and nothing else.
        #[test]
        fn it_agrees_with_serde_json(text in r#"[\[\]{},:"a1 ]{0,14}"#) {
            for text in [text.clone(), format!("{{\"a\":[{text}]}}"), format!("{{{text}}}")] {
                let mut values = Deserializer::from_str(&text).into_iter::<Value>();
                let known = matches!(values.next(), Some(Ok(Value::Object(_))));
                prop_assert_eq!(walked(&text).is_ok(), known, "{}", text);
            }
        }
    }
}
