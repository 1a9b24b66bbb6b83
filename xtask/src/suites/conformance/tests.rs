//! Tests of verdicts, requirements and server output.

use super::report::Report;
use super::requirements::{Scenarios, Side, parse_requirements};
use super::verdict::{self, parse_checks, read_client_verdict};

const LISTING: &str = "\
Required for 2026-07-28 (3 scenarios, frozen; run at the 2026-07-28 wire):

Server scenarios (test against a server):
  - tools-list

Client scenarios (test against a client):
  - tools_call
  - auth/basic-cimd

Run and reported, but never scored:
  extension (2):
    - auth/dpop [client]
    - tasks-lifecycle [server]
";

#[test]
fn requirements_are_read_by_section() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let of =
        |scored: &[&str], unscored: &[&str]| Scenarios { scored: names(scored), unscored: names(unscored) };
    assert_eq!(
        parse_requirements(LISTING, Side::Client),
        of(&["tools_call", "auth/basic-cimd"], &["auth/dpop"])
    );
    assert_eq!(parse_requirements(LISTING, Side::Server), of(&["tools-list"], &["tasks-lifecycle"]));
}

#[track_caller]
fn check(statuses: &[&str], stdout: &str, want: &[&str]) {
    let checks: Vec<_> = statuses
        .iter()
        .map(|it| serde_json::json!({"id": "a", "status": it, "description": "what it is about"}))
        .collect();
    let verdict = read_client_verdict(&serde_json::to_string(&checks).unwrap_or_default(), stdout);
    assert_eq!(verdict.problems, want, "{statuses:?}");
    assert_eq!(verdict.has_passed(), want.is_empty());
}

#[test]
fn a_pass_needs_a_passed_check() {
    check(&["SUCCESS", "INFO", "SKIPPED"], "x\noutcome: done\n", &[]);
    check(&["SUCCESS", "FAILURE"], "outcome: done\n", &["a (failure): what it is about"]);
    check(&["SUCCESS", "WARNING"], "outcome: done\n", &["a (warning): what it is about"]);
    let nothing = "no check passed";
    check(&[], "outcome: done\n", &[nothing]);
    check(&["INFO", "SKIPPED"], "outcome: done\n", &[nothing]);
    check(&["SUCCESS"], "", &["the client did not print its outcome"]);
}

#[test]
fn a_server_needs_checks_only() {
    assert!(parse_checks(r#"[{"id":"a","status":"SUCCESS"}]"#).has_passed());
    assert_eq!(parse_checks(r#"[{"id":"a","status":"INFO"}]"#).problems, ["no check passed"]);
}

#[test]
fn results_are_found_by_the_whole_name() {
    let results = std::env::temp_dir().join(format!("xtask-results-{}", std::process::id()));
    let folder = |name: &str| {
        std::fs::create_dir_all(results.join(name)).unwrap();
        std::fs::write(results.join(name).join("checks.json"), r#"[{"id":"a","status":"SUCCESS"}]"#).unwrap();
    };
    folder("server-tools-list-more-2026-11-22T01-39-14-550Z");
    assert_eq!(
        verdict::read_verdict(&results, Side::Server, "tools-list").problems,
        ["the scenario was not run"]
    );
    folder("server-tools-list-2026-11-22T01-39-14-550Z");
    assert!(verdict::read_verdict(&results, Side::Server, "tools-list").has_passed());
    std::fs::remove_dir_all(&results).unwrap();
}

#[test]
fn a_missing_result_fails() {
    let missing = std::path::Path::new("there-is-no-such-folder");
    let verdict = verdict::read_verdict(missing, Side::Client, "auth/basic-cimd");
    assert_eq!(verdict.problems, ["the scenario was not run"]);
    let report = Report {
        title: "client".to_owned(),
        scored: vec![("a".to_owned(), verdict)],
        unscored: Vec::new(),
        seconds: 0.0,
    };
    assert_eq!(report.failed_count(), 1);
    assert!(report.to_string().ends_with("client: 0 of 1 passed; of those not scored, 0 of 0"), "{report}");
}

#[test]
fn documentation_names_what_does_not_count() {
    let page = std::fs::read_to_string(crate::tree::root().join("docs/reliability.md")).unwrap();
    for (name, reason) in super::runs::NOT_COUNTED {
        assert!(page.contains(&format!("| `{name}` | {reason} |")), "{name}");
    }
}

#[test]
fn unreadable_checks_fail() {
    assert!(!parse_checks("no JSON").has_passed());
    assert!(!read_client_verdict("no JSON", "outcome: done").has_passed());
}

#[test]
fn the_url_is_read_from_complete_lines() {
    use super::process::find_url;
    for (output, want) in [
        ("", None),
        ("http://127.0.0.1:80/mcp", None),
        ("http://127.0.0.1:80/mcp\n", Some("http://127.0.0.1:80/mcp")),
        ("note: serving MCP at http://127.0.0.1:80/mcp\nmore", Some("http://127.0.0.1:80/mcp")),
        ("see https://example.com/\n", None),
    ] {
        assert_eq!(find_url(output), want, "{output:?}");
    }
}
