//! Release versions, and whether a step between two of them may break.

use semver::Version;

/// `major.minor.patch` without a suffix: schemas are frozen for releases only.
pub(super) fn parse(text: &str) -> Option<Version> {
    Version::parse(text).ok().filter(|version| version.pre.is_empty() && version.build.is_empty())
}

/// Whether the step from `older` to `newer` may break under semantic versioning: a new major version or, before 1.0.0, a
/// new minor version.
pub(super) fn may_break(older: &Version, newer: &Version) -> bool {
    if (older.major, newer.major) == (0, 0) { newer.minor > older.minor } else { newer.major > older.major }
}
