//! Rust files that no `mod` declares. Such a file is never compiled, so its tests never fail.

use std::collections::BTreeSet;

use crate::error::Violation;
use crate::tree::rust::{RustFile, is_cargo_target};

/// Checks every Rust file of the tree.
pub(super) fn check(files: &[RustFile]) -> Vec<Violation> {
    let declared: BTreeSet<&str> = files.iter().flat_map(|file| &file.modules).map(String::as_str).collect();
    let orphans = files.iter().filter(|file| !is_cargo_target(&file.path)).filter(|file| {
        let stem = file.path.trim_end_matches(".rs");
        !declared.contains(stem.strip_suffix("/mod").unwrap_or(stem))
    });
    orphans
        .map(|file| Violation::new(&file.path, 0, "no `mod` declares it, so it is never compiled"))
        .collect()
}
