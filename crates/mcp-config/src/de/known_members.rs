//! The members of a mapping whose keys are in a table, not in a serde struct.

use serde::Deserialize;

use crate::de::{Location, NullableField, ReadContext};
use crate::syntax::Node;

/// The members of a mapping with known keys.
pub(crate) struct KnownMembers<'a> {
    context: &'a ReadContext,
    node: &'a Node,
    at: Location,
    known: &'static [&'static str],
    missing: Location,
}

impl<'a> KnownMembers<'a> {
    /// Reports each key that is not `known`.
    pub(crate) fn new(
        node: &'a Node,
        at: Location,
        known: &'static [&'static str],
        context: &'a ReadContext,
    ) -> KnownMembers<'a> {
        let members = node.members().unwrap_or_default();
        for member in members.iter().filter(|it| !known.contains(&&*it.key.text)) {
            context.unknown_key(&at, &member.key, known, members);
        }
        KnownMembers { context, node, at, known, missing: at.missing_fields(known, context) }
    }

    /// The value of the known key with this number. `None` if the mapping does not have it.
    pub(crate) fn read<'de, T: Deserialize<'de>>(&self, number: usize) -> Option<NullableField<T>> {
        let member = self.node.get(self.known[number])?;
        self.context.read(&member.value, &self.at.member(member, self.context))
    }

    /// A field without this key.
    pub(crate) fn absent<T>(&self, number: usize) -> NullableField<T> {
        NullableField::absent(self.missing.missing_field(number as u8))
    }
}
