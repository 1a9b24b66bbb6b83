//! `cargo xtask growth`: how the costs of `mcp-host serve` grow with servers, tools and clients.
//!
//! Each row measures one gateway for each of its sizes. The law of a line compares its last two sizes. Times are never
//! a gate; `cargo xtask counts` has the instructions of some of the same paths. It needs Linux.

mod gateway;
mod rows;

use std::fmt::Write;

use crate::cargo::{build_measured, cargo, compiler_version, measured_folder, run as run_command};
use crate::error::Error;
use crate::measurements::page::{self, number_text};
use rows::{ROWS, Row};

/// The default length of the mixed load in seconds.
const MIXED_SECONDS: usize = 600;

/// Measures all rows, or those that are named, and writes the table. A number is the length of the mixed load.
pub(crate) fn run(arguments: &[&str]) -> Result<(), Error> {
    let (numbers, names): (Vec<&str>, Vec<&str>) =
        arguments.iter().partition(|argument| argument.parse::<usize>().is_ok());
    let seconds = numbers.first().and_then(|number| number.parse().ok()).unwrap_or(MIXED_SECONDS);
    if let Some(unknown) = names.iter().find(|name| !ROWS.iter().any(|row| row.name == **name)) {
        let known: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
        return Err(Error::message(format!("there is no row {unknown}; the rows are {}", known.join(", "))));
    }
    run_command(cargo().args(["build", "-p", "mcp-host-cli", "--profile", "measured"]))?;
    build_measured(&["--bin", "load", "--bin", "server"])?;
    let programs = measured_folder();
    let mut table = "| what is measured | at each size | law |\n|---|---|---|\n".to_owned();
    for row in ROWS.iter().filter(|row| names.is_empty() || names.contains(&row.name)) {
        let sizes = if row.sizes.is_empty() { &[seconds] } else { row.sizes };
        let mut measured = Vec::new();
        for size in sizes {
            let values = (row.measure)(&programs, *size)?;
            println!("{} {size}: {values:.2?}", row.name);
            measured.push((*size, values));
        }
        table.push_str(&table_lines(row, &measured));
    }
    println!("{table}");
    if names.is_empty() {
        let machine = page::describe_machine(1, compiler_version()?.trim());
        page::write_tables(&[("growth of the gateway", format!("{machine}\n{table}"))])?;
    }
    Ok(())
}

/// The lines of a row: for each of its values, the value at each size, and the law.
fn table_lines(row: &Row, measured: &[(usize, Vec<f64>)]) -> String {
    let mut res = String::new();
    for (at, (title, unit)) in row.lines.iter().enumerate() {
        let cells = measured.iter().map(|(size, values)| {
            format!("{}: {} {unit}", page::group_digits(*size as f64), number_text(values[at]))
        });
        let cells: Vec<String> = cells.collect();
        let values: Vec<(usize, f64)> = measured.iter().map(|(size, values)| (*size, values[at])).collect();
        // Writing to a string does not fail.
        let _ = writeln!(res, "| {title} | {} | {} |", cells.join(", "), law(&values));
    }
    res
}

/// The law of growth between the last two sizes: the exponent of the size.
fn law(values: &[(usize, f64)]) -> String {
    let [.., (first_size, first), (last_size, last)] = values else { return String::new() };
    let exponent = (last / first).ln() / (*last_size as f64 / *first_size as f64).ln();
    match exponent {
        exponent if exponent.abs() < 0.1 => "constant".to_owned(),
        exponent if (exponent - 1.0).abs() < 0.1 => "linear".to_owned(),
        exponent => format!("n^{exponent:.1}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn law_is_the_exponent_between_the_last_sizes() {
        assert_eq!(law(&[(1, 7.0)]), "");
        assert_eq!(law(&[(1, 1.0), (10, 50.0), (100, 51.0)]), "constant");
        assert_eq!(law(&[(10, 3.0), (1000, 300.0)]), "linear");
        assert_eq!(law(&[(10, 3.0), (1000, 30.0)]), "n^0.5");
        assert_eq!(law(&[(10, 30.0), (100, 3.0)]), "n^-1.0");
    }

    #[test]
    fn a_line_has_the_value_at_each_size() {
        let row = Row {
            name: "x",
            sizes: &[1, 1000],
            lines: &[("a", "ms"), ("b", "MiB")],
            measure: |_, _| Ok(Vec::new()),
        };
        let measured = [(1, vec![1.0, 20.0]), (1000, vec![1000.0, 20.0])];
        let want =
            "| a | 1: 1.00 ms, 1,000: 1,000 ms | linear |\n| b | 1: 20.0 MiB, 1,000: 20.0 MiB | constant |\n";
        assert_eq!(table_lines(&row, &measured), want);
    }
}
