//! The hashes of schemas that were asked for lately, so that each call of the same tool need not hash the same text.
//!
//! A tool's schema stays where it is as long as its list does, so where it lies says where to look. That alone proves
//! nothing, for another one may lie there by now: what is told is the hash of the very bytes that are asked for.

/// How many are remembered.
const PLACES: usize = 256;

/// The longest schema that is remembered, in bytes.
const LONGEST: usize = 8 << 10;

/// Schemas with their hashes, each in the place that its address gives it.
#[derive(Default)]
pub(super) struct Hashes(Vec<Option<Known>>);

/// A schema and its hash.
#[derive(Clone)]
struct Known {
    schema: Box<[u8]>,
    hash: [u8; 32],
}

impl Hashes {
    /// The hash of these bytes, if it is remembered.
    pub(super) fn of(&self, schema: &[u8]) -> Option<[u8; 32]> {
        let known = self.0.get(place(schema))?.as_ref()?;
        (*known.schema == *schema).then_some(known.hash)
    }

    /// Remembers the hash of these bytes instead of what was remembered there.
    pub(super) fn learn(&mut self, schema: &[u8], hash: [u8; 32]) {
        if schema.len() > LONGEST {
            return;
        }
        if self.0.is_empty() {
            self.0.resize(PLACES, None);
        }
        self.0[place(schema)] = Some(Known { schema: schema.into(), hash });
    }
}

fn place(schema: &[u8]) -> usize {
    // Tools of one list lie about a KiB apart.
    let address = schema.as_ptr() as usize;
    (address ^ (address >> 8) ^ (address >> 16)) % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_text_in_the_same_place_is_not_mistaken_for_the_one_before() {
        let mut hashes = Hashes::default();
        let mut schema = b"{}".to_vec();
        assert_eq!(hashes.of(&schema), None);
        hashes.learn(&schema, [1; 32]);
        assert_eq!(hashes.of(&schema), Some([1; 32]));
        schema[1] = b']';
        assert_eq!(hashes.of(&schema), None);
        hashes.learn(&schema, [2; 32]);
        assert_eq!(hashes.of(&schema), Some([2; 32]));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut hashes = Hashes::default();
        let long = vec![b' '; LONGEST + 1];
        hashes.learn(&long, [1; 32]);
        assert_eq!(hashes.of(&long), None);
        for at in 0..LONGEST {
            hashes.learn(&long[at..at + 1], [1; 32]);
        }
        assert_eq!(hashes.0.len(), PLACES);
    }
}
