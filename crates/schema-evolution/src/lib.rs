//! Comparison of two versions of a JSON Schema.
//!
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
// A type that is exhaustive states the reason for it.
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod annotations;
mod change;
mod compare;
mod document;
mod error;
mod generate;
mod inclusion;
mod keyword;
mod releases;
mod render;
mod samples;
mod witness;

pub use change::{Change, Comparison, Direction, Effect, SchemaUser, Verdict};
pub use compare::compare;
pub use document::{MAX_DEPTH, MAX_VALUES};
pub use error::{Error, ReleaseError, Side};
pub use generate::{Generator, generate};
pub use releases::{ReleaseComparison, Releases, check_release};
pub use render::{render_json, render_sarif, render_text};
/// The version of a release.
#[doc(no_inline)]
pub use semver::Version;
/// The schemas are values of this version.
#[doc(no_inline)]
pub use serde_json;

/// Fails a test if a schema is not compatible with its last release.
///
/// Arguments: the folder of the releases relative to the crate, the current version (`major.minor.patch`),
/// the schema as a `serde_json::Value`, and the [`SchemaUser`]. The test passes if each change is harmless or the
/// step of the version allows breaks. With the environment variable `SCHEMA_EVOLUTION=release`, the schema is
/// also stored as the release of this version. Without the variable, the test only compares, and fails if
/// there is no release yet.
#[macro_export]
macro_rules! assert_compatible {
    ($folder:expr, $version:expr, $schema:expr, $user:expr $(,)?) => {{
        let folder = ::std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join($folder);
        let store = ::std::env::var("SCHEMA_EVOLUTION").is_ok_and(|it| it == "release");
        if let Err(message) = $crate::check_release(&folder, $version, $schema, $user, store) {
            panic!("{message}");
        }
    }};
}
