//! Words that are forbidden in a crate or in a pure file. Tests may use them.

use super::lists::{Lists, contains};
use crate::error::Violation;
use crate::tree::crate_of;
use crate::tree::rust::RustFile;

/// A point in time, which a pure file may take as an argument.
const INSTANT: &str = "tokio::time::Instant";

/// Words that are forbidden in pure code.
const IMPURE_WORDS: &[&str] = &["tokio", "async", "::now("];

/// Checks every Rust file of the tree.
pub(super) fn check(files: &[RustFile], lists: &Lists) -> Vec<Violation> {
    let mut res = Vec::new();
    for path in &lists.pure_files {
        if !files.iter().any(|file| file.path == *path) {
            res.push(Violation::new(path, 0, "it is in the list of pure files and does not exist"));
        }
    }
    for file in files {
        let Some(name) = crate_of(&file.path) else { continue };
        let mut found: Vec<(usize, String)> = Vec::new();
        let is_pure_file = contains(&lists.pure_files, &file.path);
        if contains(&lists.pure_crates, name) || is_pure_file {
            for word in IMPURE_WORDS {
                let offsets = file.find(word).into_iter();
                let offsets = offsets.filter(|&at| !is_pure_file || !file.code[at..].starts_with(INSTANT));
                found.extend(offsets.map(|at| (at, (*word).to_owned())));
            }
            let std = file.paths.iter().filter(|path| path.root == "std");
            let impure = std.filter(|path| ["fs", "env"].contains(&path.name()));
            found.extend(impure.map(|path| (path.at, format!("std::{}", path.name()))));
        }
        if name != "xtask" && !lists.rmcp.iter().any(|prefix| file.path.starts_with(prefix)) {
            found.extend(file.find("rmcp::").into_iter().map(|at| (at, "rmcp::".to_owned())));
        }
        for (at, word) in found.into_iter().filter(|&(at, _)| !file.is_test(at)) {
            res.push(Violation::new(&file.path, file.line(at), format!("`{word}` is forbidden here")));
        }
    }
    res
}
