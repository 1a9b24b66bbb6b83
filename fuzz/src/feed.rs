//! Runs a fuzz target without a fuzzer on its seeds and on deterministic mutations of them.
//!
//! The tests of each crate include this file by path, so `cargo test` checks the targets on any toolchain. It uses the
//! standard library only.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// The number of mutations for each target.
const ROUNDS: usize = 400;

/// The longest input, in bytes.
const LONGEST: usize = 4096;

/// Text that is difficult for parsers.
const ODD: &[&[u8]] = &[
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"\n",
    b"\r",
    b"\r\n",
    b"\0",
    b"\t",
    b"#",
    b"- ",
    b"&a",
    b"*a",
    b"$",
    b"${",
    b"//",
    b"/*",
    b"*/",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\xc3",
    "é".as_bytes(),
    "\u{2028}".as_bytes(),
    "\u{1f600}".as_bytes(),
    b"\\u0000",
    b"\\ud800",
    b"1e999",
    b"-0",
    b"99999999999999999999",
    b"null",
    b"true",
    b"\x1b[31m",
];

/// Runs `holds` on the files of `fuzz/seeds/<target>` and on mutations of them. A panic includes the input.
pub(crate) fn feed(target: &str, holds: fn(&[u8])) {
    let seeds = seeds(target);
    assert!(!seeds.is_empty(), "fuzz/seeds/{target} has no seeds");
    for seed in &seeds {
        look(target, holds, seed);
    }
    look(target, holds, b"");
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ target.len() as u64);
    for _ in 0..ROUNDS {
        let mut input = random.pick(&seeds).clone();
        for _ in 0..=random.below(4) {
            random.mutate(&mut input, &seeds);
        }
        input.truncate(LONGEST);
        look(target, holds, &input);
    }
}

fn look(target: &str, holds: fn(&[u8]), input: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| holds(input))).is_err() {
        panic!("{target} does not hold for b\"{}\"", input.escape_ascii());
    }
}

/// The seeds in the order of their names.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let listed = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = listed.map(|it| it.expect("a folder can be listed").path()).collect();
    paths.sort();
    paths.iter().map(|it| std::fs::read(it).expect("a seed can be read")).collect()
}

/// Deterministic pseudo-random numbers (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// A range of at most this length.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        let end = start + self.below((length - start).min(64) + 1);
        start..end
    }

    fn mutate(&mut self, input: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let range = self.range(input.len());
        match self.below(8) {
            0 if !input.is_empty() => {
                let at = self.below(input.len());
                input[at] ^= 1 << self.below(8);
            }
            0 | 1 => drop(input.splice(range.start..range.start, self.pick(ODD).iter().copied())),
            2 => drop(input.splice(range, self.pick(ODD).iter().copied())),
            3 => drop(input.drain(range)),
            4 => {
                let copy = input[range].to_vec();
                let at = self.below(input.len() + 1);
                drop(input.splice(at..at, copy));
            }
            5 => {
                let other = self.pick(seeds);
                let part = other[self.range(other.len())].to_vec();
                drop(input.splice(range, part));
            }
            6 => input.truncate(range.start),
            _ => {
                let byte = self.next() as u8;
                input.insert(range.start, byte);
            }
        }
    }
}
