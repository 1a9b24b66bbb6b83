//! Checks the property of a fuzz target without a fuzzer, on its seeds and on deterministic mutations of them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::random::Random;

/// The number of mutations for each target.
const MUTATIONS: usize = 400;

/// The maximum length of an input, in bytes.
const MAX_BYTES: usize = 4096;

/// Text that is difficult for parsers.
const TRICKY_TEXTS: &[&[u8]] = &[
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

/// Checks the property on the files of `fuzz/seeds/<target>` and on mutations of them. A panic includes the input.
pub fn check_seeds(target: &str, property: fn(&[u8])) {
    let seeds = read_seeds(target);
    assert!(!seeds.is_empty(), "fuzz/seeds/{target} has no seeds");
    for seed in &seeds {
        check_input(target, property, seed);
    }
    check_input(target, property, b"");
    let mut random = Random::new(target.len() as u64);
    for _ in 0..MUTATIONS {
        let mut input = random.pick(&seeds).clone();
        for _ in 0..=random.below(4) {
            mutate(&mut random, &mut input, &seeds);
        }
        input.truncate(MAX_BYTES);
        check_input(target, property, &input);
    }
}

/// Checks the property on one input. A panic includes the input.
fn check_input(target: &str, property: fn(&[u8]), input: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| property(input))).is_err() {
        panic!("{target} panics for b\"{}\"", input.escape_ascii());
    }
}

/// Reads the seeds of a target in the order of their names.
fn read_seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let listed = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = listed.map(|it| it.expect("the folder is listed").path()).collect();
    paths.sort();
    paths.iter().map(|it| std::fs::read(it).expect("the seed is read")).collect()
}

/// Changes, inserts, removes or copies some bytes.
fn mutate(random: &mut Random, input: &mut Vec<u8>, seeds: &[Vec<u8>]) {
    let range = random.range(input.len());
    match random.below(8) {
        0 if !input.is_empty() => {
            let at = random.below(input.len());
            input[at] ^= 1 << random.below(8);
        }
        0 | 1 => drop(input.splice(range.start..range.start, random.pick(TRICKY_TEXTS).iter().copied())),
        2 => drop(input.splice(range, random.pick(TRICKY_TEXTS).iter().copied())),
        3 => drop(input.drain(range)),
        4 => {
            let copy = input[range].to_vec();
            let at = random.below(input.len() + 1);
            drop(input.splice(at..at, copy));
        }
        5 => {
            let other = random.pick(seeds);
            let part = other[random.range(other.len())].to_vec();
            drop(input.splice(range, part));
        }
        6 => input.truncate(range.start),
        _ => {
            let byte = random.next_u64() as u8;
            input.insert(range.start, byte);
        }
    }
}
