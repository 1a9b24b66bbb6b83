//! `cargo xtask features`: which rules of docs/rules.md some test proves.
//!
//! A rule is proven by a test that names its id: in the test's name (`dm_041_neither_list`) or in a comment beside
//! it. Naming an id that the table lacks fails, for then either the test or the table is wrong. A rule that no test
//! names does not fail: the list is there to be read.

mod mention;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::failure::{Failure, Trespass};
use crate::rust::RustFile;
use crate::tree::{self, Source};
use table::Id;

const TABLE: &str = "docs/rules.md";

/// Judges the tree on disk; the report is for standard output.
pub(crate) fn run() -> Result<String, Failure> {
    let (report, trespasses) = check(&tree::sources()?)?;
    Failure::of(trespasses)?;
    Ok(report)
}

fn check(sources: &[Source]) -> Result<(String, Vec<Trespass>), Failure> {
    let text = sources.iter().find(|it| it.path == TABLE);
    let text = text.ok_or_else(|| Failure::words(format!("{TABLE} is missing")))?;
    let (known, mut trespasses) = table::read(&text.text);

    let mut proven = BTreeSet::new();
    for file in RustFile::all(sources) {
        // The gate's own tests name ids that are made up.
        if file.path.starts_with("xtask/") {
            continue;
        }
        for (first_line, part) in file.test_code() {
            for (offset, line) in part.lines().enumerate() {
                for id in mention::ids(line, &known) {
                    if !known.contains(&id) {
                        let what = format!("{id} is not in {TABLE}");
                        trespasses.push(Trespass::new(&file.path, first_line + offset, what));
                    }
                    proven.insert(id);
                }
            }
        }
    }
    Ok((report(&known, &proven), trespasses))
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
