//! `cargo xtask layers`: dependencies of crates, order of modules, circles of files, and forbidden words.
//!
//! The lists are in `xtask/layers.toml`; the checks are functions of the files' texts. No single line can be excused:
//! an exception is an entry of a list.

mod circles;
mod dependencies;
mod error_numbers;
mod error_text;
mod forbidden_words;
mod lists;
mod method_names;
mod module_order;
mod system_code;
mod tuples;
mod unsafe_code;

use crate::error::{Error, Violation};
use crate::tree::Tree;
use lists::Lists;

/// Checks the tree on disk.
pub(crate) fn run() -> Result<(), Error> {
    Error::from_violations(check(Tree::read()?, &Lists::read()?))
}

fn check(tree: &Tree, lists: &Lists) -> Vec<Violation> {
    let files = &tree.rust_files;
    let mut res = dependencies::check(&tree.sources, lists);
    res.extend(forbidden_words::check(files, lists));
    res.extend(error_numbers::check(files, &lists.error_numbers));
    res.extend(error_text::check(files, &lists.error_texts));
    res.extend(method_names::check(files));
    res.extend(system_code::check(files, lists));
    res.extend(unsafe_code::check(files));
    res.extend(module_order::check(files, lists));
    res.extend(circles::check(files));
    res.extend(tuples::check(files));
    res
}

#[cfg(test)]
mod tests;
