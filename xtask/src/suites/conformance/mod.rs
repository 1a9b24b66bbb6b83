//! `cargo xtask conformance [client|server]`: runs the official conformance suite against the client and the gateway.
//!
//! Every scenario must pass, also those that the suite does not score, except a short list with reasons. A
//! scenario that was skipped, has no result, warned, or whose client did not end counts as failed here,
//! although the suite accepts it.
//!
//! Behind the gateway runs tests/conformance/everything.mjs, a server on the official SDK.

mod process;
mod report;
mod requirements;
mod runs;
mod suite;
mod verdict;

use crate::cargo::{build_test_programs, is_ci};
use crate::error::Error;
use crate::suites::test_run::install;
pub(crate) use requirements::Side;
use runs::{RUNS, Run};
use suite::Suite;

/// Results of the scored scenarios.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Counts {
    pub passed: u64,
    pub failed: u64,
    /// Scenarios that did not run because the suite could not be installed.
    pub skipped: u64,
}

/// Tests one side, or both.
pub(crate) fn run(side: Option<Side>) -> Result<(), Error> {
    run_all(RUNS.iter().filter(|run| side.is_none_or(|side| run.side == side)))?.into_result()
}

/// Tests both. If the suite cannot be installed, its scenarios are skipped with a warning; in CI that is an error.
pub(crate) fn run_if_installable() -> Result<Counts, Error> {
    match install::install_conformance_suite() {
        Err(error) if !is_ci() => {
            eprintln!("WARNING: could not install the conformance suite: {error}");
            eprintln!("WARNING: the official conformance scenarios are skipped");
            let skipped = RUNS.iter().map(|run| u64::try_from(run.scored).unwrap_or(u64::MAX)).sum();
            Ok(Counts { skipped, ..Counts::default() })
        }
        Err(error) => Err(Error::message(format!("could not install the conformance suite: {error}"))),
        Ok(_) => run_all(RUNS.iter()),
    }
}

/// Executes the runs and prints their tables.
fn run_all<'a>(runs: impl Iterator<Item = &'a Run>) -> Result<Counts, Error> {
    let suite = Suite::install()?;
    let programs = build_test_programs()?;
    let mut counts = Counts::default();
    let mut lines = Vec::new();
    for run in runs {
        let report = run.execute(&suite, &programs)?;
        println!("{report}\n");
        lines.push(report.summary_line());
        let failed = report.failed_count();
        counts.failed += u64::try_from(failed).unwrap_or(u64::MAX);
        counts.passed += u64::try_from(report.scored.len() - failed).unwrap_or(u64::MAX);
    }
    for line in lines {
        println!("{line}");
    }
    Ok(counts)
}

impl Counts {
    /// An error if a scenario failed.
    pub(crate) fn into_result(self) -> Result<(), Error> {
        match self.failed {
            0 => Ok(()),
            1 => Err(Error::message("1 conformance scenario failed")),
            failed => Err(Error::message(format!("{failed} conformance scenarios failed"))),
        }
    }
}

#[cfg(test)]
mod tests;
