//! How the deserializer hands out what collections and slots hold.

use serde::de::{
    DeserializeSeed, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor,
};

use super::slot::{ABSENT, NULL, Presence, VALUE};
use super::{At, Cursor, Expected, Fault, Pass};
use crate::policy::KeyRule;
use crate::tree::{Content, KeyKind, Member, Node};

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
        seed.deserialize(Cursor { pass: self.pass, node: Some(node), at: self.at.item(index, node) })
            .map(Some)
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
            return seed.deserialize(member.key.text.as_str().into_deserializer()).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let member = self.current.take().ok_or(Fault::Strange)?;
        let cursor = Cursor { pass: self.pass, node: Some(&member.value), at: self.at.member(member) };
        seed.deserialize(cursor)
    }
}

/// The fields of a struct: those that are there in the order of the file, then those that are not.
pub(super) struct Fields<'a> {
    pass: &'a Pass,
    at: At,
    members: std::slice::Iter<'a, Member>,
    fields: std::slice::Iter<'static, &'static str>,
    known: &'static [&'static str],
    all: &'a [Member],
    current: Option<(At, Option<&'a Node>)>,
}

impl<'a> Fields<'a> {
    pub(super) fn new(
        pass: &'a Pass,
        at: At,
        members: &'a [Member],
        known: &'static [&'static str],
    ) -> Fields<'a> {
        Fields { pass, at, members: members.iter(), fields: known.iter(), known, all: members, current: None }
    }
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Fault;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        for member in self.members.by_ref() {
            let withheld = self.pass.policy.withheld.contains(&member.key.text.as_str());
            if withheld || !self.known.contains(&member.key.text.as_str()) {
                self.pass.unknown_key(&self.at, &member.key, self.known, self.all);
                continue;
            }
            self.current = Some((self.at.member(member), Some(&member.value)));
            return seed.deserialize(member.key.text.as_str().into_deserializer()).map(Some);
        }
        for field in self.fields.by_ref() {
            let there = self.all.iter().any(|it| it.key.text == **field);
            if there && !self.pass.policy.withheld.contains(field) {
                continue;
            }
            self.current = Some((self.at.missing(field), None));
            return seed.deserialize((*field).into_deserializer()).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let (at, node) = self.current.take().ok_or(Fault::Strange)?;
        seed.deserialize(Cursor { pass: self.pass, node, at })
    }
}

/// What a slot is told: pointer, start and end of the value, start and end of the key, what was found, and the value,
/// where it could be read.
pub(super) struct Slotted<'a> {
    cursor: Cursor<'a>,
    presence: Presence,
    step: u8,
}

impl<'a> Slotted<'a> {
    pub(super) fn new(cursor: Cursor<'a>, presence: Presence) -> Slotted<'a> {
        Slotted { cursor, presence, step: 0 }
    }

    fn found(&self) -> u8 {
        let Some(node) = self.cursor.node else {
            if self.presence == Presence::Required {
                self.cursor.pass.fault(Fault::Missing, &self.cursor.at);
            }
            return ABSENT;
        };
        match node.content() {
            Content::Null if self.presence == Presence::Nullable => NULL,
            _ => VALUE,
        }
    }
}

impl<'de> SeqAccess<'de> for Slotted<'_> {
    type Error = Fault;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        let at = &self.cursor.at;
        self.step += 1;
        match self.step {
            1 => seed.deserialize(at.pointer.as_str().into_deserializer()).map(Some),
            2 => seed.deserialize(at.span.start.into_deserializer()).map(Some),
            3 => seed.deserialize(at.span.end.into_deserializer()).map(Some),
            4 => seed.deserialize(at.key.start.into_deserializer()).map(Some),
            5 => seed.deserialize(at.key.end.into_deserializer()).map(Some),
            6 => seed.deserialize(self.found().into_deserializer()).map(Some),
            7 => {
                let Cursor { pass, node, at } = &self.cursor;
                if node.is_some_and(|it| matches!(it.content(), Content::Broken)) {
                    return Ok(None);
                }
                match seed.deserialize(Cursor { pass, node: *node, at: at.clone() }) {
                    Ok(value) => Ok(Some(value)),
                    Err(fault) => {
                        pass.fault(fault, at);
                        Ok(None)
                    }
                }
            }
            _ => Ok(None),
        }
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
