//! The files of editors, and the servers of ACP sessions: the program runs what is in them.

use crate::support::{HttpDemo, PROGRAM, Place};

const VSCODE: &str = r#"// of VS Code
{
  "servers": {
    "demo": { "command": "mcp-host", "args": ["demo-server"], "includeTools": ["echo", "add"], },
  },
}
"#;

fn names(document: &serde_json::Value) -> Vec<&str> {
    document["tools"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect()
}

#[test]
fn dia_01_the_servers_of_an_editor_run() {
    let place = Place::empty();
    place.write(".vscode/mcp.json", VSCODE);
    let run = place.run(&["check", "."]);
    assert_eq!(
        (run.code, run.out.as_str()),
        (Some(0), "✓ .vscode/mcp.json: mcp-json, 1 server\n"),
        "{run:?}"
    );
    let run = place.run(&["tools", ".", "--format", "json"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(names(&run.json()), ["demo__echo", "demo__add"]);
    let run = place.run(&["call", ".", "echo", r#"{"text": "hello"}"#]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "hello\n"), "{run:?}");
}

#[test]
fn dia_08_a_url_without_a_word_is_connected_to() {
    let place = Place::empty();
    let demo = HttpDemo::start(&place);
    let server = format!(r#"{{"mcpServers": {{"demo": {{"serverUrl": "{}"}}}}}}"#, demo.url);
    place.write(".mcp.json", &server);
    let run = place.run(&["call", ".mcp.json", "demo__echo", r#"{"text": "hello"}"#]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "hello\n"), "{run:?}");
}

#[test]
fn acp_035_acp_045_acp_048_the_servers_of_a_session_run() {
    let place = Place::empty();
    let demo = HttpDemo::start(&place);
    let request = serde_json::json!({
        "jsonrpc": "2.0", "id": 1, "method": "session/new",
        "params": { "cwd": place.path(), "mcpServers": [
            { "name": "local", "command": PROGRAM, "args": ["demo-server"], "env": [{ "name": "A", "value": "b" }] },
            { "type": "http", "name": "remote", "url": demo.url, "headers": [{ "name": "X-Key", "value": "k" }] }
        ] }
    });
    place.write("request.json", &request.to_string());
    let run = place.run(&["tools", "request.json", "--format", "json"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let document = run.json();
    let names = names(&document);
    assert!(names.contains(&"local__echo") && names.contains(&"remote__echo"), "{names:?}");
    let run = place.run(&["call", "request.json", "remote__echo", r#"{"text": "hello"}"#]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "hello\n"), "{run:?}");
    // Version 2 wants a type.
    let run = place.run(&["check", "request.json", "--profile", "acp-v2"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.out.contains("'type' is required in protocol version 2"), "{run:?}");
}

#[test]
fn dia_11_a_file_that_is_none_of_ours_is_told_what_would_make_it_one() {
    let place = Place::empty();
    place.write("x.json", r#"{"colour": "red"}"#);
    let run = place.run(&["check", "x.json"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.out.contains("`mcpServers`") && run.out.contains("--dialect mcp-json"), "{run:?}");
    let run = place.run(&["check", "x.json", "--dialect", "mcp-json", "--format", "json"]);
    assert_eq!(run.json()["files"][0]["diagnostics"][0]["code"], "MCP0036");
}

#[test]
fn each_dialect_has_its_schema() {
    for name in ["acp-v1", "acp-v2", "mcp-json"] {
        let run = Place::empty().run(&["schema", name]);
        assert_eq!(run.code, Some(0), "{run:?}");
        assert_eq!(run.json()["$schema"], "https://json-schema.org/draft/2020-12/schema");
    }
}

#[test]
fn who_starts_nothing_needs_no_values() {
    let place = Place::empty();
    let server =
        r#"{"mcpServers": {"demo": {"command": "npx", "args": ["x"], "env": {"A": "${NOT_SET_ANYWHERE}"}}}}"#;
    place.write(".mcp.json", server);
    for arguments in [
        ["convert", ".mcp.json", "--to", "dominds"].as_slice(),
        &["explain", ".mcp.json", "--server", "demo", "--tool", "echo"],
    ] {
        let run = place.run(arguments);
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(!run.err.contains("MCP0034"), "{run:?}");
    }
    let run = place.run(&["check", ".mcp.json"]);
    assert!(run.out.contains("NOT_SET_ANYWHERE"), "{run:?}");
}
