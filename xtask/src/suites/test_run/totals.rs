//! Totals of all test binaries.

use std::fmt;

/// The counted tests.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Totals {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

impl Totals {
    /// Counts a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; …` and
    /// ignores others. Filtered tests do not count as skipped.
    pub(super) fn add_line(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        let Some((_, counts)) = result.split_once(". ") else { return };
        for part in counts.split(';') {
            let mut parts = part.split_whitespace();
            let Some(count) = parts.next().and_then(|count| count.parse::<u64>().ok()) else { continue };
            match parts.next() {
                Some("passed") => self.passed += count,
                Some("failed") => self.failed += count,
                Some("ignored") => self.skipped += count,
                _ => {}
            }
        }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed, {} skipped", self.passed, self.failed, self.skipped)
    }
}
