//! `schema --compare`: output, exit codes and bad input.

use serde_json::json;

use crate::support::{Run, Workspace};

const OLD: &str =
    r#"{"type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}}"#;
const SHORT_NAME: &str = r#"{"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}, "port": {"type": "integer"}}}"#;
const MORE_KEYS: &str = r#"{"type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer"}, "host": {"type": "string"}}}"#;
/// What a reference to another document means is unknown, because nothing is fetched.
const ELSEWHERE: &str = r#"{"type": "object", "properties": {"name": {"$ref": "https://example.com/name.json"}, "port": {"type": "integer"}}}"#;

fn run(old: &str, new: &str, arguments: &[&str]) -> Run {
    let workspace = Workspace::empty();
    workspace.write("old.json", old);
    workspace.write("new.json", new);
    workspace.run(&[&["schema", "--compare", "old.json", "new.json"], arguments].concat())
}

#[track_caller]
fn check(new: &str, arguments: &[&str], code: i32, last_line: &str) {
    let run = run(OLD, new, arguments);
    assert_eq!((run.code, run.out.lines().last()), (Some(code), Some(last_line)), "{run:?}");
    assert_eq!(run.err, "");
}

#[test]
fn exit_code_tells_whether_each_change_is_harmless() {
    check(OLD, &[], 0, "for a reader: 0 breaks, 0 unknown, 0 harmless");
    check(MORE_KEYS, &[], 0, "for a reader: 0 breaks, 0 unknown, 1 harmless");
    check(SHORT_NAME, &[], 1, "for a reader: 1 break, 0 unknown, 0 harmless");
    check(SHORT_NAME, &["--for", "writer"], 0, "for a writer: 0 breaks, 0 unknown, 1 harmless");
    check(SHORT_NAME, &["--allow-unproven"], 1, "for a reader: 1 break, 0 unknown, 0 harmless");
}

#[test]
fn unproven_change_fails_unless_it_is_allowed() {
    let refused = run(OLD, ELSEWHERE, &[]);
    assert!(refused.code == Some(1) && refused.out.contains("0 breaks, 1 unknown"), "{refused:?}");
    let allowed = run(OLD, ELSEWHERE, &["--allow-unproven"]);
    assert_eq!((allowed.code, allowed.out), (Some(0), refused.out));
}

#[test]
fn break_has_a_document_in_each_format() {
    let text = run(OLD, SHORT_NAME, &[]).out;
    assert!(
        text.starts_with("break: name: `maxLength` is added: 3") && text.contains("for example {"),
        "{text}"
    );

    let document = run(OLD, SHORT_NAME, &["--format", "json"]).json();
    assert_eq!(document["verdict"], "break");
    assert_eq!(document["changes"][0]["new"], "/properties/name/maxLength");
    assert!(document["changes"][0]["witness"]["name"].is_string(), "{document}");

    let document = run(OLD, SHORT_NAME, &["--format", "sarif"]).json();
    let result = &document["runs"][0]["results"][0];
    let location = &result["locations"][0]["physicalLocation"]["artifactLocation"];
    assert_eq!((&result["level"], location), (&json!("error"), &json!({ "uri": "new.json" })));
}

#[test]
fn one_schema_is_read_from_standard_input() {
    let workspace = Workspace::empty();
    workspace.write("a.json", OLD);
    let run = workspace.run_with_input(&["schema", "--compare", "-", "a.json"], SHORT_NAME);
    assert!(run.code == Some(0) && run.out.contains("`maxLength` is removed"), "{run:?}");
    let run = workspace.run_with_input(&["schema", "--compare", "a.json", "-"], SHORT_NAME);
    assert!(run.code == Some(1) && run.out.contains("`maxLength` is added"), "{run:?}");
    let run = workspace.run_with_input(&["schema", "--compare", "-", "-"], SHORT_NAME);
    assert_eq!(run.code, Some(2));
    assert_eq!(
        run.err,
        "error: both schemas are `-`, but standard input has only one\n  help: write one of them to a file\n"
    );
}

/// The message for a pair of schemas that cannot be compared.
#[track_caller]
fn check_refused(old: &str, new: &str, arguments: &[&str], want: &str) {
    let run = run(old, new, arguments);
    assert_eq!((run.code, run.out.as_str()), (Some(2), ""), "{run:?}");
    assert!(run.err.starts_with(want), "{run:?}");
    assert!(run.err.len() < 700, "{run:?}");
}

#[test]
fn bad_input_is_explained() {
    let json = "is not valid JSON: expected `:` at line 2 column 5\n  help: a schema is a JSON file; ";
    check_refused("{\n \"a\"}", OLD, &[], &format!("error: old.json {json}"));
    check_refused(OLD, "{\n \"a\"}", &[], &format!("error: new.json {json}"));
    check_refused(OLD, "type: object", &[], "error: new.json is not valid JSON: ");
    check_refused(
        r#"{"properties": {"a": {"type": "strin"}}}"#,
        OLD,
        &["--format", "json"],
        "error: old.json is not a JSON Schema: at `/properties/a/type`: ",
    );
    check_refused(
        OLD,
        "[]",
        &[],
        "error: new.json is not a JSON Schema: it is neither an object nor a boolean",
    );
    check_refused(OLD, OLD, &["--format", "github"], "error: only `check` supports the format github");
    let deep = format!("{}{{}}{}", r#"{"not": "#.repeat(120), "}".repeat(120));
    check_refused(
        &deep,
        OLD,
        &[],
        "error: old.json is nested too deeply\n  help: move inner schemas to `$defs`",
    );
    let endless = format!("{}{{}}{}", r#"{"not": "#.repeat(20_000), "}".repeat(20_000));
    check_refused(
        OLD,
        &endless,
        &[],
        "error: new.json is not valid JSON: recursion limit exceeded at line 1",
    );
    let large = format!(r#"{{"enum": [{}0]}}"#, "0,".repeat(500_000));
    check_refused(OLD, &large, &[], "error: new.json has too many values\n  help: compare parts of it");
    let huge = " ".repeat((16 << 20) + 1);
    check_refused(OLD, &huge, &[], "error: could not read the schema new.json: larger than 16 MiB");

    let workspace = Workspace::empty();
    std::fs::write(workspace.path().join("binary.json"), b"\xff").unwrap();
    for (name, want) in
        [("gone.json", "No such file"), ("binary.json", "not valid UTF-8"), (".", "directory")]
    {
        let run = workspace.run(&["schema", "--compare", name, name]);
        assert!(run.code == Some(2) && run.err.contains(name) && run.err.contains(want), "{run:?}");
    }
}

/// A schema may have keys with escape sequences.
#[test]
fn control_characters_are_escaped() {
    let old = r#"{"properties": {"a\u001b[31m": {"type": "string"}}}"#;
    for format in ["text", "json", "sarif"] {
        let run = run(old, r#"{"properties": {"a\u001b[31m": {"type": "null"}}}"#, &["--format", format]);
        assert!(run.code == Some(1) && !run.out.contains('\u{1b}'), "{run:?}");
    }
}
