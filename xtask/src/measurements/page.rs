//! docs/performance.md, whose tables are written by whoever measures. The words around them are a person's.

use std::fs;

use crate::error::Error;
use crate::tree;

/// The page.
const PAGE: &str = "docs/performance.md";

/// Writes these tables between their markers.
pub(crate) fn write(tables: &[(&str, String)]) -> Result<(), Error> {
    let path = tree::root().join(PAGE);
    let mut page = fs::read_to_string(&path)
        .map_err(|error| Error::message(format!("could not read {PAGE}: {error}")))?;
    for (name, table) in tables {
        page = replaced(&page, name, table)
            .ok_or_else(|| Error::message(format!("{PAGE} has no place for the table `{name}`")))?;
    }
    fs::write(&path, page).map_err(|error| Error::message(format!("could not write {PAGE}: {error}")))?;
    println!("{PAGE} has these figures now");
    Ok(())
}

/// A number in groups of three digits.
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

/// The page with this table between its markers. `None` where it has none of this name.
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
    fn a_table_takes_the_place_of_the_one_before_and_nothing_else() {
        let page = "a\n<!-- measured: x -->\nold\n<!-- end of what was measured -->\nb\n";
        let once = replaced(page, "x", "new\n").unwrap();
        assert_eq!(once, "a\n<!-- measured: x -->\n\nnew\n\n<!-- end of what was measured -->\nb\n");
        assert_eq!(replaced(&once, "x", "new\n").unwrap(), once);
        assert_eq!(replaced(page, "y", "new\n"), None);
    }
}
