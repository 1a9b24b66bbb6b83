//! The walk over a value's text beside what is asked of it.
//!
//! It stops at the first thing that is not sure; so it never goes deeper than serde_json does, nor further than it is
//! told.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::{Asked, Members, Numbers, Only, Others, Plain, Texts};

impl Plain {
    /// Does the JSON text `value` fit for sure? Of one with more than `most` values in it nothing is said.
    pub(in super::super) fn fits(&self, value: &str, most: u64) -> bool {
        let left = Cell::new(most);
        let mut deserializer = serde_json::Deserializer::from_str(value);
        Judged { asked: Some(self), left: &left }.deserialize(&mut deserializer).is_ok()
            && deserializer.end().is_ok()
    }
}

/// A value, and what is asked of it.
#[derive(Clone, Copy)]
struct Judged<'a> {
    asked: Option<&'a Plain>,
    /// How many values may still be looked at.
    left: &'a Cell<u64>,
}

impl<'a> Judged<'a> {
    fn inner(self, asked: &'a Asked) -> Judged<'a> {
        Judged { asked: asked.as_deref(), left: self.left }
    }

    /// Is what is asked of its kind, if anything, there?
    fn judge<E: Error>(self, fits: impl FnOnce(&Plain) -> bool) -> Result<(), E> {
        if self.asked.is_none_or(fits) { Ok(()) } else { Err(unsure()) }
    }
}

#[cold]
fn unsure<E: Error>() -> E {
    E::custom("not sure")
}

impl<'de> DeserializeSeed<'de> for Judged<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.left.get().checked_sub(1) {
            Some(left) => self.left.set(left),
            None => return Err(unsure()),
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Judged<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that fits")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.judge(|it| it.null.is_some())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        self.judge(|it| it.boolean.is_some())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.judge(|it| it.number.as_ref().is_some_and(|it| it.admit(number.into())))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.judge(|it| it.number.as_ref().is_some_and(|it| it.admit(number.into())))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.judge(|it| it.number.as_ref().is_some_and(Numbers::admit_all))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.judge(|it| it.text.as_ref().is_some_and(|it| it.admit(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Some(asked) = self.asked else {
            while items.next_element_seed(self)?.is_some() {}
            return Ok(());
        };
        let array = asked.array.as_ref().ok_or_else(unsure)?;
        let each = self.inner(&array.each);
        let mut count = 0;
        while items.next_element_seed(each)?.is_some() {
            count += 1;
        }
        if array.length.admits(count) { Ok(()) } else { Err(unsure()) }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let Some(asked) = self.asked else {
            while members.next_key_seed(Name(None))?.is_some() {
                members.next_value_seed(self)?;
            }
            return Ok(());
        };
        let object = asked.object.as_ref().ok_or_else(unsure)?;
        let mut missing = object.required;
        // Where a name stands twice the last counts; all of them fit, or nothing is said.
        while let Some(place) = members.next_key_seed(Name(Some(object)))? {
            let asked = match (place, &object.others) {
                (Some(at), _) => {
                    missing &= !(1 << at);
                    &object.known[at].1
                }
                (None, Others::Asked(asked)) => asked,
                (None, Others::Refused) => return Err(unsure()),
            };
            members.next_value_seed(self.inner(asked))?;
        }
        if missing == 0 { Ok(()) } else { Err(unsure()) }
    }
}

/// A member's name, and those that are known; gives its place among them.
struct Name<'a>(Option<&'a Members>);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<usize>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Option<usize>, E> {
        Ok(self.0.and_then(|it| it.known.iter().position(|(known, _)| **known == *name)))
    }
}

impl Numbers {
    fn admit(&self, number: i128) -> bool {
        self.least.is_none_or(|it| i128::from(it) <= number) && self.most.is_none_or(|it| number <= it.into())
    }

    /// Does every number fit?
    fn admit_all(&self) -> bool {
        self.only == Only::Any && self.least.is_none() && self.most.is_none()
    }
}

impl Texts {
    fn admit(&self, text: &str) -> bool {
        let is_among = self.among.as_ref().is_none_or(|it| it.iter().any(|it| **it == *text));
        // Counting is only needed where there is a limit.
        let fits = |length: super::Length| {
            let is_open = length.least == 0 && length.most == u64::MAX;
            is_open || length.admits(text.chars().count() as u64)
        };
        is_among && fits(self.length) && self.class.as_ref().is_none_or(|it| it.matches(text))
    }
}
