//! A scenario passes by what it brought, never by silence.

use super::judge::{judge, judge_client};
use super::list::{Face, Scenarios, read};
use super::report::Report;

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
fn what_is_required_is_read_by_its_part() {
    let names = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect();
    let of =
        |scored: &[&str], unscored: &[&str]| Scenarios { scored: names(scored), unscored: names(unscored) };
    assert_eq!(read(LISTING, Face::Client), of(&["tools_call", "auth/basic-cimd"], &["auth/dpop"]));
    assert_eq!(read(LISTING, Face::Server), of(&["tools-list"], &["tasks-lifecycle"]));
}

#[track_caller]
fn check(statuses: &[&str], stdout: &str, want: &[&str]) {
    let checks: Vec<_> = statuses
        .iter()
        .map(|it| serde_json::json!({"id": "a", "status": it, "description": "what it is about"}))
        .collect();
    let verdict = judge_client(&serde_json::to_string(&checks).unwrap_or_default(), stdout);
    assert_eq!(verdict.wrong, want, "{statuses:?}");
    assert_eq!(verdict.passed(), want.is_empty());
}

#[test]
fn only_a_check_that_holds_makes_a_pass() {
    check(&["SUCCESS", "INFO", "SKIPPED"], "x\noutcome: done\n", &[]);
    check(&["SUCCESS", "FAILURE"], "outcome: done\n", &["a (failure): what it is about"]);
    check(&["SUCCESS", "WARNING"], "outcome: done\n", &["a (warning): what it is about"]);
    let nothing = "no check says that anything holds";
    check(&[], "outcome: done\n", &[nothing]);
    check(&["INFO", "SKIPPED"], "outcome: done\n", &[nothing]);
    check(&["SUCCESS"], "", &["the client never came to an end"]);
}

#[test]
fn a_server_is_judged_by_its_checks_alone() {
    assert!(judge(r#"[{"id":"a","status":"SUCCESS"}]"#).passed());
    assert_eq!(judge(r#"[{"id":"a","status":"INFO"}]"#).wrong, ["no check says that anything holds"]);
}

#[test]
fn results_are_found_by_the_whole_name() {
    let results = std::env::temp_dir().join(format!("xtask-results-{}", std::process::id()));
    let folder = |name: &str| {
        std::fs::create_dir_all(results.join(name)).unwrap();
        std::fs::write(results.join(name).join("checks.json"), r#"[{"id":"a","status":"SUCCESS"}]"#).unwrap();
    };
    folder("server-tools-list-more-2026-11-22T01-39-14-550Z");
    assert_eq!(super::judge::read(&results, Face::Server, "tools-list").wrong, ["it was not run"]);
    folder("server-tools-list-2026-11-22T01-39-14-550Z");
    assert!(super::judge::read(&results, Face::Server, "tools-list").passed());
    std::fs::remove_dir_all(&results).unwrap();
}

#[test]
fn what_was_never_run_fails() {
    let nowhere = std::path::Path::new("there-is-no-such-folder");
    let verdict = super::judge::read(nowhere, Face::Client, "auth/basic-cimd");
    assert_eq!(verdict.wrong, ["it was not run"]);
    let report = Report {
        title: "client".to_owned(),
        scored: vec![("a".to_owned(), verdict)],
        unscored: Vec::new(),
        seconds: 0.0,
    };
    assert_eq!(report.failed(), 1);
    assert!(report.to_string().ends_with("client: 0 of 1 passed; of those not scored, 0 of 0"), "{report}");
}

#[test]
fn unreadable_checks_fail() {
    assert!(!judge("no JSON").passed());
    assert!(!judge_client("no JSON", "outcome: done").passed());
}

#[test]
fn a_program_says_where_it_listens_in_a_whole_line() {
    use super::started::url_in;
    for (said, want) in [
        ("", None),
        ("http://127.0.0.1:80/mcp", None),
        ("http://127.0.0.1:80/mcp\n", Some("http://127.0.0.1:80/mcp")),
        ("note: serving MCP at http://127.0.0.1:80/mcp\nmore", Some("http://127.0.0.1:80/mcp")),
        ("see https://example.com/\n", None),
    ] {
        assert_eq!(url_in(said), want, "{said:?}");
    }
}
