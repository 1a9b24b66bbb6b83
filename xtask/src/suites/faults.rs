//! `cargo xtask faults`: the fault matrix, run whole, and what it came to.
//!
//! The table is that of mcp-tests, which the page of docs/ is made from as well. What is told in the end was counted in
//! the tests' own words, so that a cell that did not run is not told of.

use std::io::{BufRead, BufReader, Write, stderr};
use std::process::Stdio;

use mcp_tests::faults::{self, Face, Wire};

use crate::cargo::{cargo, exit_code};
use crate::error::Error;

/// Runs every cell. The output is shown as it comes; the exit code is Cargo's.
pub(crate) fn run() -> Result<(), Error> {
    let failed =
        |what: &str, error: std::io::Error| Error::message(format!("could not {what} cargo: {error}"));
    let mut child = cargo()
        // As `cargo xtask test` has it, so that nothing is built twice.
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
    let mut proven = Proven::default();
    for line in BufReader::new(child.stderr.take().expect("it is piped")).lines() {
        let line = line.map_err(|error| failed("read from", error))?;
        proven.add_line(&line);
        let _ = writeln!(stderr(), "{line}");
    }
    let status = child.wait().map_err(|error| failed("wait for", error))?;
    println!("{proven}");
    if !status.success() {
        return Err(Error::Exit(exit_code(status.code())));
    }
    let (cells, rows) = (faults::totals().cells, faults::machine().len());
    match (proven.cells, proven.rows) == (cells, rows) {
        true => Ok(()),
        false => Err(Error::message(format!("the table has {cells} cells, and {rows} rows of the machine"))),
    }
}

/// What the tests have told.
#[derive(Debug, Default, PartialEq, Eq)]
struct Proven {
    cells: usize,
    /// Of the machine.
    rows: usize,
}

impl Proven {
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

impl std::fmt::Display for Proven {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let faults::Totals { faults, outcomes, absent, cells: _ } = faults::totals();
        let (wires, faces) = (Wire::ALL.len(), Face::ALL.len());
        write!(
            f,
            "faults: {} cells run, of {faults} faults on {wires} wires in 2 eras at {faces} faces, with {outcomes} outcomes \
             ({absent} cells are none, with a reason); {} rows of the machine",
            self.cells, self.rows
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_run_is_counted() {
        let mut proven = Proven::default();
        for line in [
            "120 cells, 14 outcomes: stdio",
            "1 cells, 1 outcomes: SSE",
            "1 rows: a login's file when the disk is full",
            "cells",
            "7 of them",
            "x cells, 1 outcomes: ",
        ] {
            proven.add_line(line);
        }
        assert_eq!(proven, Proven { cells: 121, rows: 1 });
    }
}
