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
    pub(super) fn failed(&self) -> usize {
        self.scored.iter().filter(|(_, it)| !it.passed()).count()
    }

    /// A summary in one line.
    pub(super) fn line(&self) -> String {
        let Report { title, scored, unscored, .. } = self;
        let passed = scored.len() - self.failed();
        let more = unscored.iter().filter(|(_, it)| it.passed()).count();
        let (scored, unscored) = (scored.len(), unscored.len());
        format!("{title}: {passed} of {scored} passed; of those not scored, {more} of {unscored}")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { title, scored, unscored, seconds } = self;
        writeln!(f, "conformance, {title} ({seconds:.1} s)")?;
        table(f, scored)?;
        if !unscored.is_empty() {
            writeln!(f, "  not scored:")?;
            table(f, unscored)?;
        }
        f.write_str(&self.line())
    }
}

fn table(f: &mut fmt::Formatter<'_>, rows: &[(String, Verdict)]) -> fmt::Result {
    for (name, verdict) in rows {
        let result = if verdict.passed() { "pass" } else { "FAIL" };
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
