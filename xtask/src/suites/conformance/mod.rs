//! `cargo xtask conformance [client|server]`: the official suite, installed and locked, judges our two faces.
//!
//! What a revision requires is the suite's to say, and all of it has to pass: there is no file of expected failures. A
//! scenario that was skipped, that brought no verdict, that warned, or whose client never came to an end is a failure
//! here, though the suite itself ends well then. What it runs without scoring is listed with its result.
//!
//! The suite brings no server to put a gateway in front of: tests/conformance/everything.mjs is one, on the official SDK.

mod judge;
mod list;
mod report;
mod runs;
mod started;
mod suite;

use std::env;

use crate::error::Error;
use crate::suites::test_run::install;
use list::Face;
use runs::{RUNS, Run};
use suite::Suite;

/// How many of the scenarios that count passed, and how many did not.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Counts {
    pub passed: u64,
    pub failed: u64,
    /// What was not run, since the suite could not be installed.
    pub skipped: u64,
}

/// Judges both faces, and says what came of it.
pub(crate) fn both() -> Result<(), Error> {
    judged(RUNS.iter())?.ending()
}

/// Judges the client alone.
pub(crate) fn client() -> Result<(), Error> {
    judged(RUNS.iter().filter(|it| it.face() == Face::Client))?.ending()
}

/// Judges the gateway alone.
pub(crate) fn server() -> Result<(), Error> {
    judged(RUNS.iter().filter(|it| it.face() == Face::Server))?.ending()
}

/// Both as a part of the tests: on a machine that cannot install the suite they are left out, loudly, unless that
/// machine is the one that decides.
pub(crate) fn where_possible() -> Result<Counts, Error> {
    let must = env::var("CI").is_ok_and(|it| it == "true" || it == "1");
    match install::conformance_suite() {
        Err(failure) if !must => {
            eprintln!("WARNING: could not install the conformance suite: {failure}");
            eprintln!("WARNING: the official conformance scenarios are skipped");
            let skipped = RUNS.iter().map(|it| u64::try_from(it.scored).unwrap_or(u64::MAX)).sum();
            Ok(Counts { skipped, ..Counts::default() })
        }
        Err(failure) => Err(Error::message(format!("could not install the conformance suite: {failure}"))),
        Ok(_) => judged(RUNS.iter()),
    }
}

/// Goes through these runs, and prints each one's table.
fn judged<'a>(runs: impl Iterator<Item = &'a Run>) -> Result<Counts, Error> {
    let suite = Suite::installed()?;
    let mut counts = Counts::default();
    let mut lines = Vec::new();
    for run in runs {
        let report = run.judged(&suite)?;
        println!("{report}\n");
        lines.push(report.line());
        let failed = report.failed();
        counts.failed += u64::try_from(failed).unwrap_or(u64::MAX);
        counts.passed += u64::try_from(report.scored.len() - failed).unwrap_or(u64::MAX);
    }
    for line in lines {
        println!("{line}");
    }
    Ok(counts)
}

impl Counts {
    /// A command's ending.
    pub(crate) fn ending(self) -> Result<(), Error> {
        match self.failed {
            0 => Ok(()),
            1 => Err(Error::message("1 conformance scenario failed")),
            failed => Err(Error::message(format!("{failed} conformance scenarios failed"))),
        }
    }
}

#[cfg(test)]
mod tests;
