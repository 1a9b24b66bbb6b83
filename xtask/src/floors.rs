//! `cargo xtask floors`: which crate may know what.
//!
//! The house stands on floors, and a crate knows only what is below it. The lists are data ([`lists`]); the checks
//! are functions of the files' texts. There is no way to excuse a single line: what must be allowed gets into a list,
//! where a reader sees it.

mod dependencies;
mod lists;
mod numbers;
mod unsafety;
mod words;

use crate::failure::{Failure, Trespass};
use crate::rust::RustFile;
use crate::tree::{self, Source};

/// Judges the tree on disk.
pub(crate) fn run() -> Result<(), Failure> {
    Failure::of(check(&tree::sources()?, lists::PURE_FILES))
}

fn check(sources: &[Source], pure_files: &[&str]) -> Vec<Trespass> {
    let files = RustFile::all(sources);
    let mut res = dependencies::check(sources);
    res.extend(words::check(&files, pure_files));
    res.extend(numbers::check(&files));
    res.extend(unsafety::check(&files));
    res
}

/// The name of the crate whose folder `path` is in.
fn crate_of(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.split('/').next()
}

#[cfg(test)]
mod tests;
