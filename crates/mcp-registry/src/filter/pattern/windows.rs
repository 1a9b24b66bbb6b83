//! Which patterns of a long list can a name have met? Each pattern is known by four bytes that it asks for, those that
//! the fewest others ask for, too. A name is read once, four bytes at a time, and nearly all of them are nobody's.
//!
//! The answer errs on one side only: a pattern that matches is always among those named.

/// Bytes in a window.
const WINDOW: usize = 4;
/// Bits of a window's hash.
const HASH_BITS: u32 = 12;
/// So many machine words hold a bit for each pattern without going to the heap.
const INLINE: usize = 4;

/// A list of patterns by the windows they are known by.
#[derive(Debug)]
pub(crate) struct Windows {
    /// The hashes of all windows, one bit each.
    hashes: [u64; 1 << HASH_BITS >> 6],
    /// Each window once, sorted, with its patterns: a range of `patterns`.
    windows: Vec<(u32, u32, u32)>,
    /// Positions in the list, by window.
    patterns: Vec<u32>,
    /// Those that have no window and can be met by any name, one bit each.
    anywhere: Vec<u64>,
}

impl Windows {
    pub(crate) fn new(sources: &[String]) -> Windows {
        let mut counts: Vec<u32> = sources.iter().flat_map(|it| of(it)).collect();
        counts.sort_unstable();
        let count = |it: &u32| {
            counts.partition_point(|other| other <= it) - counts.partition_point(|other| other < it)
        };
        let mut anywhere = vec![0; sources.len().div_ceil(64)];
        let mut known: Vec<(u32, u32)> = Vec::with_capacity(sources.len());
        for (at, source) in (0..).zip(sources) {
            match of(source).min_by_key(count) {
                Some(window) => known.push((window, at)),
                None => set(&mut anywhere, at as usize),
            }
        }
        known.sort_unstable();
        let mut res =
            Windows { hashes: [0; 1 << HASH_BITS >> 6], windows: Vec::new(), patterns: Vec::new(), anywhere };
        for (window, pattern) in known {
            set(&mut res.hashes, hash(window));
            let end = res.patterns.len() as u32 + 1;
            res.patterns.push(pattern);
            match res.windows.last_mut().filter(|it| it.0 == window) {
                Some(last) => last.2 = end,
                None => res.windows.push((window, end - 1, end)),
            }
        }
        res
    }

    /// The first answer that `ask` has, asked for those positions of the list that `name` can have met, in order.
    pub(crate) fn first<T>(&self, name: &[u8], mut ask: impl FnMut(usize) -> Option<T>) -> Option<T> {
        let words = self.anywhere.len();
        let (mut few, mut many) = ([[0; INLINE]; 2], Vec::new());
        let (met, seen) = if words <= INLINE {
            let [met, seen] = &mut few;
            (&mut met[..words], &mut seen[..words])
        } else {
            many.resize(2 * words, 0);
            many.split_at_mut(words)
        };
        met.copy_from_slice(&self.anywhere);
        for it in name.windows(WINDOW) {
            let window = number(it);
            if !has(&self.hashes, hash(window)) {
                continue;
            }
            let Ok(at) = self.windows.binary_search_by_key(&window, |it| it.0) else { continue };
            // A window that a name has everywhere is one question, not one for each place.
            if has(seen, at) {
                continue;
            }
            set(seen, at);
            let (_, start, end) = self.windows[at];
            self.patterns[start as usize..end as usize].iter().for_each(|it| set(met, *it as usize));
        }
        for (word, bits) in met.iter().enumerate() {
            let mut bits = *bits;
            while bits != 0 {
                if let Some(answer) = ask(word * 64 + bits.trailing_zeros() as usize) {
                    return Some(answer);
                }
                bits &= bits - 1;
            }
        }
        None
    }
}

/// The windows of what a pattern asks for between its `*`.
fn of(pattern: &str) -> impl Iterator<Item = u32> {
    pattern.as_bytes().split(|it| *it == b'*').flat_map(|run| run.windows(WINDOW)).map(number)
}

fn number(window: &[u8]) -> u32 {
    u32::from_le_bytes(window.try_into().expect("a window has four bytes"))
}

fn hash(window: u32) -> usize {
    (window.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize
}

fn has(bits: &[u64], at: usize) -> bool {
    bits[at / 64] & 1 << (at % 64) != 0
}

fn set(bits: &mut [u64], at: usize) {
    bits[at / 64] |= 1 << (at % 64);
}
