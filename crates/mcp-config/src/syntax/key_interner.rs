//! Interns keys, because many servers repeat the same few keys, and finds duplicate keys.

use std::collections::HashMap;
use std::rc::Rc;

use crate::syntax::Member;

/// A cache of recent keys. A key that is not found is allocated again.
#[derive(Default)]
pub(super) struct KeyInterner([Option<Rc<str>>; 32]);

impl KeyInterner {
    /// The interned key.
    pub(super) fn intern(&mut self, text: &str) -> Rc<str> {
        // A cheap hash of the length, the first and the last byte.
        let bytes = text.as_bytes();
        let ends = [bytes.first(), bytes.last()].map(|it| usize::from(it.copied().unwrap_or_default()));
        let slot = &mut self.0[(bytes.len() + 7 * ends[0] + 13 * ends[1]) % 32];
        match slot {
            Some(known) if **known == *text => Rc::clone(known),
            Some(_) | None => Rc::clone(slot.insert(Rc::from(text))),
        }
    }
}

/// The index of each key among the members, for large mappings.
#[derive(Default)]
pub(super) struct KeyIndex(HashMap<Rc<str>, usize>);

impl KeyIndex {
    /// The member that has this key.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_share_one_allocation() {
        let mut keys = KeyInterner::default();
        let first = keys.intern("command");
        assert!(Rc::ptr_eq(&first, &keys.intern("command")));
        // Keys that share a slot do not affect each other.
        for text in ["", "é", "cnmmand", "conmand", "command"] {
            assert_eq!(&*keys.intern(text), text);
        }
    }
}
