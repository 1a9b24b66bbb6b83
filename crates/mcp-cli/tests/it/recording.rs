//! `record` and `replay`: a replay equals the recorded server.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use mcp_testkit::process::{catches_signal, send_signal};
use mcp_testkit::wait::block_until;
use serde_json::{Value, json};

use crate::support::{DEMO, Workspace};

/// A configuration whose server replays `out.jsonl`.
fn replayed(arguments: &str) -> String {
    format!(
        "version: 1\nservers:\n  demo:\n    transport: stdio\n    command: mcp-host\n    args: [replay, \
        out.jsonl{arguments}]\n"
    )
}

const CALLS: [(&str, &str); 4] = [
    ("echo", r#"{"text": "hello"}"#),
    ("add", r#"{"a": 2, "b": 3}"#),
    ("mixed", "{}"),
    ("fail", r#"{"message": "no milk"}"#),
];

/// The output of lists and calls, without times and numbers.
fn seen(workspace: &Workspace, file: &str) -> Vec<Value> {
    let document = |arguments: &[&str]| {
        let mut value = workspace.run(arguments).json();
        if let Some(object) = value.as_object_mut() {
            object.remove("generation");
        }
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|name, _| !matches!(name.as_str(), "duration_ms" | "request_id"));
        }
        value
    };
    let lists = ["tools", "prompts", "resources"].map(|it| document(&[it, file, "--format", "json"]));
    let calls = CALLS.map(|(tool, it)| document(&["call", file, tool, it, "--format", "json"]));
    lists.into_iter().chain(calls).collect()
}

#[test]
fn replay_returns_recorded_responses() {
    let workspace = Workspace::dominds(DEMO);
    let mut arguments = vec!["record", ".", "-o", "out.jsonl"];
    for (tool, it) in CALLS {
        arguments.extend(["--call", tool, it]);
    }
    let run = workspace.run(&arguments);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.starts_with("hello\n5\n"), "{run:?}");
    assert!(run.err.contains("MCPToolError: no milk\n"), "{run:?}");
    assert!(run.err.contains("\nwrote out.jsonl: demo (modern), "), "{run:?}");
    workspace.write("replayed.yaml", &replayed(""));
    let real = seen(&workspace, ".minds/mcp.yaml");
    // Without a result, the comparison would be empty.
    assert_eq!(real[3]["content"], json!([{"type": "text", "text": "hello"}]));
    let mut arguments = seen(&workspace, "replayed.yaml");
    assert_eq!(arguments.len(), real.len());
    for (got, want) in arguments.drain(..).zip(real) {
        assert_eq!(got, want);
    }
    // The error for a call that was not recorded names the most similar recorded call.
    let run = workspace.run(&["call", "replayed.yaml", "echo", "text=other"]);
    assert_eq!(run.code, Some(1));
    assert!(
        run.err
            .contains(r#"the most similar one is: tools/call {"arguments":{"text":"hello"},"name":"echo"}"#),
        "{run:?}"
    );
    // A second recording of the same calls has the same bytes.
    let before = std::fs::read_to_string(workspace.path().join("out.jsonl")).unwrap();
    let mut again = vec!["record", ".", "-o", "out.jsonl", "--format", "json"];
    for (tool, it) in CALLS {
        again.extend(["--call", tool, it]);
    }
    let document = workspace.run(&again).json();
    assert_eq!(before, std::fs::read_to_string(workspace.path().join("out.jsonl")).unwrap());
    assert_eq!((&document["out"], &document["left_out"]), (&"out.jsonl".into(), &0.into()));
    assert_eq!(document["servers"][0]["name"], "demo");
    assert_eq!(document["servers"][0]["era"], "modern");
    assert_eq!(document["calls"].as_array().unwrap().len(), CALLS.len());
}

#[test]
fn calls_are_read_from_a_file() {
    let workspace = Workspace::dominds(DEMO);
    let calls = "# what to say\necho text='from a line'\n\nadd {\"a\": 2,\n";
    let run = workspace.run_with_input(&["record", ".", "-o", "out.jsonl", "--calls", "-"], calls);
    assert_eq!(run.code, Some(2));
    assert_eq!(run.err, "error: standard input, line 4: the bracket { is not closed\n");
    let run = workspace.run_with_input(
        &["record", "-o", "out.jsonl", "--calls", "-"],
        "echo text='from a line'\nadd {\"a\": 2, \"b\": 3}\nnothing\n",
    );
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.out.starts_with("from a line\n5\n"), "{run:?}");
    assert!(run.err.contains("MCPToolNotFoundError: Tool 'nothing' not found"), "{run:?}");
    assert!(std::fs::read_to_string(workspace.path().join("out.jsonl")).unwrap().contains("from a line"));
}

