//! The fields of a request's head, as they came: each is a place in its text.
//!
//! Few are ever looked at, and each of those once or twice; so they are looked for where they stand, and not sorted in.

use std::ops::Range;

use bytes::Bytes;

/// The fields of a head, in the order in which they came.
#[derive(Debug, Clone, Default)]
pub(in crate::http) struct Fields {
    text: Bytes,
    places: Vec<Place>,
    /// One bit for each likeness that is there: most names that are looked for are not.
    there: u64,
}

#[derive(Debug, Clone)]
struct Place {
    likeness: u32,
    name: Range<usize>,
    value: Range<usize>,
}

/// Names that are the same have the same, however they are written; most others have another one.
fn likeness(name: &[u8]) -> u32 {
    let (Some(first), Some(last)) = (name.first(), name.last()) else { return 0 };
    let letter = |it: &u8| u32::from(it.to_ascii_lowercase());
    (name.len() as u32) << 16 | letter(first) << 8 | letter(last)
}

/// One of 64 bits, by the upper bits of a product that all of the lower ones have a part in.
fn bit(likeness: u32) -> u64 {
    1 << (likeness.wrapping_mul(0x9E37_79B1) >> 26)
}

impl Fields {
    /// Those that were found in `text`.
    pub(super) fn found(text: &Bytes, fields: &[httparse::Header<'_>]) -> Fields {
        let start = text.as_ptr() as usize;
        let place = |part: &[u8]| {
            let from = (part.as_ptr() as usize).checked_sub(start).expect("a field is a part of its head");
            from..from + part.len()
        };
        let field = |it: &httparse::Header<'_>| {
            let name = it.name.as_bytes();
            Place { likeness: likeness(name), name: place(name), value: place(it.value) }
        };
        Fields::at(text.clone(), fields.iter().map(field).collect())
    }

    fn at(text: Bytes, places: Vec<Place>) -> Fields {
        let there = places.iter().fold(0, |res, it| res | bit(it.likeness));
        Fields { text, places, there }
    }

    /// The first value of this name, which is written in small letters.
    pub(in crate::http) fn get(&self, name: &str) -> Option<&[u8]> {
        self.find(name, 0).map(|(value, _)| value)
    }

    /// All values of this name, which is written in small letters.
    pub(in crate::http) fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let (value, at) = self.find(name, from)?;
            from = at + 1;
            Some(value)
        })
    }

    /// The next value of this name, and the place where it was found, at `from` or behind it.
    fn find(&self, name: &str, from: usize) -> Option<(&[u8], usize)> {
        let wanted = likeness(name.as_bytes());
        if self.there & bit(wanted) == 0 {
            return None;
        }
        let is_name = |it: &Place| {
            let found = &self.text[it.name.clone()];
            // Most write them in small letters.
            found == name.as_bytes() || found.eq_ignore_ascii_case(name.as_bytes())
        };
        let at = from + self.places[from..].iter().position(|it| it.likeness == wanted && is_name(it))?;
        Some((&self.text[self.places[at].value.clone()], at))
    }

    /// The first value of this name, where it is plain text: letters that can be seen, spaces and tabs.
    pub(in crate::http) fn text(&self, name: &str) -> Option<&str> {
        plain(self.get(name)?)
    }
}

/// The value of a field, where it is plain text: it has come in a head, in which there are no control characters.
pub(in crate::http) fn plain(value: &[u8]) -> Option<&str> {
    str::from_utf8(value).ok().filter(|it| it.is_ascii())
}

#[cfg(any(test, fuzzing))]
impl Fields {
    /// Fields that never stood in a head.
    pub(in crate::http) fn of<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Fields {
        let (mut text, mut places) = (String::new(), Vec::new());
        for (name, value) in pairs {
            let name = text.len()..{
                text.push_str(name);
                text.len()
            };
            text.push_str(value);
            places.push(Place {
                likeness: likeness(&text.as_bytes()[name.clone()]),
                value: name.end..text.len(),
                name,
            });
        }
        Fields::at(text.into(), places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_however_it_is_written_and_as_often_as_it_stands_there() {
        let fields = Fields::of([("Host", "a"), ("ACCEPT", "b"), ("accept", "c\td"), ("x", "é")]);
        assert_eq!(fields.text("host"), Some("a"));
        assert_eq!(fields.all("accept").collect::<Vec<_>>(), [&b"b"[..], b"c\td"]);
        assert_eq!((fields.get("x"), fields.text("x")), (Some("é".as_bytes()), None));
        assert_eq!(fields.get("hos"), None);
    }
}
