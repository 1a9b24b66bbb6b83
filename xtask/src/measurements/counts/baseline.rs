//! The baseline of counts, and the comparison with it.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::callgrind::Counts;
use crate::measurements::page::group_digits;

/// The counts of each case.
pub(super) type CaseCounts = BTreeMap<String, Counts>;

/// The allowed growth, as a factor.
const TOLERANCE: f64 = 1.10;

/// The allowed growth of allocations; cases with several callers vary.
const ALLOCATION_TOLERANCE: f64 = 0.5;

/// The counts by compiler and lock file.
#[derive(Deserialize, Serialize)]
pub(super) struct Baseline(BTreeMap<String, CaseCounts>);

/// The result of a comparison.
pub(super) struct Comparison {
    /// All counts, formatted.
    pub(super) table: String,
    /// One message for each case that costs too much.
    pub(super) problems: Vec<String>,
}

impl Baseline {
    /// Parses the file.
    pub(super) fn parse(text: &str) -> Result<Baseline, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// Formats the file.
    pub(super) fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).expect("numbers and strings serialize") + "\n"
    }

    /// Replaces an entry, and removes those of other lock files.
    pub(super) fn renew(&mut self, key: &str, counts: CaseCounts) {
        let lock = |key: &str| key.rsplit_once(' ').map(|it| it.1.to_owned());
        let now = lock(key);
        self.0.retain(|it, _| lock(it) == now);
        self.0.insert(key.to_owned(), counts);
    }

    /// Whether it has an entry for this key.
    pub(super) fn has_entry(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// Compares counts with those of the entry for this key.
    pub(super) fn compare(&self, key: &str, counts: &CaseCounts) -> Comparison {
        let before = self.0.get(key);
        let mut problems = Vec::new();
        let mut table = format!(
            "{:<28} {:>14} {:>8} {:>12} {:>8}\n",
            "counted with callgrind", "instructions", "before", "allocations", "before"
        );
        for (name, now) in counts {
            let old = before.and_then(|it| it.get(name));
            let ratio = |now: f64, then: Option<f64>| {
                then.filter(|it| *it > 0.0).map_or("-".to_owned(), |it| format!("{:.2}x", now / it))
            };
            let instructions = old.map(|old| old.instructions as f64);
            let allocations = old.map(|old| old.allocations);
            // Writing to a string does not fail.
            let _ = writeln!(
                table,
                "{name:<28} {:>14} {:>8} {:>12.1} {:>8}",
                now.instructions,
                ratio(now.instructions as f64, instructions),
                now.allocations,
                ratio(now.allocations, allocations)
            );
            let Some(old) = old else { continue };
            let problem = |what: &str, now: f64, then: f64| {
                format!("{name} costs {now:.0} {what}, and {then:.0} before")
            };
            let (before, after) = (old.instructions as f64, now.instructions as f64);
            if after > before * TOLERANCE {
                problems.push(problem("instructions", after, before));
            }
            if now.allocations > (old.allocations * TOLERANCE).max(old.allocations + ALLOCATION_TOLERANCE) {
                problems.push(problem("allocations", now.allocations, old.allocations));
            }
        }
        // A case that disappears must be removed from the baseline on purpose.
        let removed = before.into_iter().flatten().filter(|(name, _)| !counts.contains_key(*name));
        problems.extend(removed.map(|(name, _)| format!("{name} is not counted any more")));
        Comparison { table, problems }
    }
}

/// The counts as a table of the page.
pub(super) fn counts_table(counts: &CaseCounts, key: &str) -> String {
    let compiler = key.rsplit_once(' ').map_or(key, |it| it.0);
    let mut res =
        format!("Counted with {compiler}.\n\n| case | instructions | allocations |\n|---|---|---|\n");
    for (name, Counts { instructions, allocations }) in counts {
        // Writing to a string does not fail.
        let _ = writeln!(res, "| `{name}` | {} | {allocations:.1} |", group_digits(*instructions as f64));
    }
    res
}

/// The key of an entry: the compiler's version and a hash (FNV-1a) of the lock file.
pub(super) fn baseline_key(version: &str, lock: &str) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in lock.bytes().filter(|byte| *byte != b'\r') {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let version: Vec<&str> = version.split_whitespace().take(2).collect();
    format!("{} {hash:016x}", version.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(all: &[(&str, f64, f64)]) -> CaseCounts {
        let case_counts = |(name, instructions, allocations): &(&str, f64, f64)| {
            ((*name).to_owned(), Counts { instructions: *instructions as i64, allocations: *allocations })
        };
        all.iter().map(case_counts).collect()
    }

    fn baseline(key: &str, all: &[(&str, f64, f64)]) -> Baseline {
        let mut res = Baseline::parse("{}").unwrap();
        res.renew(key, counts(all));
        Baseline::parse(&res.to_text()).unwrap()
    }

    #[track_caller]
    fn check(before: (f64, f64), now: (f64, f64), want: &[&str]) {
        let comparison =
            baseline("k 1", &[("a", before.0, before.1)]).compare("k 1", &counts(&[("a", now.0, now.1)]));
        assert_eq!(comparison.problems, want);
    }

    #[test]
    fn growth_over_a_tenth_is_a_problem() {
        check((10_000.0, 7.0), (11_000.0, 7.0), &[]);
        check((10_000.0, 7.0), (5_000.0, 2.0), &[]);
        check((10_000.0, 7.0), (11_001.0, 7.0), &["a costs 11001 instructions, and 10000 before"]);
        check((10_000.0, 7.0), (10_000.0, 8.0), &["a costs 8 allocations, and 7 before"]);
        check((10_000.0, 3.0), (10_000.0, 3.4), &[]);
        check((10_000.0, 0.0), (10_000.0, 1.0), &["a costs 1 allocations, and 0 before"]);
    }

    #[test]
    fn a_removed_case_is_a_problem_and_a_new_one_is_not() {
        let before = baseline("k 1", &[("a", 1.0, 1.0)]);
        let comparison = before.compare("k 1", &counts(&[("b", 1.0, 1.0)]));
        assert_eq!(comparison.problems, ["a is not counted any more"]);
        assert!(before.has_entry("k 1") && !before.has_entry("k 2"));
    }

    #[test]
    fn renewing_removes_entries_of_other_lock_files() {
        let mut all = baseline("rustc 1.0 1", &[]);
        all.renew("rustc 2.0 1", counts(&[]));
        assert_eq!(all.0.keys().collect::<Vec<_>>(), ["rustc 1.0 1", "rustc 2.0 1"]);
        all.renew("rustc 2.0 2", counts(&[]));
        assert_eq!(all.0.keys().collect::<Vec<_>>(), ["rustc 2.0 2"]);
    }

    #[test]
    fn a_key_depends_on_compiler_and_lock_file() {
        assert_eq!(baseline_key("rustc 1.95.0 (5980 2026-04-14)\n", ""), "rustc 1.95.0 cbf29ce484222325");
        assert_ne!(baseline_key("rustc 1.95.0", "a"), baseline_key("rustc 1.95.0", "b"));
        assert_eq!(baseline_key("rustc 1.95.0", "a\r\n"), baseline_key("rustc 1.95.0", "a\n"));
    }
}
