//! Snapshots of the output of each command: text and JSON, success and failure.
//!
//! Times and paths are replaced. `completions`, `man`, `watch` and `demo-server` have tests of their own; `login` and
//! terminal output are in `sessions`.

use crate::support::{DEMO, Run, Workspace};

/// A workspace with a working server, and one whose program is missing.
const WORKSPACE: &str = "\
version: 1
servers:
  demo:
    transport: stdio
    command: mcp-host
    args: [demo-server]
  broken:
    transport: stdio
    command: /no/such/program
";

/// The request for `acp-check`.
const REQUEST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[{"name":"a","command":"/bin/true","args":[],"env":[]}]}}"#;

/// The messages of a client of `serve` and `replay`.
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const ASKED: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}\n";

/// The recording for `replay`.
const RECORDING: &str =
    "{\"format\":\"mcp-recording\",\"version\":1}\n{\"server\":\"a\"}\n{\"method\":\"x\",\"result\":1}\n";

/// The maximum number of lines of one output in a snapshot. Commands with longer output have tests of their own.
const LONGEST: usize = 60;

/// JSON members whose numbers differ between runs.
const CHANGING: [&str; 5] =
    ["\"duration_ms\"", "\"generation\"", "\"since\"", "\"request_id\"", "\"requests\""];

/// The arguments and standard input of a command.
struct Called<'a> {
    arguments: &'a [&'a str],
    input: &'a str,
}

/// The runs of one command, each in a new workspace.
#[track_caller]
fn check(command: &str, success: &[&str], failure: &[&str]) {
    let input = if command == "acp-check" { REQUEST } else { "" };
    check_with(command, [success, failure].map(|arguments| Called { arguments, input }));
}

#[track_caller]
fn check_with(command: &str, calls: [Called<'_>; 2]) {
    let mut res = String::new();
    for Called { arguments, input } in calls {
        for format in ["text", "json"] {
            let workspace = Workspace::dominds(WORKSPACE);
            workspace
                .write("wrong.yaml", "version: 1\nservers:\n  a:\n    transport: stdio\n    comand: x\n");
            workspace.write("out.jsonl", RECORDING);
            workspace.write("one.yaml", DEMO);
            let mut line = vec![command];
            line.extend(arguments);
            line.extend(["--format", format]);
            let run = workspace.run_with_input(&line, input);
            res.push_str(&shown(&workspace, &line, &run));
        }
    }
    insta::assert_snapshot!(command, res);
}

/// A run as snapshot text.
pub(crate) fn shown(workspace: &Workspace, line: &[&str], run: &Run) -> String {
    let Run { code, out, err } = run;
    let folder = workspace.path().display().to_string();
    let out = steady(&out.replace(&folder, "FOLDER"));
    let err = steady(&err.replace(&folder, "FOLDER"));
    format!("$ mcp-host {}\nexit {}\n{out}--- standard error\n{err}\n", line.join(" "), code.unwrap_or(-1))
}

/// Removes times such as `(12 ms)` from text.
fn steady(text: &str) -> String {
    let mut res = String::new();
    let count = text.lines().count();
    for line in text.lines().take(LONGEST) {
        let line = match line.trim_start() {
            it if CHANGING.iter().any(|key| it.starts_with(key)) => {
                let (key, value) = it.split_once(": ").unwrap_or_default();
                // A null is the same in each run.
                let value = if value.starts_with("null") { "null" } else { "…" };
                let comma = if it.ends_with(',') { "," } else { "" };
                format!("{}{key}: {value}{comma}", &line[..line.len() - it.len()])
            }
            // The number of requests besides the calls depends on timing.
            it if it.starts_with("wrote ") && it.ends_with(" requests") => {
                format!("{}, … requests", line.rsplit_once(", ").unwrap_or_default().0)
            }
            _ => match line.rsplit_once("  (") {
                Some((before, time)) if time.ends_with(" ms)") || time.ends_with(" s)") => before.to_owned(),
                _ => line.to_owned(),
            },
        };
        res.push_str(&numberless(line.trim_end()));
        res.push('\n');
    }
    if count > LONGEST {
        res.push_str(&format!("… and {} lines more\n", count - LONGEST));
    }
    res
}

/// A JSON document on one line, without numbers that differ between runs.
fn numberless(line: &str) -> String {
    let mut res = line.to_owned();
    for key in CHANGING {
        let key = format!("{key}:");
        let Some(at) = res.find(&key).map(|it| it + key.len()) else { continue };
        let length = res[at..].bytes().take_while(|it| it.is_ascii_digit() || *it == b'.').count();
        res.replace_range(at..at + length, if length > 0 { "…" } else { "" });
    }
    res
}

#[test]
fn reading() {
    check("check", &["."], &["wrong.yaml"]);
    check(
        "explain",
        &[".", "--server", "demo", "--tool", "echo"],
        &[".", "--server", "nobody", "--tool", "x"],
    );
    check("schema", &["acp-v1"], &["dominds", "--profile", "holodeck-0.7"]);
    check("acp-check", &["--capabilities", "{}"], &["--capabilities", "[]"]);
}

#[test]
fn starting() {
    check("tools", &[".", "--server", "demo", "--schema", "echo"], &[".", "--server", "broken"]);
    check("prompts", &[".", "--server", "demo"], &[".", "--server", "broken"]);
    check("resources", &[".", "--server", "demo"], &[".", "--server", "broken"]);
    check("doctor", &[".", "--server", "demo"], &[".", "--server", "broken"]);
    check("call", &[".", "add", "a=2", "b=3"], &[".", "add", "a=2"]);
}

#[test]
fn changing() {
    check("convert", &[".", "--to", "mcp-json"], &["wrong.yaml", "--to", "mcp-json"]);
    check("add", &[".", "new", "--url", "https://new.example/mcp"], &[".", "demo", "--command", "x"]);
    check("import", &[], &["--from", "nowhere.json"]);
    check("remove", &[".", "demo"], &[".", "nobody"]);
    check("enable", &[".", "demo"], &[".", "nobody"]);
    check("disable", &[".", "demo"], &[".", "nobody"]);
}

#[test]
fn going_on() {
    let lines = |arguments, input| Called { arguments, input };
    check_with(
        "shell",
        [
            lines(&["one.yaml"], "echo text=hello\nadd a=2 b=3\nservers\n"),
            lines(&["one.yaml"], "fail message=no\necho\nnothing\nprompts x\n"),
        ],
    );
    check(
        "record",
        &[".", "-o", "new.jsonl", "--server", "demo", "--call", "echo", r#"{"text":"hello"}"#],
        &[".", "-o", "new.jsonl", "--server", "demo", "--call", "nothing", "{}"],
    );
    check_with("replay", [lines(&["out.jsonl"], ASKED), lines(&["wrong.yaml"], ASKED)]);
    check_with(
        "serve",
        [
            lines(&[".", "--stdio", "--log-level", "error", "--only", "demo"], INITIALIZE),
            lines(&[".", "--stdio", "--log-level", "error", "--only", "nobody"], INITIALIZE),
        ],
    );
}
