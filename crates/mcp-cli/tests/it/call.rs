//! `call`: results, errors and arguments.

use serde_json::json;

use crate::support::{DEMO, PROGRAM, Workspace};

#[track_caller]
fn check(tool: &str, arguments: &str, want: (i32, &str, &str)) {
    let run = Workspace::dominds(DEMO).run(&["call", ".minds/mcp.yaml", tool, arguments]);
    assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (Some(want.0), want.1, want.2));
}

#[test]
fn call_results_and_errors_as_text() {
    check("echo", r#"{"text":"hello"}"#, (0, "hello\n", ""));
    check("echo", r#"{"text":"\u001b[31mred\u0007"}"#, (0, "red\n", ""));
    check("add", r#"{"a":2,"b":3}"#, (0, "5\n{\n  \"sum\": 5\n}\n", ""));
    check(
        "mixed",
        "{}",
        (
            0,
            "One block of each kind:\n[image: image/png, 76 bytes]\n[audio: audio/wav, 124 bytes]\n\
             [resource: text/plain, demo://greeting, 28 bytes]\nHello from the demo server.\n\
             [link: text/plain, demo://greeting]\n",
            "",
        ),
    );
    check("fail", r#"{"message":"no milk"}"#, (1, "", "MCPToolError: no milk\n"));
    check(
        "ecko",
        "{}",
        (
            1,
            "",
            "MCPToolNotFoundError: Tool 'ecko' not found; did you mean 'echo'?\n  \
             help: `mcp-host tools .minds/mcp.yaml` lists the tools\n",
        ),
    );
    check(
        "echo",
        "{}",
        (
            1,
            "",
            "ValidationError: Invalid arguments for tool 'echo': \"text\" is a required property\n  \
             help: `mcp-host tools .minds/mcp.yaml --schema echo` shows the arguments of the tool\n",
        ),
    );
    check(
        "echo",
        "{text: 1}",
        (
            2,
            "",
            "error: ARGS is not valid JSON: key must be a string at line 1 column 2\n  {text: 1}\n   ^\n  \
             help: write one JSON object in single quotes, such as '{\"text\": \"hello\"}', or name=value pairs, or \
             @FILE, or `-` for standard input\n",
        ),
    );
    check(
        "sleep",
        r#"{"ms":20,"steps":2}"#,
        (0, "slept 20 ms in 2 steps\n", "sleep: 1/2 step 1 of 2\nsleep: 2/2 step 2 of 2\n"),
    );
}

#[track_caller]
fn check_json(tool: &str, arguments: &str, code: i32, want: serde_json::Value) {
    let run = Workspace::dominds(DEMO).run(&["call", ".", tool, arguments, "--format", "json"]);
    assert_eq!(run.code, Some(code), "{run:?}");
    // The error is in the document.
    assert_eq!(run.err, "note: reading .minds/mcp.yaml\n");
    let mut document = run.json();
    let metadata = document.as_object_mut().unwrap().remove("metadata").unwrap();
    assert_eq!(document, want);
    assert_eq!(metadata["tool"], tool);
    assert!(metadata["duration_ms"].is_number());
}

#[test]
fn call_results_and_errors_as_json() {
    check_json(
        "echo",
        r#"{"text":"hello"}"#,
        0,
        json!({"success": true, "content": [{"type": "text", "text": "hello"}], "error": null}),
    );
    check_json(
        "fail",
        r#"{"message":"no milk"}"#,
        1,
        json!({
            "success": false,
            "content": [{"type": "text", "text": "no milk"}],
            "error": {"kind": "MCPToolError", "message": "no milk"},
        }),
    );
    check_json(
        "nothing",
        "{}",
        1,
        json!({
            "success": false,
            "content": [],
            "error": {"kind": "MCPToolNotFoundError", "message": "Tool 'nothing' not found"},
        }),
    );
}

#[test]
fn arguments_are_read_from_standard_input() {
    let workspace = Workspace::dominds(DEMO);
    let run = workspace.run_with_input(&["call", ".", "echo", "-"], "{\n  \"text\": \"piped\"\n}\n");
    assert_eq!((run.code, run.out.as_str()), (Some(0), "piped\n"));
    let run = workspace.run_with_input(&["call", ".", "echo", "-"], "{\n  \"text\"\n}\n");
    assert_eq!(run.code, Some(2));
    assert!(
        run.err.starts_with("error: ARGS is not valid JSON: expected `:` at line 3 column 1\n"),
        "{run:?}"
    );
}

/// RPT-071
#[test]
fn large_result_is_whole_unless_a_limit_is_given() {
    let workspace = Workspace::dominds(DEMO);
    let input = json!({"text": "x".repeat(300_000)}).to_string();
    let run = |more: &[&str]| workspace.run_with_input(&[&["call", ".", "echo", "-"], more].concat(), &input);
    let whole = run(&[]);
    assert_eq!((whole.out.len(), whole.err.as_str()), (300_001, "note: reading .minds/mcp.yaml\n"));
    let document = run(&["--format", "json"]).json();
    assert_eq!(document["content"][0]["text"].as_str().map(str::len), Some(300_000));
    let cut = run(&["--max-result", "1K"]);
    assert!(cut.out.contains("298976 more bytes of this text are left out"), "{cut:?}");
    assert!(
        cut.err.contains("warning: the result has 300000 bytes, of which a part is printed\n"),
        "{cut:?}"
    );
    assert_eq!(run(&["--max-result", "1K", "--format", "json"]).json()["metadata"]["full_bytes"], 300_000);
    assert_eq!(run(&["--max-result", "0"]).code, Some(2));
    // RPT-072
    let spills = tempfile::tempdir().unwrap();
    let spilled = run(&["--max-result", "1K", "--spill", spills.path().to_str().unwrap()]);
    let folder = std::fs::read_dir(spills.path()).unwrap().next().unwrap().unwrap().path();
    let file = std::fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    assert!(spilled.out.contains(file.to_str().unwrap()), "{}", spilled.out);
    assert!(std::fs::metadata(&file).unwrap().len() >= 300_000);
}

/// RPT-213
#[test]
fn nearest_configuration_is_used_without_a_file() {
    let workspace = Workspace::dominds(DEMO);
    let run = workspace.run(&["call", "add", "a=2", "b=3"]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "5\n{\n  \"sum\": 5\n}\n"), "{run:?}");
    let run = workspace.run(&["call", "."]);
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("which tool? `mcp-host tools` lists them"), "{run:?}");
}

/// RPT-112
#[test]
fn prompt_is_fetched_without_the_shell() {
    let workspace = Workspace::dominds(DEMO);
    let run = workspace.run(&["prompt", "hello"]);
    let hello = "user: Hello! Which tools do you have, and what are they good for?\n";
    assert_eq!((run.code, run.out.as_str()), (Some(0), hello), "{run:?}");
    let words = ["prompt", ".", "summarise", "text=abc", "words=7", "--server", "demo", "--format", "json"];
    let text = workspace.run(&words).json()["messages"][0]["content"]["text"].to_string();
    assert!(text.contains("at most 7 words") && text.contains("abc"), "{text}");
    let run = workspace.run(&["prompt", ".", "summarise"]);
    assert!(run.code == Some(1) && run.err.contains("text"), "{run:?}");
    assert_eq!(workspace.run(&["prompt", ".", "nothing"]).code, Some(1));
    assert_eq!(workspace.run(&["prompt", "."]).code, Some(2));
}

/// RPT-113
#[test]
fn diagnostics_of_unused_servers_are_not_printed() {
    let workspace = Workspace::empty();
    workspace.write(
        "mcp.json",
        r#"{"mcpServers": {
            "demo": {"command": "mcp-host", "args": ["demo-server"]},
            "other": {"command": "mcp-host", "comand": "x"},
            "off": {"command": "x", "disabled": true}}}"#,
    );
    let errors = |words: &[&str]| workspace.run(words).err;
    assert_eq!(errors(&["call", ".", "demo__echo", "text=a", "-q"]), "");
    assert!(!errors(&["call", "mcp.json", "demo__echo", "text=a"]).contains("comand"));
    assert!(!errors(&["tools", "mcp.json", "--server", "demo"]).contains("comand"));
    assert!(!errors(&["prompts", "mcp.json", "--server", "demo"]).contains("comand"));
    assert!(errors(&["tools", "mcp.json", "--server", "other"]).contains("comand"));
    assert!(errors(&["tools", "mcp.json"]).contains("comand"));
}

