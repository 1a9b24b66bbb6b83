//! Keys, kept once for all mappings that have them: a file of many servers is made of the same dozen words.

use std::rc::Rc;

/// The keys that came latest. Which of them are still there makes no difference but in memory.
#[derive(Default)]
pub(super) struct KeyInterner([Option<Rc<str>>; 32]);

impl KeyInterner {
    /// The key of this text.
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
        // One that takes the place of another is itself, and so is the other when it comes again.
        for text in ["", "é", "cnmmand", "conmand", "command"] {
            assert_eq!(&*keys.intern(text), text);
        }
    }
}
