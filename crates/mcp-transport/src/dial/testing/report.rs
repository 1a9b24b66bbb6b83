//! The report of a conformance check.

use std::fmt;

use mcp_host_model::Era;

/// The result of a conformance check. `Display` prints the number of rows that ran, and a line for each mismatch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
#[must_use = "the check fails only if the report is looked at: `assert_ok`"]
pub struct ConformanceReport {
    /// The names of the rows that ran, in the order of the table. A row that ran in both eras is here twice.
    pub rows: Vec<&'static str>,
    /// The names of the rows that do not apply to the response form.
    pub skipped: Vec<&'static str>,
    /// The rows with another outcome, in the order of the table.
    pub mismatches: Vec<Mismatch>,
}

impl ConformanceReport {
    /// Whether each row that ran has the expected outcome.
    pub fn is_ok(&self) -> bool {
        self.mismatches.is_empty()
    }

    /// Panics with the report unless each row that ran has the expected outcome.
    #[track_caller]
    pub fn assert_ok(&self) {
        assert!(self.is_ok(), "{self}");
    }
}

impl fmt::Display for ConformanceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConformanceReport { rows, skipped, mismatches } = self;
        write!(f, "{} rows ran, {} do not apply, {} differ", rows.len(), skipped.len(), mismatches.len())?;
        mismatches.iter().try_for_each(|mismatch| write!(f, "\n{mismatch}"))
    }
}

/// A row of the table with another outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mismatch {
    /// The name of the row: the behaviour of the server, or the event.
    pub row: &'static str,
    /// The era of the session; `None` if the row runs the transport without a session.
    pub era: Option<Era>,
    /// The outcome.
    pub got: String,
    /// The expected outcome.
    pub want: &'static str,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { row, era, got, want } = self;
        f.write_str(row)?;
        if let Some(era) = era {
            write!(f, " ({})", era.as_str())?;
        }
        write!(f, ": {got}, and not {want}")
    }
}
