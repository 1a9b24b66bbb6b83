//! How the deserializer hands out what collections and slots hold.

use serde::de::{
    DeserializeSeed, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor,
};

use super::slot::{NULL, Presence, VALUE};
use super::{At, Cursor, Expected, Fault, Pass};
use crate::dialect::policy::KeyRule;
use crate::syntax::{Content, KeyKind, Member, Node};

/// The items of a list.
pub(super) struct Items<'a> {
    pass: &'a Pass,
    at: At,
    items: std::iter::Enumerate<std::slice::Iter<'a, Node>>,
}

impl<'a> Items<'a> {
    pub(super) fn new(pass: &'a Pass, at: At, items: &'a [Node]) -> Items<'a> {
        Items { pass, at, items: items.iter().enumerate() }
    }
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let Some((index, node)) = self.items.next() else { return Ok(None) };
        seed.deserialize(Cursor {
            pass: self.pass,
            node: Some(node),
            at: self.at.item(index, node, self.pass),
        })
        .map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

/// The members of a map of names.
pub(super) struct Names<'a> {
    pass: &'a Pass,
    at: At,
    members: std::slice::Iter<'a, Member>,
    current: Option<&'a Member>,
}

impl<'a> Names<'a> {
    pub(super) fn new(pass: &'a Pass, at: At, members: &'a [Member]) -> Names<'a> {
        Names { pass, at, members: members.iter(), current: None }
    }
}

impl<'de> MapAccess<'de> for Names<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        for member in self.members.by_ref() {
            if member.key.kind == KeyKind::Scalar && self.pass.policy.keys == KeyRule::Text {
                self.pass.bad_key(&self.at, &member.key);
                continue;
            }
            self.current = Some(member);
            return seed.deserialize(member.key.text.into_deserializer()).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let member = self.current.take().ok_or(Fault::Strange)?;
        let cursor =
            Cursor { pass: self.pass, node: Some(&member.value), at: self.at.member(member, self.pass) };
        seed.deserialize(cursor)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.members.len())
    }
}

/// The fields of a struct: those that are there in the order of the file, then those that are not.
///
/// Serde is told a field by its number among those it knows, so that it need not compare names once more.
pub(super) struct Fields<'a> {
    pass: &'a Pass,
    at: At,
    members: std::slice::Iter<'a, Member>,
    known: &'static [&'static str],
    all: &'a [Member],
    /// The fields that have not come yet, one bit each.
    missing: u64,
    current: Option<(At, Option<&'a Node>)>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(
        pass: &'a Pass,
        at: At,
        members: &'a [Member],
        known: &'static [&'static str],
    ) -> Fields<'a> {
        assert!(known.len() < 64, "a wire struct has fewer fields than a word has bits");
        let missing = (1 << known.len()) - 1;
        let at = at.with_fields(known, pass);
        Fields { pass, at, members: members.iter(), known, all: members, missing, current: None }
    }
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let withheld = self.pass.policy.withheld;
        for member in self.members.by_ref() {
            let text = &*member.key.text;
            let number = self.known.iter().position(|it| *it == text).filter(|_| !withheld.contains(&text));
            let Some(number) = number else {
                self.pass.unknown_key(&self.at, &member.key, self.known, self.all);
                continue;
            };
            self.missing &= !(1 << number);
            self.current = Some((self.at.member(member, self.pass), Some(&member.value)));
            return seed.deserialize((number as u64).into_deserializer()).map(Some);
        }
        if self.missing == 0 {
            return Ok(None);
        }
        let number = self.missing.trailing_zeros();
        self.missing &= self.missing - 1;
        self.current = Some((self.at.field(number as u8), None));
        seed.deserialize(u64::from(number).into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let (at, node) = self.current.take().ok_or(Fault::Strange)?;
        seed.deserialize(Cursor { pass: self.pass, node, at })
    }
}

/// What the slot of a field that is there is told: its place and what was found there as three numbers, which come as
/// keys, and the value. Where that cannot be read, it is reported here, and the slot is told no more than that.
pub(super) struct Slotted<'a> {
    cursor: Cursor<'a>,
    words: [u64; 3],
    told: usize,
}

impl<'a> Slotted<'a> {
    pub(super) fn new(cursor: Cursor<'a>, node: &Node, presence: Presence) -> Slotted<'a> {
        let found = match node.content() {
            Content::Null if presence == Presence::Nullable => NULL,
            _ => VALUE,
        };
        Slotted { cursor, words: cursor.at.to_words(found), told: 0 }
    }
}

impl<'de> MapAccess<'de> for Slotted<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        let Some(word) = self.words.get(self.told) else { return Ok(None) };
        self.told += 1;
        seed.deserialize((*word).into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let Cursor { pass, node, at } = self.cursor;
        if node.is_some_and(|it| matches!(it.content(), Content::Broken)) {
            return Err(Fault::Strange);
        }
        seed.deserialize(self.cursor).map_err(|fault| {
            pass.fault(fault, &at);
            Fault::Strange
        })
    }
}

/// A value of an enum that is chosen by shape.
pub(super) struct Shaped<'a> {
    pub(super) cursor: Cursor<'a>,
    pub(super) shape: &'static str,
}

impl<'a, 'de> EnumAccess<'de> for Shaped<'a> {
    type Error = Fault;
    type Variant = Shaped<'a>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self::Variant), Fault> {
        Ok((seed.deserialize(self.shape.into_deserializer())?, self))
    }
}

impl<'de> VariantAccess<'de> for Shaped<'_> {
    type Error = Fault;

    fn unit_variant(self) -> Result<(), Fault> {
        Err(Fault::Strange)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        seed.deserialize(self.cursor)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Fault> {
        Err(Fault::Type { expected: Expected::Mapping, found: "something else" })
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, Fault> {
        Err(Fault::Strange)
    }
}
