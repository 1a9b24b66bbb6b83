//! Access to real files and recorded results of the real systems, which are not part of the repository.
//!
//! A test without its folder prints that it is skipped and passes. If the variable is set, a missing file is a failure.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;

use serde_json::Value;

/// The folder that a variable names. Prints that `test` is skipped if it is not set.
pub(crate) fn folder_of_variable(variable: &str, test: &str) -> Option<PathBuf> {
    let res = std::env::var_os(variable).map(PathBuf::from);
    if res.is_none() {
        // Not `eprintln!`, whose output is shown only if the test fails.
        let line = format!("{test}: skipped, because {variable} is not set\n");
        std::io::stderr().write_all(line.as_bytes()).unwrap();
    }
    res
}

/// A file of recorded results. Python writes infinity, which is not JSON; it becomes the text `.inf`.
pub(crate) fn recorded_results(test: &str, name: &str) -> Option<Value> {
    let path = folder_of_variable("MCP_HOST_ORACLES", test)?.join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|it| panic!("{name}: {it}"));
    Some(serde_json::from_str(&text.replace(": Infinity", ": \".inf\"")).unwrap())
}

/// The text of a value that must be a text.
pub(crate) fn expect_text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

/// The items of a value that must be a list.
pub(crate) fn expect_list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

/// A case: its label, the recorded result of the real system, and our result.
pub(crate) type Case = (String, String, String);

/// Intended differences: a reason and the labels of its cases.
pub(crate) type Differences<'a> = &'a [(&'a str, &'a [&'a str])];

/// Checks that the results are equal except for the listed cases, and that each listed case differs.
#[track_caller]
#[expect(clippy::print_stderr, reason = "the counts are what the test is run for")]
pub(crate) fn compare(label: &str, cases: &[Case], listed: Differences<'_>) {
    let labels: BTreeSet<_> = cases.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(labels.len(), cases.len(), "{label}: two cases have the same label");
    let different: BTreeMap<_, _> =
        cases.iter().filter(|it| it.1 != it.2).map(|it| (it.0.as_str(), (&it.1, &it.2))).collect();
    let mut reasons = BTreeMap::new();
    for (reason, labels) in listed {
        for case in *labels {
            assert!(reasons.insert(*case, *reason).is_none(), "{label}: {case} is listed twice");
        }
    }
    let unlisted: Vec<_> = different
        .iter()
        .filter(|it| !reasons.contains_key(*it.0))
        .map(|(case, (theirs, ours))| format!("{case}\n    theirs: {theirs}\n    ours:   {ours}"))
        .collect();
    assert!(
        unlisted.is_empty(),
        "{label}: {} answers differ without a reason\n{}",
        unlisted.len(),
        unlisted.join("\n")
    );
    let equal: Vec<_> = reasons.keys().filter(|it| !different.contains_key(*it)).collect();
    assert!(equal.is_empty(), "{label}: listed as different, and are not: {equal:?}");
    eprintln!("{label}: {} cases, {} agree", cases.len(), cases.len() - different.len());
    for (reason, labels) in listed {
        eprintln!("    {:3} {reason}", labels.len());
    }
}

/// Completes a snippet of an agent: a list of tools, one tool, or the global configuration with its `mcp_servers`.
pub(crate) fn complete_agent(text: &str) -> String {
    let first = text.lines().find(|it| !it.trim().is_empty() && !it.trim_start().starts_with('#'));
    let first = first.unwrap_or_default();
    if first.trim_start().starts_with("- ") {
        return format!("tools:\n{text}");
    }
    if ["name:", "transport:"].iter().any(|it| first.starts_with(it)) && !text.contains("\ntools:") {
        return format!("tools:\n  -\n{}", text.lines().map(|it| format!("    {it}\n")).collect::<String>());
    }
    text.replace("\nmcp_servers:", "\ntools:")
}
