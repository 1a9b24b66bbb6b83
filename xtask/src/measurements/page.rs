//! The tables of docs/performance.md, which measurements write between markers. The rest of the page is
//! written by hand.

use std::fs;

use crate::error::Error;
use crate::generated_files::replace_between;
use crate::tree;

/// The page with the tables.
const PAGE: &str = "docs/performance.md";

/// Writes these tables between their markers.
pub(crate) fn write_tables(tables: &[(&str, String)]) -> Result<(), Error> {
    let path = tree::root().join(PAGE);
    let mut page = fs::read_to_string(&path)
        .map_err(|error| Error::message(format!("could not read {PAGE}: {error}")))?;
    for (name, table) in tables {
        let (begin, end) = (format!("<!-- measured: {name} -->\n"), "<!-- end of what was measured -->");
        page = replace_between(&page, &begin, &format!("\n{table}\n"), end)
            .ok_or_else(|| Error::message(format!("{PAGE} has no markers for the table `{name}`")))?;
    }
    fs::write(&path, page).map_err(|error| Error::message(format!("could not write {PAGE}: {error}")))?;
    println!("wrote {PAGE}");
    Ok(())
}

/// Formats a number in groups of three digits.
pub(crate) fn group_digits(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut res = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            res.push(',');
        }
        res.push(digit);
    }
    res
}
