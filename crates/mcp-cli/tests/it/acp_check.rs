//! `acp-check`: responses and exit codes.

use serde_json::json;

use crate::support::Workspace;

const TWO: &str = r#"{"jsonrpc": "2.0", "id": 7, "method": "session/new", "params": {"cwd": "/home/ada", "mcpServers": [
    {"name": "files", "command": "/opt/files", "args": ["SECRET"], "env": [{"name": "KEY", "value": "SECRET"}]},
    {"type": "http", "name": "board", "url": "https://board.example/mcp?SECRET", "headers": []}
]}}"#;

#[track_caller]
fn check(arguments: &[&str], input: &str, code: i32, want: &serde_json::Value) {
    let arguments: Vec<_> = std::iter::once("acp-check").chain(arguments.iter().copied()).collect();
    let run = Workspace::empty().run_with_input(&arguments, input);
    assert_eq!((run.code, &run.json()), (Some(code), want), "{}", run.err);
    assert!(!run.out.contains("SECRET") && !run.err.contains("SECRET"), "{run:?}");
}

#[test]
fn acp_048_accepted_servers_are_listed_in_order() {
    let want = json!({ "jsonrpc": "2.0", "id": 7, "result": { "servers": ["files", "board"] } });
    check(&["--capabilities", r#"{"http": true}"#], TWO, 0, &want);
    check(&["--capabilities", r#"{"mcpCapabilities": {"http": true}}"#, "--protocol", "1"], TWO, 0, &want);
}

#[test]
fn acp_015_capabilities_are_those_of_a_whole_initialize_response() {
    let want = json!({ "jsonrpc": "2.0", "id": 7, "result": { "servers": ["files", "board"] } });
    let first = r#"{"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 1, "agentCapabilities": {
        "loadSession": true, "mcpCapabilities": {"http": true}}}}"#;
    check(&["--capabilities", first], TWO, 0, &want);
    // The version is the negotiated one.
    let second = r#"{"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 2, "capabilities": {
        "session": {"mcp": {"stdio": {}}}}}}"#;
    let typed = r#"{"id": 7, "method": "session/new", "params": {"cwd": "/", "mcpServers": [
        {"type": "stdio", "name": "files", "command": "/opt/files"}]}}"#;
    let want = json!({ "jsonrpc": "2.0", "id": 7, "result": { "servers": ["files"] } });
    check(&["--capabilities", second], typed, 0, &want);
    let third = r#"{"result": {"protocolVersion": 3}}"#;
    let run = Workspace::empty().run(&["acp-check", "--capabilities", third]);
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("this agent speaks version 3 of ACP; the versions are 1 and 2"), "{}", run.err);
}

#[test]
fn acpx_10_resumed_session_has_an_id() {
    let input = r#"{"id": 1, "method": "session/resume", "params": {"cwd": "/", "mcpServers": []}}"#;
    let want = json!({ "jsonrpc": "2.0", "id": 1, "error": {
        "code": -32602, "message": "'sessionId' is required", "data": { "supportedTransports": ["stdio"], "errors": [{
            "field": "sessionId", "pointer": "/params/sessionId", "message": "'sessionId' is required",
            "suggestion": "write the id that the response to `session/new` had"
        }] } } });
    check(&["--capabilities", "{}"], input, 1, &want);
}

#[test]
fn acp_027_acp_028_undeclared_transport_is_refused_with_the_specified_error() {
    let message = "HTTP transport not supported: agent did not declare mcpCapabilities.http";
    let suggestion = "use a server with one of these transports: `stdio`";
    let want = json!({ "jsonrpc": "2.0", "id": 7, "error": { "code": -32602, "message": message, "data": {
        "requestedTransport": "http", "declaredCapability": false, "supportedTransports": ["stdio"],
        "serverName": "board",
        "errors": [{
            "index": 1, "serverName": "board", "field": "type", "pointer": "/params/mcpServers/1/type",
            "message": message, "requestedTransport": "http", "suggestion": suggestion
        }]
    } } });
    check(&["--capabilities", "{}"], TWO, 1, &want);
    check(&["--capabilities", r#"{"http": "yes"}"#], TWO, 1, &want);
}

#[test]
fn acpx_11_version_2_rules_apply() {
    let input = r#"{"id": "a", "method": "session/new", "params": {"cwd": "/", "mcpServers": [
        {"type": "stdio", "name": "files", "command": "/opt/files"}]}}"#;
    let want = json!({ "jsonrpc": "2.0", "id": "a", "result": { "servers": ["files"] } });
    check(&["--protocol", "2", "--capabilities", r#"{"stdio": {}}"#], input, 0, &want);
    let load = r#"{"id": 1, "method": "session/load", "params": {}}"#;
    let message = "the method `session/load` does not set up a session";
    let want = json!({ "jsonrpc": "2.0", "id": 1, "error": {
        "code": -32601, "message": message, "data": { "method": "session/load" } } });
    check(&["--protocol", "2", "--capabilities", "{}"], load, 1, &want);
}

#[test]
fn invalid_request_has_a_response() {
    let error = |code, message| json!({ "jsonrpc": "2.0", "id": null, "error": { "code": code, "message": message } });
    let none = &["--capabilities", "{}"];
    check(none, "{SECRET", 1, &error(-32700, "standard input is not valid JSON"));
    check(none, "[]", 1, &error(-32600, "this is not a request: it has no `method`"));
    assert_eq!(Workspace::empty().run(&["acp-check", "--capabilities", "x"]).code, Some(2));
}

#[test]
fn notes_are_printed_to_standard_error() {
    let input = r#"{"id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": null}}"#;
    let run = Workspace::empty().run_with_input(&["acp-check", "--capabilities", "{}"], input);
    assert_eq!(run.json()["result"], json!({ "servers": [] }));
    assert_eq!(run.err, "note: /params/mcpServers: 'mcpServers' is null, which is read as an empty list\n");
}
