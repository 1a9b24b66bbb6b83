//! Interns keys, because many servers repeat the same few keys.

use std::rc::Rc;

/// A cache of recent keys. A new key replaces the one in its slot, so a key may be allocated more than once.
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
