//! Files of editors and servers of ACP sessions.

use crate::support::{HttpDemo, PROGRAM, Workspace};

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
    let workspace = Workspace::empty();
    workspace.write(".vscode/mcp.json", VSCODE);
    let run = workspace.run(&["check", "."]);
    assert_eq!(
        (run.code, run.out.as_str()),
        (Some(0), "✓ .vscode/mcp.json: mcp-json, 1 server\n"),
        "{run:?}"
    );
    let run = workspace.run(&["tools", ".", "--format", "json"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    assert_eq!(names(&run.json()), ["demo__echo", "demo__add"]);
    let run = workspace.run(&["call", ".", "echo", r#"{"text": "hello"}"#]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "hello\n"), "{run:?}");
}

#[test]
fn dia_08_url_without_a_transport_is_connected() {
    let workspace = Workspace::empty();
    let demo = HttpDemo::start(&workspace);
    let server = format!(r#"{{"mcpServers": {{"demo": {{"serverUrl": "{}"}}}}}}"#, demo.url);
    workspace.write(".mcp.json", &server);
    let run = workspace.run(&["call", ".mcp.json", "demo__echo", r#"{"text": "hello"}"#]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "hello\n"), "{run:?}");
}

#[test]
fn acp_035_acp_045_acp_048_the_servers_of_a_session_run() {
    let workspace = Workspace::empty();
    let demo = HttpDemo::start(&workspace);
    let request = serde_json::json!({
        "jsonrpc": "2.0", "id": 1, "method": "session/new",
        "params": { "cwd": workspace.path(), "mcpServers": [
            { "name": "local", "command": PROGRAM, "args": ["demo-server"], "env": [{ "name": "A", "value": "b" }] },
            { "type": "http", "name": "remote", "url": demo.url, "headers": [{ "name": "X-Key", "value": "k" }] }
        ] }
    });
    workspace.write("request.json", &request.to_string());
    let run = workspace.run(&["tools", "request.json", "--format", "json"]);
    assert_eq!(run.code, Some(0), "{run:?}");
    let document = run.json();
    let names = names(&document);
    assert!(names.contains(&"local__echo") && names.contains(&"remote__echo"), "{names:?}");
    let run = workspace.run(&["call", "request.json", "remote__echo", r#"{"text": "hello"}"#]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "hello\n"), "{run:?}");
    // Version 2 requires `type`.
    let run = workspace.run(&["check", "request.json", "--profile", "acp-v2"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.out.contains("'type' is required in protocol version 2"), "{run:?}");
}

#[test]
fn dia_11_unrecognized_file_names_the_known_formats() {
    let workspace = Workspace::empty();
    workspace.write("x.json", r#"{"colour": "red"}"#);
    let run = workspace.run(&["check", "x.json"]);
    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.out.contains("`mcpServers`") && run.out.contains("--dialect mcp-json"), "{run:?}");
    let run = workspace.run(&["check", "x.json", "--dialect", "mcp-json", "--format", "json"]);
    assert_eq!(run.json()["files"][0]["diagnostics"][0]["code"], "MCP0036");
}

#[test]
fn each_dialect_has_its_schema() {
    for name in ["acp-v1", "acp-v2", "mcp-json"] {
        let run = Workspace::empty().run(&["schema", name]);
        assert_eq!(run.code, Some(0), "{run:?}");
        assert_eq!(run.json()["$schema"], "https://json-schema.org/draft/2020-12/schema");
    }
}

#[test]
fn hd_007_detected_rules_of_a_holodeck_file_are_noted_once() {
    let workspace = Workspace::empty();
    let tool = "{name: a, description: d, type: mcp, transport: http, url: 'http://127.0.0.1:9/mcp'}";
    workspace.write("agent.yaml", &format!("tools: [{tool}]\n"));
    let json = workspace.run(&["check", ".", "--format", "json"]).json();
    assert_eq!(json["files"][0]["profile"], "holodeck-0.7");
    for arguments in [["check", "."].as_slice(), &["shell", "."], &["serve", ".", "--stdio"]] {
        let run = workspace.run_with_input(arguments, "");
        let notes = run.err.matches("is read by the rules of HoloDeck 0.7").count();
        assert_eq!(notes, 1, "{arguments:?}: {run:?}");
    }
    let forced = workspace.run(&["check", ".", "--profile", "holodeck"]);
    assert!(forced.code == Some(1) && forced.out.contains("'server' is required"), "{forced:?}");
}

#[test]
fn commands_without_servers_need_no_variables() {
    let workspace = Workspace::empty();
    let server =
        r#"{"mcpServers": {"demo": {"command": "npx", "args": ["x"], "env": {"A": "${NOT_SET_ANYWHERE}"}}}}"#;
    workspace.write(".mcp.json", server);
    for arguments in [
        ["convert", ".mcp.json", "--to", "dominds"].as_slice(),
        &["explain", ".mcp.json", "--server", "demo", "--tool", "echo"],
    ] {
        let run = workspace.run(arguments);
        assert_eq!(run.code, Some(0), "{run:?}");
        assert!(!run.err.contains("MCP0034"), "{run:?}");
    }
    let run = workspace.run(&["check", ".mcp.json"]);
    assert!(run.out.contains("NOT_SET_ANYWHERE"), "{run:?}");
}
