//! Interns keys: a file of many servers repeats the same few keys.

use std::rc::Rc;

/// The most recent keys. A key that is not found is only allocated again.
#[derive(Default)]
pub(super) struct KeyInterner([Option<Rc<str>>; 32]);

impl KeyInterner {
    /// The interned key.
    pub(super) fn intern(&mut self, text: &str) -> Rc<str> {
        let bytes = text.as_bytes();
        let ends = [bytes.first(), bytes.last()].map(|it| usize::from(it.copied().unwrap_or_default()));
        let place = &mut self.0[(bytes.len() + 7 * ends[0] + 13 * ends[1]) % 32];
        match place {
            Some(known) if **known == *text => Rc::clone(known),
            Some(_) | None => Rc::clone(place.insert(Rc::from(text))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_its_text_and_is_kept_once() {
        let mut keys = KeyInterner::default();
        let first = keys.intern("command");
        assert!(Rc::ptr_eq(&first, &keys.intern("command")));
        // Keys that share a slot do not affect each other.
        for text in ["", "é", "cnmmand", "conmand", "command"] {
            assert_eq!(&*keys.intern(text), text);
        }
    }
}
