//! Does a pattern match a name? `*` is any run of characters, everything else is itself, case included (DM-036).
//!
//! A list of patterns is prepared once. Then a name that does not begin, end, or spell as a pattern asks is turned
//! away by three comparisons of machine words; what is left is compared byte by byte, in a time bounded by the
//! product of both lengths. A long list is not gone through at all: it is asked which of its patterns a name can have
//! met (see [`windows`]).

mod windows;

use windows::Windows;

/// A list of patterns, prepared.
#[derive(Debug)]
pub(crate) struct Patterns<'a> {
    /// The patterns as written.
    sources: &'a [String],
    /// What each asks of a name, in the same order; nothing where preparing would cost more than it saves.
    demands: Vec<Demand>,
    /// For a list that is long enough to be worth it.
    windows: Option<Box<Windows>>,
}

/// From this length on a list is not gone through for each name.
const LONG: usize = 12;

impl<'a> Patterns<'a> {
    pub(crate) fn new(sources: &'a [String]) -> Patterns<'a> {
        Patterns {
            sources,
            demands: sources.iter().map(|it| Demand::of(it)).collect(),
            windows: (sources.len() >= LONG).then(|| Box::new(Windows::new(sources))),
        }
    }

    /// Not prepared at all: for a single name.
    pub(crate) fn for_one(sources: &'a [String]) -> Patterns<'a> {
        Patterns { sources, demands: Vec::new(), windows: None }
    }

    /// Is there no pattern?
    pub(crate) fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// The first pattern that matches the whole of `name`.
    pub(crate) fn first(&self, name: &str) -> Option<&'a str> {
        if self.demands.is_empty() {
            return self.sources.iter().find(|it| matches(it, name)).map(String::as_str);
        }
        let Some(windows) = &self.windows else {
            let mut outline = Outline::of(name.as_bytes());
            return (0..self.sources.len()).find_map(|at| self.matching(at, &mut outline, name));
        };
        let mut outline = None;
        windows.first(name.as_bytes(), |at| {
            let outline = outline.get_or_insert_with(|| Outline::of(name.as_bytes()));
            self.matching(at, outline, name)
        })
    }

    /// The pattern at this place, where it matches.
    fn matching(&self, at: usize, outline: &mut Outline, name: &str) -> Option<&'a str> {
        let source = self.sources[at].as_str();
        (self.demands[at].allows(outline, name) && matches(source, name)).then_some(source)
    }
}

/// What every name that a pattern matches must have. Names without it need no closer look.
#[derive(Debug)]
struct Demand {
    /// The first bytes, before any `*`.
    head: Word,
    /// The last bytes, after any `*`.
    tail: Word,
    /// Pairs of neighbouring bytes.
    pairs: u64,
}

/// Up to eight bytes, and which of them count.
#[derive(Debug)]
struct Word {
    bytes: u64,
    mask: u64,
}

/// What a name has.
struct Outline {
    head: u64,
    tail: u64,
    /// Taken down when they are asked for: most names are turned away by their ends.
    pairs: Option<u64>,
}

impl Demand {
    fn of(pattern: &str) -> Demand {
        let bytes = pattern.as_bytes();
        let runs = || bytes.split(|it| *it == b'*');
        let (first, last) = (runs().next().unwrap_or_default(), runs().next_back().unwrap_or_default());
        Demand {
            head: Word { bytes: head(first), mask: head(&[0xff; 8][..first.len().min(8)]) },
            tail: Word { bytes: tail(last), mask: tail(&[0xff; 8][..last.len().min(8)]) },
            pairs: runs().map(pairs_of).fold(0, |res, it| res | it),
        }
    }

    /// A name shorter than a demand is filled up with zeros, which can only let it through to the closer look.
    fn allows(&self, outline: &mut Outline, name: &str) -> bool {
        let head = (outline.head ^ self.head.bytes) & self.head.mask;
        let tail = (outline.tail ^ self.tail.bytes) & self.tail.mask;
        let pairs = &mut outline.pairs;
        head | tail == 0 && self.pairs & !*pairs.get_or_insert_with(|| pairs_of(name.as_bytes())) == 0
    }
}

impl Outline {
    fn of(name: &[u8]) -> Outline {
        Outline { head: head(name), tail: tail(name), pairs: None }
    }
}

/// The first eight bytes.
fn head(bytes: &[u8]) -> u64 {
    let mut res = [0; 8];
    let length = bytes.len().min(8);
    res[..length].copy_from_slice(&bytes[..length]);
    u64::from_le_bytes(res)
}

/// The last eight bytes.
fn tail(bytes: &[u8]) -> u64 {
    let mut res = [0; 8];
    let length = bytes.len().min(8);
    res[8 - length..].copy_from_slice(&bytes[bytes.len() - length..]);
    u64::from_le_bytes(res)
}

