//! What each command writes, for people and for programs, where it succeeds and where it fails: each command's four runs
//! in one snapshot. Times and folders, which change from run to run, are put out of the way. `completions` and `man` write
//! one thing for either reader, and `watch` and `demo-server` go on: these have tests of their own.

use crate::support::{Place, Run};

/// A workspace with a sound server, and one whose program is not there.
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

/// What `acp-check` is asked.
const REQUEST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[{"name":"a","command":"/bin/true","args":[],"env":[]}]}}"#;

/// The most lines of one output that are worth keeping: what is longer has tests of its own.
const LONGEST: usize = 60;

/// The members whose numbers are others with each run.
const CHANGING: [&str; 4] = ["\"duration_ms\"", "\"generation\"", "\"since\"", "\"request_id\""];

/// The runs of one command, each from a fresh folder: how it is called, how it ends, and what it writes.
#[track_caller]
fn check(command: &str, success: &[&str], failure: &[&str]) {
    let mut res = String::new();
    for arguments in [success, failure] {
        for format in ["text", "json"] {
            let place = Place::dominds(WORKSPACE);
            place.write("wrong.yaml", "version: 1\nservers:\n  a:\n    transport: stdio\n    comand: x\n");
            let mut line = vec![command];
            line.extend(arguments);
            line.extend(["--format", format]);
            let run = match command {
                "acp-check" => place.run_with_input(&line, REQUEST),
                _ => place.run(&line),
            };
            res.push_str(&shown(&place, &line, &run));
        }
    }
    insta::assert_snapshot!(command, res);
}

fn shown(place: &Place, line: &[&str], run: &Run) -> String {
    let Run { code, out, err } = run;
    let folder = place.path().display().to_string();
    let out = steady(&out.replace(&folder, "FOLDER"));
    let err = steady(&err.replace(&folder, "FOLDER"));
    format!("$ mcp-host {}\nexit {}\n{out}--- standard error\n{err}\n", line.join(" "), code.unwrap_or(-1))
}

/// The text without times: `(12 ms)` is gone, and the numbers of a document stand for themselves.
fn steady(text: &str) -> String {
    let mut res = String::new();
    let count = text.lines().count();
    for line in text.lines().take(LONGEST) {
        let line = match line.trim_start() {
            it if CHANGING.iter().any(|key| it.starts_with(key)) => {
                let (key, value) = it.split_once(": ").unwrap_or_default();
                // What is not there stays what it is.
                let value = if value.starts_with("null") { "null" } else { "…" };
                let comma = if it.ends_with(',') { "," } else { "" };
                format!("{}{key}: {value}{comma}", &line[..line.len() - it.len()])
            }
            _ => match line.rsplit_once("  (") {
                Some((before, time)) if time.ends_with(" ms)") || time.ends_with(" s)") => before.to_owned(),
                _ => line.to_owned(),
            },
        };
        res.push_str(line.trim_end());
        res.push('\n');
    }
    if count > LONGEST {
        res.push_str(&format!("… and {} lines more\n", count - LONGEST));
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
