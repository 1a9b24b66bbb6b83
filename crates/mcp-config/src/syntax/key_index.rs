//! Finds a key among the members of a mapping, to report duplicate keys.

use std::collections::HashMap;
use std::rc::Rc;

use crate::syntax::Member;

/// The index of each key among the members of one mapping that is being read.
#[derive(Default)]
pub(super) struct KeyIndex(HashMap<Rc<str>, usize>);

impl KeyIndex {
    /// Finds the member with this key. The index adds the members that are new since the last call, so each call must
    /// pass the same list. Its keys are unique, and it may only grow at its end.
    pub(super) fn find<'a>(&mut self, members: &'a [Member], key: &str) -> Option<&'a Member> {
        // Below this size, a linear search is faster than hashing.
        const MAX_LINEAR_SEARCH: usize = 12;
        if members.len() <= MAX_LINEAR_SEARCH {
            return members.iter().find(|it| &*it.key.text == key);
        }
        let known = self.0.len();
        self.0.extend((known..).zip(&members[known..]).map(|(at, it)| (Rc::clone(&it.key.text), at)));
        self.0.get(key).map(|at| &members[*at])
    }
}
