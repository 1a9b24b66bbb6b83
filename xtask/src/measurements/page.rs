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

/// Formats a number with about three significant digits.
pub(crate) fn number_text(value: f64) -> String {
    match value.abs() {
        it if it >= 1000.0 => group_digits(value),
        it if it >= 100.0 => format!("{value:.0}"),
        it if it >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A line that describes the machine.
pub(crate) fn describe_machine(rounds: usize, compiler: &str) -> String {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|it| it.strip_prefix("model name")?.split_once(':'));
    let model = model.map_or("an unknown processor", |it| it.1.trim());
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("?").to_owned();
    format!(
        "Medians of {rounds} rounds on {processors} processors ({model}), load {load} at the beginning, {compiler}.\n"
    )
}
