//! Words that are forbidden in a crate or in a pure file. Tests may use them.

use super::crate_of;
use super::crates::{IMPURE_WORDS, INSTANT, PURE_CRATES, RMCP};
use crate::error::Violation;
use crate::tree::rust::RustFile;

/// Checks every Rust file of the tree. `pure_files` belong to crates that are not pure as a whole.
pub(super) fn check(files: &[RustFile], pure_files: &[&str]) -> Vec<Violation> {
    let mut res = Vec::new();
    for path in pure_files {
        if !files.iter().any(|file| file.path == *path) {
            res.push(Violation::new(path, 0, "it is in the list of pure files and does not exist"));
        }
    }
    for file in files {
        let Some(name) = crate_of(&file.path) else { continue };
        let mut found: Vec<(usize, String)> = Vec::new();
        let is_pure_file = pure_files.contains(&file.path.as_str());
        if PURE_CRATES.contains(&name) || is_pure_file {
            for word in IMPURE_WORDS {
                let offsets = file.find(word).into_iter();
                let offsets = offsets.filter(|&at| !is_pure_file || !file.code[at..].starts_with(INSTANT));
                found.extend(offsets.map(|at| (at, (*word).to_owned())));
            }
            let std = file.paths.iter().filter(|path| path.root == "std");
            let impure = std.filter(|path| ["fs", "env"].contains(&path.name.as_str()));
            found.extend(impure.map(|path| (path.at, format!("std::{}", path.name))));
        }
        if name != "xtask" && !RMCP.iter().any(|prefix| file.path.starts_with(prefix)) {
            found.extend(file.find("rmcp::").into_iter().map(|at| (at, "rmcp::".to_owned())));
        }
        for (at, word) in found.into_iter().filter(|&(at, _)| !file.is_test(at)) {
            res.push(Violation::new(&file.path, file.line(at), format!("`{word}` is forbidden here")));
        }
    }
    res
}
