//! The table of a run: each scenario with its result.

use std::fmt;

use super::verdict::Verdict;

/// The results of one run.
pub(super) struct Report {
    pub title: String,
    pub scored: Vec<(String, Verdict)>,
    pub unscored: Vec<(String, Verdict)>,
    pub seconds: f64,
}

impl Report {
    /// The number of failed scored scenarios.
    pub(super) fn failed_count(&self) -> usize {
        self.scored.iter().filter(|(_, it)| !it.has_passed()).count()
    }

    /// A summary in one line.
    pub(super) fn summary_line(&self) -> String {
        let Report { title, scored, unscored, .. } = self;
        let passed = scored.len() - self.failed_count();
        let unscored_passed = unscored.iter().filter(|(_, it)| it.has_passed()).count();
        let (scored, unscored) = (scored.len(), unscored.len());
        format!("{title}: {passed} of {scored} passed; of those not scored, {unscored_passed} of {unscored}")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { title, scored, unscored, seconds } = self;
        writeln!(f, "conformance, {title} ({seconds:.1} s)")?;
        write_table(f, scored)?;
        if !unscored.is_empty() {
            writeln!(f, "  not scored:")?;
            write_table(f, unscored)?;
        }
        f.write_str(&self.summary_line())
    }
}

fn write_table(f: &mut fmt::Formatter<'_>, rows: &[(String, Verdict)]) -> fmt::Result {
    for (name, verdict) in rows {
        let result = if verdict.has_passed() { "pass" } else { "FAIL" };
        write!(f, "  {result}  {name:<45} {:>3} checks", verdict.passed_checks)?;
        if let Some(outcome) = &verdict.outcome {
            write!(f, "; client: {}", outcome.chars().take(100).collect::<String>())?;
        }
        writeln!(f)?;
        for problem in &verdict.problems {
            writeln!(f, "        {problem}")?;
        }
    }
    Ok(())
}
