//! `cargo xtask features`: the rules of docs/rules.md that tests name.
//!
//! A test names a rule in its own name (`dm_041_neither_list`) or in a comment. An id that is not in the table is a
//! violation. A rule without a test is not: the report lists it. The front page of a library that names rules in its
//! documentation says where they are listed.

mod mention;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::error::{Error, Violation};
use crate::tree::Tree;
use table::{RuleId, TABLE};

/// Checks the tree on disk and returns the report.
pub(crate) fn run() -> Result<String, Error> {
    let (report, violations) = check(Tree::read()?)?;
    Error::from_violations(violations)?;
    Ok(report)
}

/// The report, and the violations of the tree.
fn check(tree: &Tree) -> Result<(String, Vec<Violation>), Error> {
    let text = tree.sources.iter().find(|source| source.path == TABLE);
    let text = text.ok_or_else(|| Error::message(format!("{TABLE} is missing")))?;
    let (known, mut violations) = table::read_table(&text.text);

    let mut proven = BTreeSet::new();
    for file in &tree.rust_files {
        // The tests of this gate use invented ids.
        if file.path.starts_with("xtask/") {
            continue;
        }
        for (first_line, part) in file.test_code() {
            for (offset, line) in part.lines().enumerate() {
                for id in mention::find_ids(line, &known) {
                    if !known.contains(&id) {
                        let message = format!("{id} is not in {TABLE}");
                        violations.push(Violation::new(&file.path, first_line + offset, message));
                    }
                    proven.insert(id);
                }
            }
        }
    }
    violations.extend(unexplained_ids(tree, &known));
    Ok((render_report(&known, &proven), violations))
}

/// The libraries whose documentation has ids, and whose front page does not name the table.
fn unexplained_ids(tree: &Tree, known: &BTreeSet<RuleId>) -> impl Iterator<Item = Violation> {
    let is_doc = |line: &&str| ["///", "//!"].iter().any(|it| line.trim_start().starts_with(it));
    let has_ids =
        |text: &str| text.lines().filter(is_doc).any(|line| !mention::find_ids(line, known).is_empty());
    let with_ids: BTreeSet<&str> = tree
        .rust_files
        .iter()
        .filter(|file| file.path.starts_with("crates/") && has_ids(&file.text))
        .filter_map(|file| Some(file.path.split_once("/src/")?.0))
        .collect();
    let front_pages =
        tree.rust_files.iter().filter_map(|file| Some((file.path.strip_suffix("/src/lib.rs")?, file)));
    let unexplained = front_pages.filter(move |(folder, file)| {
        with_ids.contains(folder) && !file.text.lines().filter(is_doc).any(|line| line.contains(TABLE))
    });
    unexplained.map(|(_, file)| {
        let message = format!("its documentation has ids of rules: say that {TABLE} lists them");
        Violation::new(&file.path, 1, message)
    })
}

/// Lists for each family which rules tests name, and which not.
fn render_report(known: &BTreeSet<RuleId>, proven: &BTreeSet<RuleId>) -> String {
    let mut families: BTreeMap<&str, (Vec<String>, Vec<String>)> = BTreeMap::new();
    for id in known {
        let (proven_numbers, open_numbers) = families.entry(id.family).or_default();
        let numbers = if proven.contains(id) { proven_numbers } else { open_numbers };
        numbers.push(id.number_text());
    }
    let mut res = String::new();
    for (family, (proven_numbers, open_numbers)) in &families {
        let _ = writeln!(
            res,
            "{}: {} of {} proven by tests",
            family.trim_end_matches('-'),
            proven_numbers.len(),
            proven_numbers.len() + open_numbers.len()
        );
        for (title, numbers) in [("proven", proven_numbers), ("open", open_numbers)] {
            if !numbers.is_empty() {
                let _ = writeln!(res, "  {title}: {}", numbers.join(" "));
            }
        }
    }
    let proven_count = known.intersection(proven).count();
    let _ = write!(res, "all: {proven_count} of {} proven by tests", known.len());
    res
}

#[cfg(test)]
mod tests;
