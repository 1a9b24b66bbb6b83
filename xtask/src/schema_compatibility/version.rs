//! Release versions, and whether a step between two of them may break.

use std::fmt;

/// `major.minor.patch` without a suffix: schemas are frozen for releases only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    major: u32,
    minor: u32,
    patch: u32,
}

impl Version {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split('.').map(|number| number.parse::<u32>().ok());
        let res = Self { major: numbers.next()??, minor: numbers.next()??, patch: numbers.next()?? };
        // `01.0.0` parses as numbers but is not a version.
        (numbers.next().is_none() && res.to_string() == text).then_some(res)
    }

    /// Whether the step from `older` may break under semantic versioning: a new major version or, before 1.0.0, a new
    /// minor version.
    pub(super) fn may_break(self, older: Self) -> bool {
        match (older.major, self.major) {
            (0, 0) => self.minor > older.minor,
            (old, new) => new > old,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}
