//! The fields of a request's head, as they came: each is a place in its text.
//!
//! Of those that are looked for it is known at once where they stand; of the others few are ever looked at.

use std::ops::Range;

use bytes::Bytes;
use bytestring::ByteString;

use super::name::NAMES;
pub(in crate::http) use super::name::Name;

/// The fields of a head, in the order in which they came.
#[derive(Debug, Clone)]
pub(in crate::http) struct Fields {
    text: Text,
    places: Vec<Place>,
    /// Where the first one of each name stands, counted from 1.
    first: [u8; NAMES],
}

#[derive(Debug, Clone)]
struct Place {
    known: Option<Name>,
    name: Range<usize>,
    value: Range<usize>,
}

/// The text of a head.
#[derive(Debug, Clone)]
enum Text {
    /// Plain, as it nearly always is.
    Plain(ByteString),
    Other(Bytes),
}

/// A field that is no text, or stands there twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) struct NotPlain;

impl Text {
    fn of(text: Bytes) -> Text {
        match ByteString::try_from(text.clone()) {
            Ok(text) if text.is_ascii() => Text::Plain(text),
            Ok(_) | Err(_) => Text::Other(text),
        }
    }

    fn part(&self, range: &Range<usize>) -> &[u8] {
        match self {
            Text::Plain(text) => &text.as_bytes()[range.clone()],
            Text::Other(text) => &text[range.clone()],
        }
    }

    /// A part, where it is plain text.
    fn plain(&self, range: &Range<usize>) -> Option<&str> {
        match self {
            Text::Plain(text) => text.get(range.clone()),
            Text::Other(text) => str::from_utf8(&text[range.clone()]).ok().filter(|it| it.is_ascii()),
        }
    }
}

impl Fields {
    /// Those that were found in `text`.
    pub(super) fn found(text: &Bytes, fields: &[httparse::Header<'_>]) -> Fields {
        let start = text.as_ptr() as usize;
        let place = |part: &[u8]| {
            let from = (part.as_ptr() as usize).checked_sub(start).expect("a field is a part of its head");
            from..from + part.len()
        };
        let field = |it: &httparse::Header<'_>| Place {
            known: Name::of(it.name),
            name: place(it.name.as_bytes()),
            value: place(it.value),
        };
        Fields::at(text.clone(), fields.iter().map(field).collect())
    }

    /// Does every line before a field end with both of its bytes?
    pub(super) fn begin_behind_whole_lines(&self) -> bool {
        self.places.iter().all(|it| self.text.part(&(0..it.name.start)).ends_with(b"\r\n"))
    }

    fn at(text: Bytes, places: Vec<Place>) -> Fields {
        let mut first = [0; NAMES];
        // A head has less than a hundred of them.
        for (at, place) in (1u8..).zip(&places) {
            let Some(known) = place.known else { continue };
            let first = &mut first[known as usize];
            *first = if *first == 0 { at } else { *first };
        }
        Fields { text: Text::of(text), places, first }
    }

    /// Those of this name.
    fn places(&self, name: Name) -> impl Iterator<Item = &Place> {
        let from = match self.first[name as usize] {
            0 => self.places.len(),
            first => usize::from(first) - 1,
        };
        self.places[from..].iter().filter(move |it| it.known == Some(name))
    }

    /// The first value of this name.
    pub(in crate::http) fn get(&self, name: Name) -> Option<&[u8]> {
        self.all(name).next()
    }

    /// The first value of this name, where it is plain text: letters that can be seen, spaces and tabs.
    pub(in crate::http) fn text(&self, name: Name) -> Option<&str> {
        self.text.plain(&self.places(name).next()?.value)
    }

    /// The text of a field that may stand there once.
    pub(in crate::http) fn only(&self, name: Name) -> Result<Option<&str>, NotPlain> {
        let mut places = self.places(name);
        let Some(place) = places.next() else { return Ok(None) };
        match (self.text.plain(&place.value), places.next()) {
            (Some(text), None) => Ok(Some(text)),
            _ => Err(NotPlain),
        }
    }

    /// All values of this name.
    pub(in crate::http) fn all(&self, name: Name) -> impl Iterator<Item = &[u8]> {
        self.places(name).map(|it| self.text.part(&it.value))
    }

    /// All values of any name, however it is written.
    pub(in crate::http) fn named(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let is_name = move |it: &&Place| self.text.part(&it.name).eq_ignore_ascii_case(name.as_bytes());
        self.places.iter().filter(is_name).map(|it| self.text.part(&it.value))
    }
}

#[cfg(any(test, fuzzing))]
impl Fields {
    /// Fields that never stood in a head.
    pub(in crate::http) fn of<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Fields {
        let (mut text, mut places) = (String::new(), Vec::new());
        for (name, value) in pairs {
            let known = Name::of(name);
            let name = text.len()..{
                text.push_str(name);
                text.len()
            };
            text.push_str(value);
            places.push(Place { known, value: name.end..text.len(), name });
        }
        Fields::at(text.into(), places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_however_it_is_written_and_as_often_as_it_stands_there() {
        let fields =
            Fields::of([("Host", "a"), ("ACCEPT", "b"), ("X-y", "1"), ("accept", "c\td"), ("origin", "e")]);
        let all = |name| fields.all(name).map(|it| str::from_utf8(it).unwrap()).collect::<Vec<_>>().join(" ");
        assert_eq!(
            (all(Name::Host), all(Name::Accept), all(Name::Origin)),
            ("a".into(), "b c\td".into(), "e".into())
        );
        assert_eq!((fields.text(Name::Host), fields.text(Name::Accept)), (Some("a"), Some("b")));
        assert_eq!((fields.only(Name::Host), fields.only(Name::Accept)), (Ok(Some("a")), Err(NotPlain)));
        assert_eq!((fields.get(Name::Version), fields.only(Name::Version)), (None, Ok(None)));
        assert_eq!((all(Name::Session), fields.named("x-y").count()), (String::new(), 1));
    }

    #[test]
    fn one_that_is_no_plain_text_spoils_no_other() {
        let fields = Fields::of([("x", "é"), ("host", "a"), ("origin", "é")]);
        assert_eq!((fields.text(Name::Host), fields.only(Name::Host)), (Some("a"), Ok(Some("a"))));
        assert_eq!((fields.text(Name::Origin), fields.only(Name::Origin)), (None, Err(NotPlain)));
        assert_eq!(fields.get(Name::Origin), Some("é".as_bytes()));
    }
}
