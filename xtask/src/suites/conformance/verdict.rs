//! The verdict on one scenario, from the files that the suite wrote.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::requirements::Side;

/// The prefix of the last line of the client's output.
const OUTCOME_PREFIX: &str = "outcome: ";

/// The result of a scenario.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The number of passed checks.
    pub passed_checks: usize,
    /// One message for each problem; empty if the scenario passed.
    pub problems: Vec<String>,
    /// The outcome that the client printed; `None` for a server.
    pub outcome: Option<String>,
}

/// Reads the verdict on a scenario from its folder in `results`.
pub(super) fn read_verdict(results: &Path, side: Side, scenario: &str) -> Verdict {
    let prefix = match side {
        Side::Client => scenario.to_owned(),
        Side::Server => format!("server-{scenario}"),
    };
    let Some(folder) = find_folder(results, &prefix) else {
        return Verdict::missing("the scenario was not run");
    };
    let Ok(checks) = fs::read_to_string(folder.join("checks.json")) else {
        return Verdict::missing("the scenario has no checks");
    };
    match side {
        Side::Client => {
            read_client_verdict(&checks, &fs::read_to_string(folder.join("stdout.txt")).unwrap_or_default())
        }
        Side::Server => parse_checks(&checks),
    }
}

/// The verdict from `checks.json` and the client's standard output.
pub(super) fn read_client_verdict(checks: &str, stdout: &str) -> Verdict {
    let mut res = parse_checks(checks);
    res.outcome = stdout.lines().rev().find_map(|line| line.strip_prefix(OUTCOME_PREFIX)).map(str::to_owned);
    if res.outcome.is_none() {
        res.problems.push("the client did not print its outcome".to_owned());
    }
    res
}

/// The verdict from `checks.json`.
pub(super) fn parse_checks(checks: &str) -> Verdict {
    let checks: Vec<Value> = match serde_json::from_str(checks) {
        Ok(checks) => checks,
        Err(error) => return Verdict::missing(format!("the checks are not valid JSON: {error}")),
    };
    let has_status = |check: &&Value, status: &str| check["status"].as_str() == Some(status);
    let mut problems: Vec<String> = Vec::new();
    for check in checks.iter().filter(|it| has_status(it, "FAILURE") || has_status(it, "WARNING")) {
        let text = |key: &str| check[key].as_str().unwrap_or_default();
        let message =
            if text("errorMessage").is_empty() { text("description") } else { text("errorMessage") };
        problems.push(format!("{} ({}): {message}", text("id"), text("status").to_lowercase()));
    }
    let passed_checks = checks.iter().filter(|it| has_status(it, "SUCCESS")).count();
    if passed_checks == 0 {
        problems.push("no check passed".to_owned());
    }
    Verdict { passed_checks, problems, outcome: None }
}

/// The folder of a scenario: its name and a timestamp, such as `auth/iss-supported-2026-11-22T01-39-14-550Z`.
fn find_folder(results: &Path, scenario: &str) -> Option<PathBuf> {
    let (above, name) = match scenario.rsplit_once('/') {
        Some((above, name)) => (results.join(above), name),
        None => (results.to_owned(), scenario),
    };
    fs::read_dir(above).ok()?.filter_map(Result::ok).map(|it| it.path()).find(|path| {
        let found = path.file_name().map(|it| it.to_string_lossy()).unwrap_or_default();
        found.strip_prefix(name).and_then(|it| it.strip_prefix('-')).is_some_and(is_timestamp)
    })
}

/// Distinguishes the timestamp from the rest of a longer scenario name.
fn is_timestamp(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    digits == 4 && text.ends_with('Z') && text.contains('T')
}

impl Verdict {
    /// The verdict on a scenario without checks.
    fn missing(message: impl Into<String>) -> Verdict {
        Verdict { passed_checks: 0, problems: vec![message.into()], outcome: None }
    }

    /// Whether the scenario has no problem.
    pub(super) fn has_passed(&self) -> bool {
        self.problems.is_empty()
    }
}