#[test]
fn hd_sc5_no_secret_is_in_a_recording() {
    let workspace = Workspace::dominds(&format!("{DEMO}    env: {{DEMO_TOKEN: sk-live-1234567890}}\n"));
    let run = workspace.run(&[
        "record",
        ".",
        "-o",
        "out.jsonl",
        "--call",
        "env",
        r#"{"name": "DEMO_TOKEN"}"#,
        "--call",
        "echo",
        r#"{"text": "sk-live-1234567890"}"#,
    ]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert!(run.out.contains("sk-live-1234567890"), "the tool did not answer: {run:?}");
    let text = std::fs::read_to_string(workspace.path().join("out.jsonl")).unwrap();
    assert!(!text.contains("sk-live"), "{text}");
    assert!(text.contains("***"), "{text}");
    // The replay accepts calls with and without the secret.
    workspace.write("replayed.yaml", &replayed(""));
    for word in ["text=sk-live-1234567890", "text=x"] {
        let run = workspace.run(&["call", "replayed.yaml", "echo", word]);
        assert_eq!((run.code, run.out.as_str()), (Some(0), "***\n"), "{run:?}");
    }
}

/// A configuration whose server is recorded by a proxy. The server is shared, so that only one process writes the
/// recording.
const BETWEEN: &str = "\
version: 1
servers:
  demo:
    truely-stateless: true
    transport: stdio
    command: mcp-host
    args: [record, -o, out.jsonl, --server, demo, --, mcp-host, demo-server]
    env: {DEMO_TOKEN: sk-live-1234567890}
";

#[test]
fn proxy_records_the_session_of_any_host() {
    let workspace = Workspace::dominds(BETWEEN);
    let run = workspace.run(&["call", ".", "echo", "text=between"]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "between\n"), "{run:?}");
    let text = std::fs::read_to_string(workspace.path().join("out.jsonl")).unwrap();
    assert!(text.contains(r#""params":{"arguments":{"text":"between"},"name":"echo"}"#), "{text}");
    let run = workspace.run(&["call", ".", "env", "name=DEMO_TOKEN"]);
    assert_eq!(run.out, "sk-live-1234567890\n", "{run:?}");
    let text = std::fs::read_to_string(workspace.path().join("out.jsonl")).unwrap();
    assert!(text.contains("***") && !text.contains("sk-live"), "{text}");
}

#[test]
fn interrupted_edit_leaves_a_complete_file() {
    let workspace = Workspace::dominds(DEMO);
    let arguments = [
        "record",
        ".",
        "-o",
        "out.jsonl",
        "--call",
        "echo",
        r#"{"text":"first"}"#,
        "--call",
        "sleep",
        r#"{"ms":60000,"steps":1000}"#,
    ];
    let mut child = workspace.command(&arguments).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|it| it.unwrap().starts_with("sleep: 0% step 1 of")));
    assert!(!workspace.path().join("out.jsonl").exists());
    std::thread::spawn(move || lines.for_each(drop));
    send_signal("INT", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let text = std::fs::read_to_string(workspace.path().join("out.jsonl")).unwrap();
    let calls: Vec<Value> = text
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .filter(|it: &Value| it["method"] == "tools/call")
        .collect();
    assert_eq!(calls.len(), 2, "{text}");
    assert_eq!(calls[0]["result"]["content"][0]["text"], "first");
    assert!(calls[1].get("result").is_none());
}

/// A server that is killed on drop.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn recording_is_served_over_http() {
    let workspace = Workspace::dominds(DEMO);
    let run = workspace.run(&["record", ".", "-o", "out.jsonl", "--call", "echo", r#"{"text":"hello"}"#]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let mut child = workspace.command(&["replay", "out.jsonl", "--http", "127.0.0.1:0"]).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let served = Served(child);
    let url = line.trim().rsplit_once(' ').unwrap().1;
    workspace.write(".mcp.json", &json!({"mcpServers": {"demo": {"type": "http", "url": url}}}).to_string());
    for _ in 0..2 {
        let run = workspace.run(&["call", ".mcp.json", "echo", "text=hello"]);
        assert_eq!((run.code, run.out.as_str()), (Some(0), "hello\n"), "{run:?}");
    }
    let pid = served.0.id();
    send_signal("TERM", pid);
    let mut served = served;
    assert_eq!(served.0.wait().unwrap().code(), Some(143));
}

#[test]
fn replay_ends_when_its_client_disconnects() {
    let workspace = Workspace::empty();
    workspace.write(
        "out.jsonl",
        "{\"format\":\"mcp-recording\",\"version\":1}\n{\"server\":\"a\"}\n\
        {\"server\":\"b\"}\n{\"method\":\"x\",\"result\":1}\n",
    );
    let request = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\"}\n";
    let run = workspace.run_with_input(&["replay", "out.jsonl", "--server", "b"], request);
    assert_eq!(
        (run.code, run.out.as_str(), run.err.as_str()),
        (Some(0), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}\n", "")
    );
    let mut child =
        workspace.command(&["replay", "out.jsonl", "--server", "b"]).stdin(Stdio::piped()).spawn().unwrap();
    let input = child.stdin.take();
    block_until(|| catches_signal(child.id(), 15));
    send_signal("TERM", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(143));
    drop(input);
}

#[track_caller]
fn check_refused(arguments: &[&str], code: i32, want: &str) {
    let workspace = Workspace::empty();
    workspace.write(
        "two.jsonl",
        "{\"format\":\"mcp-recording\",\"version\":1}\n{\"server\":\"a\"}\n{\"server\":\"b\"}\n",
    );
    workspace.write("none.jsonl", "servers: {}\n");
    let run = workspace.run(arguments);
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (Some(code), "", want));
}

#[test]
fn record_and_replay_errors_are_reported() {
    check_refused(
        &["replay", "two.jsonl"],
        2,
        "error: the recording has several servers; use --server with one of: a, b\n",
    );
    check_refused(
        &["replay", "two.jsonl", "--server", "c"],
        2,
        "error: there is no server `c` in the recording; the servers are: a, b\n",
    );
    check_refused(
        &["replay", "none.jsonl"],
        1,
        "error: none.jsonl: this is not a recording: its first line is not \
        {\"format\":\"mcp-recording\",\"version\":1}\n",
    );
    check_refused(
        &["replay", "gone.jsonl"],
        1,
        "error: could not read gone.jsonl: No such file or directory (os error 2)\n",
    );
    check_refused(
        &["replay", "two.jsonl", "--server", "a", "--http", "8.8.8.8:80"],
        2,
        "error: 8.8.8.8:80 is not a loopback address; use 127.0.0.1 or [::1]\n",
    );
    check_refused(&["record", ".", "-o", "no/such.jsonl"], 2, "error: the folder no does not exist\n");
    check_refused(&["shell", ".", "--record", "."], 2, "error: . is a folder\n");
    check_refused(
        &["record", "-o", "out.jsonl", "--", "/no/such/program"],
        3,
        "error: could not start /no/such/program: No such file or directory (os error 2)\n",
    );
}
