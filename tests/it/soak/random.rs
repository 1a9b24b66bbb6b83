//! Deterministic pseudo-random numbers.

/// A small generator (xorshift), not for secrets.
#[derive(Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        let mut res = Random(0x9e37_79b9_7f4a_7c15 ^ seed.wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1);
        // Similar seeds give unrelated sequences.
        for _ in 0..8 {
            res.next();
        }
        res
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A generator with another sequence.
    pub(super) fn fork(&mut self) -> Random {
        Random::new(self.next())
    }

    /// A number from 0 up to below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        (self.next() >> 33) as usize % end
    }

    pub(super) fn of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}
