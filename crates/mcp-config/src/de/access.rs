//! Serde access types: how the deserializer passes items, members and fields to visitors.

use serde::de::{
    DeserializeSeed, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor,
};

use crate::de::{Expected, KnownKeys, Location, NodeDeserializer, ReadContext, ValueError};
use crate::profile::rules::KeyRule;
use crate::syntax::{Content, KeyKind, Member, Node};

/// Reads an item, a member or a field. Reports the reason if it cannot be read; the returned error then makes the
/// parent fail without a second diagnostic.
fn read_value<'de, T: DeserializeSeed<'de>>(
    seed: T,
    deserializer: NodeDeserializer<'_>,
) -> Result<T::Value, ValueError> {
    let NodeDeserializer { context, node, at } = deserializer;
    seed.deserialize(deserializer).map_err(|error| {
        match (error, node.map(Node::resolved_content)) {
            // The parser has already reported it.
            (_, Some(Content::Broken)) => {}
            (ValueError::WrongType { .. }, None) => context.report_value_error(ValueError::Missing, &at),
            (error, _) => context.report_value_error(error, &at),
        }
        ValueError::Reported
    })
}

/// The items of a list.
pub(super) struct ListAccess<'a> {
    context: &'a ReadContext,
    at: Location,
    items: std::iter::Enumerate<std::slice::Iter<'a, Node>>,
}

impl<'a> ListAccess<'a> {
    pub(super) fn new(context: &'a ReadContext, at: Location, items: &'a [Node]) -> ListAccess<'a> {
        ListAccess { context, at, items: items.iter().enumerate() }
    }
}

impl<'de> SeqAccess<'de> for ListAccess<'_> {
    type Error = ValueError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ValueError> {
        let Some((index, node)) = self.items.next() else { return Ok(None) };
        let at = self.at.item(index, node, self.context);
        read_value(seed, NodeDeserializer { context: self.context, node: Some(node), at }).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

/// The members of a map of names.
pub(super) struct NameMapAccess<'a> {
    context: &'a ReadContext,
    at: Location,
    members: std::slice::Iter<'a, Member>,
    /// The member of the last key: its value is read next.
    current: Option<&'a Member>,
}

impl<'a> NameMapAccess<'a> {
    pub(super) fn new(context: &'a ReadContext, at: Location, members: &'a [Member]) -> NameMapAccess<'a> {
        NameMapAccess { context, at, members: members.iter(), current: None }
    }
}

impl<'de> MapAccess<'de> for NameMapAccess<'_> {
    type Error = ValueError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ValueError> {
        for member in self.members.by_ref() {
            if member.key.kind == KeyKind::Scalar && self.context.rules.key_rule == KeyRule::Text {
                self.context.report_bad_key(&self.at, &member.key);
                continue;
            }
            self.current = Some(member);
            return seed.deserialize(member.key.text.into_deserializer()).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ValueError> {
        let member = self.current.take().ok_or(ValueError::UnsupportedType)?;
        let at = self.at.member(member, self.context);
        read_value(seed, NodeDeserializer { context: self.context, node: Some(&member.value), at })
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.members.len())
    }
}

/// The fields of a struct: first those in the file, in file order, then the missing ones.
///
/// Fields are identified to serde by index, which saves a second name comparison.
pub(super) struct StructAccess<'a> {
    context: &'a ReadContext,
    at: Location,
    members: std::slice::Iter<'a, Member>,
    fields: &'static [&'static str],
    all_members: &'a [Member],
    /// The fields that were not found yet: one bit for each index.
    missing: u128,
    /// The location that all missing fields share; created for the first of them.
    missing_at: Option<Location>,
    /// The field of the last key: its value is read next.
    current: Option<(Location, Option<&'a Node>)>,
}

impl<'a> StructAccess<'a> {
    pub(super) fn new(
        context: &'a ReadContext,
        at: Location,
        members: &'a [Member],
        fields: &'static [&'static str],
    ) -> StructAccess<'a> {
        assert!(fields.len() < 128, "a serde struct has fewer fields than a word has bits");
        let missing = (1 << fields.len()) - 1;
        let (members, all_members) = (members.iter(), members);
        StructAccess { context, at, members, fields, all_members, missing, missing_at: None, current: None }
    }
}

impl<'de> MapAccess<'de> for StructAccess<'_> {
    type Error = ValueError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ValueError> {
        let unsupported = self.context.rules.unsupported_keys;
        for member in self.members.by_ref() {
            let text = &*member.key.text;
            let index =
                self.fields.iter().position(|it| *it == text).filter(|_| !unsupported.contains(&text));
            let Some(index) = index else {
                let keys = KnownKeys {
                    names: self.fields,
                    is_own: &|_| true,
                    foreign_key: &self.context.foreign_key,
                };
                self.context.report_unknown_key(&self.at, &member.key, keys, self.all_members);
                continue;
            };
            self.missing &= !(1 << index);
            self.current = Some((self.at.member(member, self.context), Some(&member.value)));
            return seed.deserialize((index as u64).into_deserializer()).map(Some);
        }
        if self.missing == 0 {
            return Ok(None);
        }
        let index = self.missing.trailing_zeros();
        self.missing &= self.missing - 1;
        let fields =
            *self.missing_at.get_or_insert_with(|| self.at.missing_fields(self.fields, self.context));
        self.current = Some((fields.missing_field(index as u8), None));
        seed.deserialize(u64::from(index).into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ValueError> {
        let (at, node) = self.current.take().ok_or(ValueError::UnsupportedType)?;
        read_value(seed, NodeDeserializer { context: self.context, node, at })
    }
}

/// The content of a field as a serde map: the number of its location as the key, then the value. If the value cannot be
/// read, the error is reported here and the visitor only learns that it failed.
pub(super) struct FieldAccess<'a>(pub(super) NodeDeserializer<'a>);

impl<'de> MapAccess<'de> for FieldAccess<'_> {
    type Error = ValueError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ValueError> {
        seed.deserialize(self.0.at.number().into_deserializer()).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ValueError> {
        if self.0.node.is_some_and(|it| matches!(it.resolved_content(), Content::Broken)) {
            return Err(ValueError::Reported);
        }
        read_value(seed, self.0)
    }
}

/// The content of an enum whose variant is selected by the shape of the node.
pub(super) struct ShapeAccess<'a> {
    pub(super) deserializer: NodeDeserializer<'a>,
    /// The name of the variant: `text`, `mapping` and so on.
    pub(super) shape: &'static str,
}

impl<'a, 'de> EnumAccess<'de> for ShapeAccess<'a> {
    type Error = ValueError;
    type Variant = ShapeAccess<'a>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self::Variant), ValueError> {
        Ok((seed.deserialize(self.shape.into_deserializer())?, self))
    }
}

impl<'de> VariantAccess<'de> for ShapeAccess<'_> {
    type Error = ValueError;

    fn unit_variant(self) -> Result<(), ValueError> {
        Err(ValueError::UnsupportedType)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ValueError> {
        seed.deserialize(self.deserializer)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, ValueError> {
        Err(ValueError::WrongType { expected: Expected::Mapping, found: "something else" })
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, ValueError> {
        Err(ValueError::UnsupportedType)
    }
}
