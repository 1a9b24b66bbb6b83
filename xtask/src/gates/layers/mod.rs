//! `cargo xtask layers`: dependencies of crates, order of modules, and forbidden words.
//!
//! The lists are data, in [`crates`] and [`modules`]; the checks are functions of the files' texts. No single line can
//! be excused: an exception is a row of a list.

mod crates;
mod dependencies;
mod error_numbers;
mod forbidden_words;
mod module_order;
mod modules;
mod unsafe_code;

use crate::error::{Error, Violation};
use crate::tree::Tree;

/// Checks the tree on disk.
pub(crate) fn run() -> Result<(), Error> {
    Error::from_violations(check(Tree::read()?, crates::PURE_FILES, modules::MODULES))
}

fn check(tree: &Tree, pure_files: &[&str], modules: &[modules::Row]) -> Vec<Violation> {
    let files = &tree.rust_files;
    let mut res = dependencies::check(&tree.sources);
    res.extend(forbidden_words::check(files, pure_files));
    res.extend(error_numbers::check(files));
    res.extend(unsafe_code::check(files));
    res.extend(module_order::check(files, modules));
    res
}

/// The name of the crate whose folder contains `path`.
fn crate_of(path: &str) -> Option<&str> {
    if path.starts_with("xtask/") {
        return Some("xtask");
    }
    path.strip_prefix("crates/")?.split('/').next()
}

#[cfg(test)]
mod tests;
