//! Version numbers of releases, and when one of them may refuse what another took.

use std::fmt;

/// `major.minor.patch`, and nothing behind it: a frozen schema belongs to a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    major: u32,
    minor: u32,
    patch: u32,
}

impl Version {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split('.').map(|it| it.parse::<u32>().ok());
        let res = Self { major: numbers.next()??, minor: numbers.next()??, patch: numbers.next()?? };
        // `01.0.0` reads as a number and is no version.
        (numbers.next().is_none() && res.to_string() == text).then_some(res)
    }

    /// Whether a step from `older` to here may break, as semantic versioning has it: a new major version; before
    /// 1.0.0, a new minor one.
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
