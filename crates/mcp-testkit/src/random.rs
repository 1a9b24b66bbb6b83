//! Deterministic pseudo-random numbers (xorshift). Not for secrets.

use std::time::Duration;

/// A generator with a fixed sequence for each seed.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator. Similar seeds give unrelated sequences.
    pub fn new(seed: u64) -> Random {
        let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ seed.wrapping_mul(0xbf58_476d_1ce4_e5b9) | 1);
        for _ in 0..8 {
            random.next_u64();
        }
        random
    }

    /// Creates a generator with another sequence.
    pub fn fork(&mut self) -> Random {
        Random::new(self.next_u64())
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`; 0 if `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next_u64() >> 33) as usize % end.max(1)
    }

    /// A duration below `limit`, in microseconds.
    pub fn duration(&mut self, limit: Duration) -> Duration {
        Duration::from_micros(self.below(limit.as_micros() as usize) as u64)
    }

    /// One of the items.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// A range of at most 64 indexes within this length.
    pub fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        start..start + self.below((length - start).min(64) + 1)
    }
}