/// RPT-113, RPT-170
#[test]
fn call_of_an_invalid_entry_says_what_is_wrong_with_it() {
    let workspace = Workspace::empty();
    workspace.write(
        "mcp.json",
        r#"{"mcpServers": {
            "demo": {"command": "mcp-host", "args": ["demo-server"]},
            "other": {"command": "mcp-host", "args": ["${NOT_SET}"]},
            "third": {"command": ""}}}"#,
    );
    let run = workspace.run(&["call", "mcp.json", "demo__echo", "text=a", "-q"]);
    assert_eq!((run.code, run.err.as_str()), (Some(0), ""));
    for (tool, want) in [
        ("other__x", "server 'other': Environment variable 'NOT_SET' not found"),
        ("third__x", "server 'third': 'command' must not be empty"),
    ] {
        let run = workspace.run(&["call", "mcp.json", tool]);
        let want = format!("Tool '{tool}' is not available: {want}");
        assert!(run.code == Some(1) && run.err.contains(&want), "{run:?}");
        assert_eq!(run.err.matches("error[").count(), 1, "{run:?}");
    }
    // A name without that of a server can belong to each entry.
    let run = workspace.run(&["call", "mcp.json", "nothing"]);
    assert!(run.code == Some(1) && run.err.matches("error[").count() == 2, "{run:?}");
}

