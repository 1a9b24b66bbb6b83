//! Errors of a comparison and of a folder of releases.

use std::io;
use std::path::PathBuf;

/// One of the two schemas of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "lowercase")]
#[expect(clippy::exhaustive_enums, reason = "a comparison has two schemas")]
pub enum Side {
    /// The earlier version.
    Old,
    /// The later version.
    New,
}

/// Two schemas cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A document is not a JSON Schema.
    #[error("the {side} document is not a JSON Schema: {message}")]
    NotASchema {
        /// The document.
        side: Side,
        /// The reason.
        message: String,
    },
    /// A document is nested deeper than [`MAX_DEPTH`](crate::MAX_DEPTH).
    #[error("the {side} document is nested too deeply")]
    TooDeep {
        /// The document.
        side: Side,
    },
    /// A document has more values than [`MAX_VALUES`](crate::MAX_VALUES).
    #[error("the {side} document is too large")]
    TooLarge {
        /// The document.
        side: Side,
    },
}

/// A folder of releases cannot be used, or a schema does not agree with it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// A file could not be read or written.
    #[error("could not access {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file is not valid JSON, or a list of digests is malformed.
    #[error("{} is invalid: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The reason.
        message: String,
    },
    /// A version is not `major.minor.patch`.
    #[error("`{0}` is not a release version: write `major.minor.patch` without a suffix")]
    Version(String),
    /// A released file was changed.
    #[error("{} does not match its digest: restore it, released files never change", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A released file was removed.
    #[error("{} is missing, although it has a digest: restore it, released files never change", path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// A file in the folder has no digest in the list.
    #[error("{} has no digest: remove it, and let the test write it", path.display())]
    Unlisted {
        /// The file.
        path: PathBuf,
    },
    /// A version is released with another schema.
    #[error(
        "{version} is already released with another schema: raise the version before its schema is released"
    )]
    AlreadyReleased {
        /// The version.
        version: String,
    },
    /// The schemas cannot be compared.
    #[error("could not compare {version} with the current schema")]
    Comparison {
        /// The released version.
        version: String,
        /// The cause.
        #[source]
        source: Error,
    },
}
