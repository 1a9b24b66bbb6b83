//! `cargo xtask features`: the rules of docs/rules.md that tests name.
//!
//! A test names a rule in its own name (`dm_041_neither_list`) or in a comment. An id that is not in the table is a
//! violation. A rule without a test is not: the report lists it.

mod mention;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::error::{Error, Violation};
use crate::tree::Tree;
use table::Id;

const TABLE: &str = "docs/rules.md";

/// Checks the tree on disk and returns the report.
pub(crate) fn run() -> Result<String, Error> {
    let (report, violations) = check(Tree::read()?)?;
    Error::from_violations(violations)?;
    Ok(report)
}

fn check(tree: &Tree) -> Result<(String, Vec<Violation>), Error> {
    let text = tree.sources.iter().find(|source| source.path == TABLE);
    let text = text.ok_or_else(|| Error::message(format!("{TABLE} is missing")))?;
    let (known, mut violations) = table::read(&text.text);

    let mut proven = BTreeSet::new();
    for file in &tree.rust_files {
        // The tests of this gate use invented ids.
        if file.path.starts_with("xtask/") {
            continue;
        }
        for (first_line, part) in file.test_code() {
            for (offset, line) in part.lines().enumerate() {
                for id in mention::ids(line, &known) {
                    if !known.contains(&id) {
                        let message = format!("{id} is not in {TABLE}");
                        violations.push(Violation::new(&file.path, first_line + offset, message));
                    }
                    proven.insert(id);
                }
            }
        }
    }
    Ok((report(&known, &proven), violations))
}

fn report(known: &BTreeSet<Id>, proven: &BTreeSet<Id>) -> String {
    let mut families: BTreeMap<&str, (Vec<String>, Vec<String>)> = BTreeMap::new();
    for id in known {
        let (done, open) = families.entry(id.family).or_default();
        if proven.contains(id) { done.push(id.number_text()) } else { open.push(id.number_text()) }
    }
    let mut res = String::new();
    for (family, (done, open)) in &families {
        let _ = writeln!(
            res,
            "{}: {} of {} proven by tests",
            family.trim_end_matches('-'),
            done.len(),
            done.len() + open.len()
        );
        for (title, numbers) in [("proven", done), ("open", open)] {
            if !numbers.is_empty() {
                let _ = writeln!(res, "  {title}: {}", numbers.join(" "));
            }
        }
    }
    let done = known.intersection(proven).count();
    let _ = write!(res, "all: {done} of {} proven by tests", known.len());
    res
}

#[cfg(test)]
mod tests;
