//! The sum of what the test binaries report.

use std::fmt;

/// Tests of all binaries so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Totals {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

impl Totals {
    /// Counts a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; …`; any
    /// other line counts nothing. What a filter left out was not asked for, so it is not skipped.
    pub(super) fn add_line(&mut self, line: &str) {
        let Some(result) = line.strip_prefix("test result: ") else { return };
        let Some((_, counts)) = result.split_once(". ") else { return };
        for part in counts.split(';') {
            let mut words = part.split_whitespace();
            let Some(count) = words.next().and_then(|it| it.parse::<u64>().ok()) else { continue };
            match words.next() {
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
