//! A scenario passes by what it brought, never by silence.

use super::judge::judge;
use super::list::{Requirements, read};
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
    let want = Requirements {
        client: vec!["tools_call".to_owned(), "auth/basic-cimd".to_owned()],
        client_unscored: vec!["auth/dpop".to_owned()],
    };
    assert_eq!(read(LISTING), want);
}

#[track_caller]
fn check(statuses: &[&str], stdout: &str, want: &[&str]) {
    let checks: Vec<_> = statuses
        .iter()
        .map(|it| serde_json::json!({"id": "a", "status": it, "description": "what it is about"}))
        .collect();
    let verdict = judge(&serde_json::to_string(&checks).unwrap_or_default(), stdout);
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
fn what_was_never_run_fails() {
    let nowhere = std::path::Path::new("there-is-no-such-folder");
    let verdict = super::judge::read(nowhere, "auth/basic-cimd");
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
    assert!(!judge("no JSON", "outcome: done").passed());
}