/// A set of the pairs of neighbouring bytes, one bit for each 64th of all pairs.
fn pairs_of(bytes: &[u8]) -> u64 {
    bytes.windows(2).fold(0, |res, it| {
        let pair = u32::from(it[0]) << 8 | u32::from(it[1]);
        res | 1 << (pair.wrapping_mul(0x9e37_79b1) >> 26)
    })
}

/// Matches the whole of `name`.
///
/// On a mismatch only the latest `*` takes one more byte, for an earlier one could not do better: the time is at most
/// the product of both lengths, whatever the pattern. Bytes are enough, since a UTF-8 sequence matches only itself.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut at, mut read) = (0, 0);
    let mut star = None;
    while read < name.len() {
        if pattern.get(at) == Some(&b'*') {
            star = Some((at, read));
            at += 1;
        } else if pattern.get(at) == Some(&name[read]) {
            at += 1;
            read += 1;
        } else if let Some((star_at, taken)) = star {
            star = Some((star_at, taken + 1));
            at = star_at + 1;
            read = taken + 1;
        } else {
            return false;
        }
    }
    pattern[at..].iter().all(|it| *it == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `rows` are `pattern name` with `=` for a match and `!` for none between them.
    #[track_caller]
    fn check(rows: &str) {
        for row in rows.split(',') {
            let row = row.trim();
            let at = row.find(['=', '!']).expect("a row has a sign");
            let (pattern, name, want) = (&row[..at], &row[at + 1..], row[at..].starts_with('='));
            assert_eq!(matches(pattern, name), want, "{row}");
            for others in [1, LONG] {
                let mut list = vec!["no such".to_owned(); others];
                list.push(pattern.to_owned());
                assert_eq!(
                    Patterns::new(&list).first(name),
                    want.then_some(pattern),
                    "{row}, behind {others}"
                );
            }
        }
    }

    #[test]
    fn dm_036_a_star_is_any_run_and_nothing_else_is_special() {
        check(
            "*=x, *=, !x, =, a=a, a!b, a!, a*=a, a*=ab, *a=ba, *a*=bab, a*b=ab, a*b!abx, a*a=aa, a*a!a, ab*ba=abba",
        );
        check(
            "a*b*c!acb, *ab*ab=abab, a.c!abc, a?c!abc, [ab]!a, a**b=ab, **=, a*ab!ab, *aab=aaab, a*bc*bc!abc",
        );
        check(
            "browser_*=browser_click, browser_*!xbrowser_a, *_unsafe=_unsafe, *_unsafe!a_unsafe_b, A*!a, é*=éa, *é!a",
        );
    }

    #[test]
    fn long_heads_and_tails_and_strange_bytes_are_seen_through() {
        check(
            "abcdefghij*=abcdefghijk, abcdefghij*!abcdefghix, *abcdefghij=xabcdefghij, *abcdefghij!xxbcdefghij",
        );
        check(
            "ab\0*!ab, *\0ab!ab, ab\0!ab, \0*!a, abc*abc!abc, abc*bcd!abcd, *needle*=a needle b, *needle*!nedle",
        );
    }

    #[test]
    fn the_first_of_several_is_named() {
        let list = ["x*", "a*", "*b", "ab"].map(str::to_owned);
        assert_eq!(Patterns::new(&list).first("ab"), Some("a*"));
        assert_eq!(Patterns::new(&list).first("bb"), Some("*b"));
        assert_eq!(Patterns::new(&list).first("c"), None);
    }

    /// A list of `count` patterns, three of which match the name: the first of them is named, wherever they stand.
    #[track_caller]
    fn check_long(count: usize, first: usize) {
        let mut list: Vec<String> = (0..count).map(|it| format!("*needle{it}_*")).collect();
        for (at, pattern) in ["*hay*", "*stack*needle*", "*e"].into_iter().enumerate() {
            list[first + at] = pattern.to_owned();
        }
        let patterns = Patterns::new(&list);
        assert_eq!(patterns.first("haystack with a needle"), Some("*hay*"));
        assert_eq!(patterns.first("stack with a needle"), Some("*stack*needle*"));
        assert_eq!(patterns.first("a needle"), Some("*e"));
        assert_eq!(patterns.first("needle1_"), Some("*needle1_*").filter(|_| first > 1));
        assert_eq!(patterns.first("nothing"), None);
    }

    #[test]
    fn a_long_list_answers_as_a_short_one_does() {
        for (count, first) in [(20, 0), (20, 17), (64, 61), (300, 2), (1_000, 997)] {
            check_long(count, first);
        }
    }

    #[test]
    fn a_pattern_made_to_be_slow_is_not() {
        let pattern = format!("{}b", "a*".repeat(2_000));
        assert!(!matches(&pattern, &"a".repeat(20_000)));
        // Many that all look for what stands everywhere in the name: each is compared once.
        let list = vec!["*aaaa*b".to_owned(); 100];
        assert_eq!(Patterns::new(&list).first(&"a".repeat(100_000)), None);
    }
}
