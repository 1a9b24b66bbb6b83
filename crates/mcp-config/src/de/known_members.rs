//! The members of a mapping whose keys are in a table, not in a serde struct.

use serde::Deserialize;

use crate::de::{KnownKeys, Location, NullableField, ReadContext};
use crate::syntax::{Member, Node};

/// Reads the members of a mapping by a table of keys.
pub(crate) struct KnownMembers<'a> {
    context: &'a ReadContext,
    at: Location,
    /// The member of each known key. Callers name a key by its index.
    members: Vec<Option<&'a Member>>,
    /// The location from which those of missing fields are derived.
    missing_fields: Location,
}

impl<'a> KnownMembers<'a> {
    /// Finds the members of the known keys, and reports each key that is not read. `find` returns the index of a key.
    pub(crate) fn new(
        node: &'a Node,
        at: Location,
        keys: KnownKeys<'_>,
        find: &dyn Fn(&str) -> Option<usize>,
        context: &'a ReadContext,
    ) -> KnownMembers<'a> {
        let all = node.members().unwrap_or_default();
        let mut members = vec![None; keys.names.len()];
        for member in all {
            match find(&member.key.text) {
                // Of members with one key the first counts.
                Some(index) => members[index] = members[index].or(Some(member)),
                None => context.report_unknown_key(&at, &member.key, keys, all),
            }
        }
        KnownMembers { context, at, members, missing_fields: at.missing_fields(keys.names, context) }
    }

    /// The field of the known key with this index. `None` if the mapping does not have it.
    pub(crate) fn read<'de, T: Deserialize<'de>>(&self, index: usize) -> Option<NullableField<T>> {
        let member = self.members[index]?;
        self.context.read(&member.value, &self.at.member(member, self.context))
    }

    /// The missing field of the known key with this index.
    pub(crate) fn absent<T>(&self, index: usize) -> NullableField<T> {
        NullableField::absent(self.missing_fields.missing_field(index as u8))
    }
}
