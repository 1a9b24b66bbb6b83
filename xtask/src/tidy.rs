//! `cargo xtask tidy`: what a reader finds in every file, and what nobody should find in any.

mod places;
mod reached;

use crate::failure::{Failure, Trespass};
use crate::fuzz;
use crate::rust::RustFile;
use crate::tree::{self, Source};

/// A file past this many lines holds more than one subject.
const WALL: usize = 500;

/// Words of code that is not finished, or of a test that does not run.
const UNFINISHED: &[&str] = &["todo!(", "unimplemented!(", "#[ignore"];

/// Judges the tree on disk.
pub(crate) fn run() -> Result<(), Failure> {
    let sources = tree::sources()?;
    let mut res = check(&sources);
    res.extend(places::check(&sources, &places::forbidden_here()));
    for ending in [".snap.new", ".pending-snap"] {
        res.extend(tree::named(ending)?.iter().map(|it| forgotten_snapshot(it)));
    }
    Failure::of(res)
}

fn check(sources: &[Source]) -> Vec<Trespass> {
    let files = RustFile::all(sources);
    let mut res = reached::check(&files);
    res.extend(fuzz::check(sources));
    for file in &files {
        res.extend(check_file(file));
    }
    res
}

fn check_file(file: &RustFile) -> Vec<Trespass> {
    let mut res = Vec::new();
    if !file.text.starts_with("//!") {
        res.push(Trespass::new(&file.path, 1, "a file opens with `//!` and says why it is there"));
    }
    let lines = file.text.lines().count();
    if lines > WALL {
        res.push(Trespass::new(
            &file.path,
            0,
            format!("{lines} lines: the wall is {WALL}, split by subject"),
        ));
    }
    for word in UNFINISHED {
        for at in file.find(word) {
            res.push(Trespass::new(
                &file.path,
                file.line(at),
                format!("`{word}`: finish it, or take it out"),
            ));
        }
    }
    res
}

fn forgotten_snapshot(path: &str) -> Trespass {
    Trespass::new(path, 0, "a snapshot that nobody has accepted or thrown away")
}

#[cfg(test)]
mod tests;