#[test]
fn server_exit_during_a_call_is_a_failure() {
    let run = Workspace::dominds(DEMO).run(&["call", ".", "exit", "{}", "--format", "json"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert_eq!(run.json()["success"], false);
}

#[test]
fn unreachable_server_differs_from_failed_call() {
    let workspace = Workspace::dominds(&format!(
        "{DEMO}  broken:\n    transport: stdio\n    command: /no/such/program\n"
    ));
    assert_eq!(workspace.run(&["call", ".", "echo", r#"{"text":"x"}"#]).code, Some(0));
    let run = workspace.run(&["call", ".", "something_else"]);
    assert_eq!(run.code, Some(3), "{run:?}");
    assert!(run.err.contains("'broken'"), "{run:?}");
    assert!(
        run.err.contains("\n✗ broken  failed  MCPConnectionError: ") && run.err.contains("was not found"),
        "{run:?}"
    );
}

/// The names of the servers that were started, each by a script that leaves a file.
#[track_caller]
fn check_started(words: &[&str], want: (i32, &str)) {
    let workspace = Workspace::empty();
    workspace.write(
        "mcp.json",
        r#"{"mcpServers":{
            "hung": {"command": "started", "args": ["hung", "sleep", "600"]},
            "demo": {"command": "started", "args": ["demo", "mcp-host", "demo-server"]},
            "second": {"command": "started", "args": ["second", "mcp-host", "demo-server"]}}}"#,
    );
    std::os::unix::fs::symlink(PROGRAM, workspace.path().join("mcp-host")).unwrap();
    workspace
        .script("started", "name=$1; shift; touch \"$HOME/started-$name\"; PATH=\"$HOME:$PATH\" exec \"$@\"");
    let run = workspace.run(words);
    let started = ["demo", "hung", "second"].into_iter();
    let started: Vec<&str> =
        started.filter(|name| workspace.path().join(format!("started-{name}")).exists()).collect();
    assert_eq!((run.code, started.join(" ").as_str()), (Some(want.0), want.1), "{run:?}");
}

// RPT-170: only the servers that can have the tool are started; RPT-171: `--server` and `--timeout`.
#[test]
fn only_the_servers_that_can_have_the_tool_are_started() {
    check_started(&["call", ".", "demo__echo", "text=x"], (0, "demo"));
    check_started(&["tools", ".", "--schema", "second__echo"], (0, "second"));
    // A similar name is a misspelling, which needs no other server.
    check_started(&["call", ".", "demo__eccho"], (1, "demo"));
    check_started(&["call", ".", "echo", "text=x", "--server", "second"], (0, "second"));
    check_started(&["call", ".", "hung__x", "--timeout", "1"], (3, "hung"));
    check_started(&["call", ".", "demo__sleep", "ms=60000", "--timeout", "1"], (1, "demo"));
    check_started(&["call", ".", "demo__zzzzzzzzzzzz", "--timeout", "1"], (3, "demo hung second"));
    check_started(&["call", ".", "x", "--server", "nobody"], (2, ""));
}

#[test]
fn arguments_are_pairs_or_a_file() {
    let workspace = Workspace::dominds(DEMO);
    workspace.write("two.json", r#"{"a": 40, "b": 2}"#);
    let check = |words: &[&str], want: (i32, &str, &str)| {
        let run = workspace.run(&[&["call", ".minds/mcp.yaml"], words].concat());
        assert_eq!((run.code, run.out.as_str(), run.err.as_str()), (Some(want.0), want.1, want.2));
    };
    check(&["add", "a=2", "b=-3"], (0, "-1\n{\n  \"sum\": -1\n}\n", ""));
    check(&["add", "@two.json"], (0, "42\n{\n  \"sum\": 42\n}\n", ""));
    check(&["echo", "text=5"], (0, "5\n", ""));
    check(
        &["add", "a=2", "b=three"],
        (
            1,
            "",
            "ValidationError: `b` must be an integer, but `three` is not\n  \
             help: `mcp-host tools .minds/mcp.yaml --schema add` shows the arguments of the tool\n",
        ),
    );
    check(
        &["add", "a=2", "b"],
        (
            2,
            "",
            "error: with several arguments, each must be name=value; this one is not: b\n  \
             help: write one JSON object in single quotes, such as '{\"text\": \"hello\"}', or name=value pairs, or \
             @FILE, or `-` for standard input\n",
        ),
    );
    let run = workspace.run(&["call", ".", "add", "a=x", "--format", "json"]);
    assert_eq!((run.code, &run.json()["error"]["kind"]), (Some(1), &"ValidationError".into()));
}

#[test]
fn binary_content_is_saved() {
    let workspace = Workspace::dominds(DEMO);
    let run = workspace.run(&["call", ".minds/mcp.yaml", "mixed", "--save", "out"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(run.err, "saved block 2 as out/mixed-1.png\nsaved block 3 as out/mixed-2.wav\n");
    let image = std::fs::read(workspace.path().join("out/mixed-1.png")).unwrap();
    assert!(image.starts_with(b"\x89PNG"), "{image:?}");
    workspace.write("taken", "");
    let run = workspace.run(&["call", ".minds/mcp.yaml", "mixed", "--save", "taken"]);
    assert_eq!(run.code, Some(1), "{run:?}");
}
