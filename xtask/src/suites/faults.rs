//! `cargo xtask faults`: runs the whole fault matrix and prints its totals.
//!
//! The fault table is in mcp-tests. The totals are counted from the output of the tests, so a cell that did not run is
//! missing in them.

use std::io::{BufRead, BufReader, Write, stderr};
use std::process::Stdio;

use mcp_tests::faults::{self, Api, Transport};

use crate::cargo::{cargo, exit_code};
use crate::error::Error;

/// Runs every cell. Output is forwarded line by line; the exit code is Cargo's.
pub(crate) fn run() -> Result<(), Error> {
    let failed =
        |what: &str, error: std::io::Error| Error::message(format!("could not {what} cargo: {error}"));
    let mut child = cargo()
        // The features of `cargo xtask test`, so that nothing is built twice.
        .args([
            "test",
            "--workspace",
            "--all-features",
            "--test",
            "faults",
            "--no-fail-fast",
            "--",
            "--nocapture",
        ])
        .env("MCP_TEST_FAULTS", "whole")
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed("start", error))?;
    let mut counts = CellCounts::default();
    for line in BufReader::new(child.stderr.take().expect("it is piped")).lines() {
        let line = line.map_err(|error| failed("read from", error))?;
        counts.add_line(&line);
        let _ = writeln!(stderr(), "{line}");
    }
    let status = child.wait().map_err(|error| failed("wait for", error))?;
    println!("{counts}");
    if !status.success() {
        return Err(Error::Exit(exit_code(status.code())));
    }
    let (cells, rows) = (faults::totals().cells, faults::machine().len());
    if (counts.cells, counts.rows) == (cells, rows) {
        Ok(())
    } else {
        Err(Error::message(format!("the table has {cells} cells, and {rows} machine faults")))
    }
}

/// Counts from the output of the tests.
#[derive(Debug, Default, PartialEq, Eq)]
struct CellCounts {
    cells: usize,
    /// Machine faults.
    rows: usize,
}

impl CellCounts {
    /// Counts a line like `120 cells, 14 outcomes: stdio` or `1 rows: a login's file when the disk is full`.
    fn add_line(&mut self, line: &str) {
        let Some((number, rest)) = line.split_once(' ') else { return };
        let Ok(number) = number.parse::<usize>() else { return };
        if rest.starts_with("cells, ") && rest.contains(" outcomes: ") {
            self.cells += number;
        } else if rest.starts_with("rows: ") {
            self.rows += number;
        }
    }
}

impl std::fmt::Display for CellCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let faults::Totals { faults, outcomes, exclusions, cells: _ } = faults::totals();
        let (transports, apis) = (Transport::ALL.len(), Api::ALL.len());
        write!(
            f,
            "faults: {} cells run, of {faults} faults on {transports} transports in 2 eras at {apis} APIs, with \
             {outcomes} outcomes ({exclusions} cells are excluded with a reason); {} machine faults",
            self.cells, self.rows
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_executed_cells_are_counted() {
        let mut counts = CellCounts::default();
        for line in [
            "120 cells, 14 outcomes: stdio",
            "1 cells, 1 outcomes: SSE",
            "1 rows: a login's file when the disk is full",
            "cells",
            "7 of them",
            "x cells, 1 outcomes: ",
        ] {
            counts.add_line(line);
        }
        assert_eq!(counts, CellCounts { cells: 121, rows: 1 });
    }
}
