//! The tables of docs/performance.md, which measurements write between markers. The rest of the page is written by hand.

use std::fs;

use crate::error::Error;
use crate::tree;

const PAGE: &str = "docs/performance.md";

/// Writes these tables between their markers.
pub(crate) fn write(tables: &[(&str, String)]) -> Result<(), Error> {
    let path = tree::root().join(PAGE);
    let mut page = fs::read_to_string(&path)
        .map_err(|error| Error::message(format!("could not read {PAGE}: {error}")))?;
    for (name, table) in tables {
        page = replaced(&page, name, table)
            .ok_or_else(|| Error::message(format!("{PAGE} has no markers for the table `{name}`")))?;
    }
    fs::write(&path, page).map_err(|error| Error::message(format!("could not write {PAGE}: {error}")))?;
    println!("wrote {PAGE}");
    Ok(())
}

/// Formats a number in groups of three digits.
pub(crate) fn grouped(value: f64) -> String {
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

/// Replaces the table between its markers. `None` if the page has no such markers.
fn replaced(page: &str, name: &str, table: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- measured: {name} -->\n"), "<!-- end of what was measured -->");
    let start = page.find(&begin)? + begin.len();
    let length = page[start..].find(end)?;
    Some(format!("{}\n{table}\n{}", &page[..start], &page[start + length..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_replaced_between_its_markers() {
        let page = "a\n<!-- measured: x -->\nold\n<!-- end of what was measured -->\nb\n";
        let once = replaced(page, "x", "new\n").unwrap();
        assert_eq!(once, "a\n<!-- measured: x -->\n\nnew\n\n<!-- end of what was measured -->\nb\n");
        assert_eq!(replaced(&once, "x", "new\n").unwrap(), once);
        assert_eq!(replaced(page, "y", "new\n"), None);
    }
}
