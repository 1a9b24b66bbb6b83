//! The schemas that were asked for lately, so that each call of the same tool need neither hash nor look up the same text.
//!
//! A tool's schema stays where it is as long as its list does, so where it lies says where to look. That alone proves
//! nothing, for another one may lie there by now: what is told is what was made of the very bytes that are asked for.
//! What the cache has let go is not kept here either.

use std::sync::{Arc, Weak};

use super::Entry;

/// How many are remembered.
const PLACES: usize = 256;

/// The longest schema that is remembered, in bytes.
const LONGEST: usize = 8 << 10;

/// Schemas with what was made of them, each in the place that its address gives it.
#[derive(Default)]
pub(super) struct Lately(Vec<Option<Known>>);

/// A schema and what was made of it.
#[derive(Clone)]
struct Known {
    schema: Box<[u8]>,
    entry: Weak<Entry>,
}

impl Lately {
    /// What was made of these bytes, if it is remembered.
    pub(super) fn of(&self, schema: &[u8]) -> Option<Arc<Entry>> {
        let known = self.0.get(place(schema))?.as_ref()?;
        if *known.schema == *schema { known.entry.upgrade() } else { None }
    }

    /// Remembers what was made of these bytes instead of what was remembered there.
    pub(super) fn learn(&mut self, schema: &[u8], entry: &Arc<Entry>) {
        if schema.len() > LONGEST {
            return;
        }
        if self.0.is_empty() {
            self.0.resize(PLACES, None);
        }
        self.0[place(schema)] = Some(Known { schema: schema.into(), entry: Arc::downgrade(entry) });
    }
}

fn place(schema: &[u8]) -> usize {
    // Tools of one list lie about a KiB apart.
    let address = schema.as_ptr() as usize;
    (address ^ (address >> 8) ^ (address >> 16)) % PLACES
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    fn entry() -> Arc<Entry> {
        Arc::new(Entry { compiled: Err("only an example".to_owned()), bytes: 0, used: AtomicU64::new(0) })
    }

    #[track_caller]
    fn check(lately: &Lately, schema: &[u8], want: Option<&Arc<Entry>>) {
        let is_same = |it: &Arc<Entry>| want.is_some_and(|want| Arc::ptr_eq(it, want));
        assert_eq!(lately.of(schema).is_some_and(|it| is_same(&it)), want.is_some());
        assert_eq!(lately.of(schema).is_some(), want.is_some());
    }

    #[test]
    fn another_text_in_the_same_place_is_not_mistaken_for_the_one_before() {
        let mut lately = Lately::default();
        let (one, other) = (entry(), entry());
        let mut schema = b"{}".to_vec();
        check(&lately, &schema, None);
        lately.learn(&schema, &one);
        check(&lately, &schema, Some(&one));
        schema[1] = b']';
        check(&lately, &schema, None);
        lately.learn(&schema, &other);
        check(&lately, &schema, Some(&other));
        drop(other);
        check(&lately, &schema, None);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut lately, entry) = (Lately::default(), entry());
        let long = vec![b' '; LONGEST + 1];
        lately.learn(&long, &entry);
        check(&lately, &long, None);
        for at in 0..LONGEST {
            lately.learn(&long[at..at + 1], &entry);
        }
        assert_eq!(lately.0.len(), PLACES);
    }
}
