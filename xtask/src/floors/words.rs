//! Words that a crate, or a pure file, may not say.
//!
//! Tests may say them: a test of a pure function may well read a fixture.

use super::crate_of;
use super::lists::{IMPURE_WORDS, MOMENT, PURE_CRATES, RMCP};
use crate::failure::Trespass;
use crate::rust::RustFile;

/// Every Rust file of the tree. These files are pure, though their crates are not.
pub(super) fn check(files: &[RustFile], pure_files: &[&str]) -> Vec<Trespass> {
    let mut res = Vec::new();
    for path in pure_files {
        if !files.iter().any(|it| it.path == *path) {
            res.push(Trespass::new(path, 0, "it is in the list of pure files, and does not exist"));
        }
    }
    for file in files {
        let Some(name) = crate_of(&file.path) else { continue };
        let mut places = Vec::new();
        let is_listed = pure_files.contains(&file.path.as_str());
        if PURE_CRATES.contains(&name) || is_listed {
            for word in IMPURE_WORDS {
                let said = file.find(word).into_iter();
                let said = said.filter(|&at| !is_listed || !file.code[at..].starts_with(MOMENT));
                places.extend(said.map(|at| (at, *word)));
            }
            places.extend(grouped_imports(&file.code));
        }
        if !RMCP.iter().any(|it| file.path.starts_with(it)) {
            places.extend(file.find("rmcp::").into_iter().map(|at| (at, "rmcp::")));
        }
        for (at, word) in places.into_iter().filter(|&(at, _)| !file.is_test(at)) {
            res.push(Trespass::new(&file.path, file.line(at), format!("`{word}` may not stand here")));
        }
    }
    res
}

/// `use std::{env, fs}` says the words without writing them.
fn grouped_imports(code: &str) -> Vec<(usize, &'static str)> {
    let mut res = Vec::new();
    for (at, _) in code.match_indices("std::{") {
        let group = &code[at + "std::{".len()..];
        let (mut depth, mut member) = (0_usize, String::new());
        for it in group.chars() {
            match it {
                '{' => depth += 1,
                '}' if depth > 0 => depth -= 1,
                ',' | '}' if depth == 0 => {
                    match member.trim().split([':', ' ']).next() {
                        Some("fs") => res.push((at, "std::fs")),
                        Some("env") => res.push((at, "std::env")),
                        _ => {}
                    }
                    member.clear();
                    if it == '}' {
                        break;
                    }
                }
                _ if depth == 0 => member.push(it),
                _ => {}
            }
        }
    }
    res
}
