//! The members of a mapping whose keys are in a table, not in a serde struct.

use serde::Deserialize;

use crate::de::{KnownKeys, Location, NullableField, ReadContext};
use crate::syntax::Node;

/// Reads the members of a mapping by a table of keys.
pub(crate) struct KnownMembers<'a> {
    context: &'a ReadContext,
    node: &'a Node,
    at: Location,
    /// The known keys, which callers name by their index.
    known: &'static [&'static str],
    /// The location from which those of missing fields are derived.
    missing_fields: Location,
}

impl<'a> KnownMembers<'a> {
    /// Reports each key that is not read.
    pub(crate) fn new(
        node: &'a Node,
        at: Location,
        keys: KnownKeys<'_>,
        context: &'a ReadContext,
    ) -> KnownMembers<'a> {
        let known = keys.names;
        let members = node.members().unwrap_or_default();
        for member in members.iter().filter(|it| !known.contains(&&*it.key.text)) {
            context.report_unknown_key(&at, &member.key, keys, members);
        }
        KnownMembers { context, node, at, known, missing_fields: at.missing_fields(known, context) }
    }

    /// The field of the known key with this index. `None` if the mapping does not have it.
    pub(crate) fn read<'de, T: Deserialize<'de>>(&self, index: usize) -> Option<NullableField<T>> {
        let member = self.node.get(self.known[index])?;
        self.context.read(&member.value, &self.at.member(member, self.context))
    }

    /// The missing field of the known key with this index.
    pub(crate) fn absent<T>(&self, index: usize) -> NullableField<T> {
        NullableField::absent(self.missing_fields.missing_field(index as u8))
    }
}
