//! What the suite found out about one scenario, and whether that is enough.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::list::Face;

/// The line that the client ends its standard output with.
const OUTCOME: &str = "outcome: ";

/// A scenario's result.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Checks that hold.
    pub held: usize,
    /// What is wrong, in a sentence each; nothing of it where the scenario passed.
    pub wrong: Vec<String>,
    /// How the client says that it ended; `None` where it does not, or where no client was judged.
    pub outcome: Option<String>,
}

/// The verdict about a scenario for this face whose results lie in a folder below `results`.
pub(super) fn read(results: &Path, face: Face, scenario: &str) -> Verdict {
    let begins = match face {
        Face::Client => scenario.to_owned(),
        Face::Server => format!("server-{scenario}"),
    };
    let Some(folder) = folder(results, &begins) else { return Verdict::never("it was not run") };
    let Ok(checks) = fs::read_to_string(folder.join("checks.json")) else {
        return Verdict::never("it brought no checks");
    };
    match face {
        Face::Client => {
            judge_client(&checks, &fs::read_to_string(folder.join("stdout.txt")).unwrap_or_default())
        }
        Face::Server => judge(&checks),
    }
}

/// The verdict that `checks.json` and the client's standard output give.
pub(super) fn judge_client(checks: &str, stdout: &str) -> Verdict {
    let mut res = judge(checks);
    res.outcome = stdout.lines().rev().find_map(|it| it.strip_prefix(OUTCOME)).map(str::to_owned);
    if res.outcome.is_none() {
        res.wrong.push("the client never came to an end".to_owned());
    }
    res
}

/// The verdict that `checks.json` gives.
pub(super) fn judge(checks: &str) -> Verdict {
    let checks: Vec<Value> = match serde_json::from_str(checks) {
        Ok(checks) => checks,
        Err(error) => return Verdict::never(format!("its checks cannot be read: {error}")),
    };
    let is = |check: &&Value, status: &str| check["status"].as_str() == Some(status);
    let mut wrong: Vec<String> = Vec::new();
    for check in checks.iter().filter(|it| is(it, "FAILURE") || is(it, "WARNING")) {
        let text = |key: &str| check[key].as_str().unwrap_or_default();
        let why = if text("errorMessage").is_empty() { text("description") } else { text("errorMessage") };
        wrong.push(format!("{} ({}): {why}", text("id"), text("status").to_lowercase()));
    }
    let held = checks.iter().filter(|it| is(it, "SUCCESS")).count();
    if held == 0 {
        wrong.push("no check says that anything holds".to_owned());
    }
    Verdict { held, wrong, outcome: None }
}

/// The folder of a scenario: its name and a moment, such as `auth/iss-supported-2026-11-22T01-39-14-550Z`.
fn folder(results: &Path, scenario: &str) -> Option<PathBuf> {
    let (above, name) = match scenario.rsplit_once('/') {
        Some((above, name)) => (results.join(above), name),
        None => (results.to_owned(), scenario),
    };
    fs::read_dir(above).ok()?.filter_map(Result::ok).map(|it| it.path()).find(|path| {
        let found = path.file_name().map(|it| it.to_string_lossy()).unwrap_or_default();
        found.strip_prefix(name).and_then(|it| it.strip_prefix('-')).is_some_and(is_moment)
    })
}

/// Two scenarios' names may begin alike.
fn is_moment(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    digits == 4 && text.ends_with('Z') && text.contains('T')
}

impl Verdict {
    fn never(why: impl Into<String>) -> Verdict {
        Verdict { held: 0, wrong: vec![why.into()], outcome: None }
    }

    pub(super) fn passed(&self) -> bool {
        self.wrong.is_empty()
    }
}
