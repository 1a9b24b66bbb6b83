//! The table of a run: each scenario with its result, what counts and what does not.

use std::fmt;

use super::judge::Verdict;

/// What came of one revision.
pub(super) struct Report {
    pub title: String,
    pub scored: Vec<(String, Verdict)>,
    pub unscored: Vec<(String, Verdict)>,
    pub seconds: f64,
}

impl Report {
    /// How many of the scenarios that count did not pass.
    pub(super) fn failed(&self) -> usize {
        self.scored.iter().filter(|(_, it)| !it.passed()).count()
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
        let passed = scored.len() - self.failed();
        let more = unscored.iter().filter(|(_, it)| it.passed()).count();
        write!(
            f,
            "{title}: {passed} of {} passed; of those not scored, {more} of {}",
            scored.len(),
            unscored.len()
        )
    }
}

fn table(f: &mut fmt::Formatter<'_>, rows: &[(String, Verdict)]) -> fmt::Result {
    for (name, verdict) in rows {
        let word = if verdict.passed() { "pass" } else { "FAIL" };
        let outcome: String = verdict.outcome.chars().take(100).collect();
        writeln!(f, "  {word}  {name:<42} {:>3} checks; client: {outcome}", verdict.held)?;
        for wrong in &verdict.wrong {
            writeln!(f, "        {wrong}")?;
        }
    }
    Ok(())
}
