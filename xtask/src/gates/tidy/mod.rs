//! `cargo xtask tidy`: rules for every file, such as its first line, its length and its language.

mod language;
mod line_length;
mod links;
mod machine_paths;
mod orphan_files;

use crate::error::{Error, Violation};
use crate::suites::fuzz;
use crate::tree::rust::RustFile;
use crate::tree::{self, Tree};

/// The longest file. A longer one has more than one subject.
const MAX_LINES: usize = 500;

/// Marks of code that is not finished, or of a test that does not run.
const UNFINISHED: &[&str] = &["todo!(", "unimplemented!(", "#[ignore"];

/// Checks the tree on disk.
pub(crate) fn run() -> Result<(), Error> {
    let tree = Tree::read()?;
    let mut res = check(tree);
    res.extend(machine_paths::check(&tree.sources, &machine_paths::list_forbidden_texts()));
    res.extend(language::check(tree, &language::LanguageRules::read()?));
    for suffix in [".snap.new", ".pending-snap"] {
        let pending = tree::files_with_suffix(suffix)?;
        let message = "a pending snapshot: accept or delete it";
        res.extend(pending.iter().map(|path| Violation::new(path, 0, message)));
    }
    Error::from_violations(res)
}

/// Checks a tree without the lists of this machine.
fn check(tree: &Tree) -> Vec<Violation> {
    let mut res = tree.unparsable.clone();
    res.extend(orphan_files::check(&tree.rust_files));
    res.extend(fuzz::check(&tree.sources));
    res.extend(links::check(&tree.sources));
    for file in &tree.rust_files {
        res.extend(check_file(file));
    }
    for page in tree.sources.iter().filter(|source| source.path.ends_with(".md")) {
        res.extend(line_length::check_markdown(page));
    }
    res
}

/// Checks one Rust file.
fn check_file(file: &RustFile) -> Vec<Violation> {
    let mut res = Vec::new();
    if !file.text.starts_with("//!") {
        res.push(Violation::new(
            &file.path,
            1,
            "the file does not begin with a `//!` that names its subject",
        ));
    }
    let lines = file.text.lines().count();
    if lines > MAX_LINES {
        let message = format!("{lines} lines, more than {MAX_LINES}: split it by subject");
        res.push(Violation::new(&file.path, 0, message));
    }
    res.extend(line_length::check_rust(file));
    for mark in UNFINISHED {
        for at in file.find(mark) {
            res.push(Violation::new(&file.path, file.line(at), format!("`{mark}`: unfinished code")));
        }
    }
    // A feature that another crate enables would change the struct, unless it is non-exhaustive.
    let message = "a public field has a `#[cfg]`: make it private, with a setter";
    res.extend(file.conditional_fields.iter().map(|line| Violation::new(&file.path, *line, message)));
    res
}

#[cfg(test)]
mod tests;
