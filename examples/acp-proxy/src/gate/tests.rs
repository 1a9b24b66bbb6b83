//! Tests of the gate, line by line.

use super::*;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
const V1: &str =
    r#"{"id":0,"result":{"protocolVersion":1,"agentCapabilities":{"mcpCapabilities":{"http":true}}}}"#;
const V2: &str = r#"{"id":0,"result":{"protocolVersion":2,"capabilities":{"session":{"mcp":{"http":{}}}}}}"#;
const STDIO: &str = r#"{"name":"a","command":"/a","args":[],"env":[]}"#;
const HTTP: &str = r#"{"type":"http","name":"a","url":"https://a.example","headers":[]}"#;
const SSE: &str = r#"{"type":"sse","name":"a","url":"https://a.example","headers":[]}"#;

/// A gate that has forwarded `initialize` and these lines of the agent.
fn initialized(agent_lines: &[&str]) -> Gate {
    let mut gate = Gate::default();
    assert_eq!(gate.admit(INITIALIZE.as_bytes()), Ok(()));
    for line in agent_lines {
        gate.observe(line.as_bytes());
    }
    gate
}

fn session_request(method: &str, servers: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":"x","method":"{method}","params":{{"cwd":"/","sessionId":"s","mcpServers":[{servers}]}}}}"#
    )
}

/// Id, code and message of the response to the client; empty if the line passes.
fn refusal(gate: &mut Gate, line: &[u8]) -> String {
    let Err(refused) = gate.admit(line) else { return String::new() };
    let Some(response) = refused.response else { return "no response".to_owned() };
    assert!(response.ends_with('\n') && !response.contains("SECRET"), "{response}");
    let response: Value = serde_json::from_str(&response).unwrap();
    let error = &response["error"];
    assert_eq!(error["code"], refused.error.code);
    format!("{} {} {}", response["id"], error["code"], error["message"].as_str().unwrap())
}

#[track_caller]
fn check(agent_lines: &[&str], line: &str, want: &str) {
    assert_eq!(refusal(&mut initialized(agent_lines), line.as_bytes()), want, "{line}");
}

#[test]
fn acp_015_acp_039_declared_capabilities_are_enforced_for_each_method() {
    let sse = r#""x" -32602 SSE transport not supported: agent did not declare mcpCapabilities.sse"#;
    let stdio = r#""x" -32602 STDIO transport not supported: agent did not declare session.mcp.stdio"#;
    for method in ["session/new", "session/load", "session/resume", "session/fork"] {
        check(&[V1], &session_request(method, STDIO), "");
        check(&[V1], &session_request(method, HTTP), "");
        check(&[V1], &session_request(method, SSE), sse);
    }
    for method in ["session/new", "session/resume", "session/fork"] {
        check(&[V2], &session_request(method, HTTP), "");
        check(&[V2], &session_request(method, r#"{"type":"stdio","name":"a","command":"/a"}"#), stdio);
    }
    check(
        &[V2],
        &session_request("session/load", ""),
        r#""x" -32601 the method `session/load` does not set up a session"#,
    );
}

#[test]
fn acp_022_acpx_09_lenient_gate_accepts_what_known_clients_send() {
    let loose = session_request("session/new", r#"{"name":"a","command":"npx"}"#);
    let mut strict = initialized(&[V1]);
    assert!(refusal(&mut strict, loose.as_bytes()).starts_with("\"x\" -32602 "));
    let mut lenient = Gate { policy: Gate::lenient().policy, ..strict };
    assert_eq!(refusal(&mut lenient, loose.as_bytes()), "");
    let without_servers = r#"{"jsonrpc":"2.0","id":"x","method":"session/new","params":{"cwd":"/"}}"#;
    assert_eq!(refusal(&mut lenient, without_servers.as_bytes()), "");
    // Undeclared transports are refused all the same.
    let sse = r#""x" -32602 SSE transport not supported: agent did not declare mcpCapabilities.sse"#;
    assert_eq!(refusal(&mut lenient, session_request("session/new", SSE).as_bytes()), sse);
}

#[test]
fn acp_027_session_requests_before_initialize_are_refused() {
    let early = r#""x" -32600 there is no session before the response to `initialize`"#;
    check(&[], &session_request("session/new", STDIO), early);
    let others = [
        r#"{"id":1,"result":{"protocolVersion":1}}"#,
        r#"{"id":0,"method":"fs/read_text_file","result":{"protocolVersion":1}}"#,
        r#"{"id":0,"error":{"code":-32603,"message":"no"}}"#,
        "no JSON",
        r#"{"id":0,"id":1,"result":{"protocolVersion":1}}"#,
    ];
    check(&others, &session_request("session/new", STDIO), early);
    let unknown = r#""x" -32600 acp-proxy does not support the negotiated protocol version"#;
    check(&[r#"{"id":0,"result":{"protocolVersion":3}}"#], &session_request("session/new", STDIO), unknown);
    check(&[r#"{"id":0,"result":null}"#], &session_request("session/new", STDIO), early);
}

#[test]
fn messages_other_than_session_requests_pass() {
    for line in [
        "\n",
        INITIALIZE,
        r#"{"id":1,"method":"session/prompt","params":{"mcpServers":7}}"#,
        r#" {"method":"session/cancel","params":{}} "#,
        r#"{"id":3,"result":{"method":"session/new"}}"#,
        r#"{"id":3,"error":{"code":1,"message":"session/new"}}"#,
        r#"{"id":1,"method":"Session/New","params":7}"#,
    ] {
        check(&[], line, "");
    }
}

#[test]
fn ambiguous_messages_are_refused() {
    let none = "null -32600 this is not an ACP message";
    check(&[V1], &format!("[{}]", session_request("session/new", SSE)), none);
    check(&[V1], r#"{"method":"session/prompt","method":"session/new","id":1,"params":{}}"#, none);
    check(&[V1], r#"{"method":"session/new","id":1,"params":{},"params":{}}"#, none);
    check(&[V1], r#"{"method":["session/new"],"id":1}"#, none);
    let no_json = "null -32700 this line is not valid JSON";
    check(&[V1], r#"{"method":"session/new","id":1,"params":{"x":NaN}}"#, no_json);
    check(&[V1], "Content-Length: 20", no_json);
    assert_eq!(refusal(&mut initialized(&[V1]), b"{\"method\":\"\xff\"}"), no_json);

    let escaped = session_request(r"session\/n\u0065w", SSE);
    check(
        &[V1],
        &escaped,
        r#""x" -32602 SSE transport not supported: agent did not declare mcpCapabilities.sse"#,
    );
    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[],"mcpServers":[7]}}"#;
    assert!(refusal(&mut initialized(&[V1]), twice.as_bytes()).starts_with("1 -32602 "), "a repeated list");
}

#[test]
fn carriage_return_inside_a_line_is_refused() {
    let line = |text: &str| refusal(&mut initialized(&[V1]), text.as_bytes());
    let message = "null -32600 this line contains a carriage return";
    let hidden = session_request("session/new", SSE);
    for text in [
        format!("{{\"result\":[\r{hidden}\r]}}\n"),
        format!("{{\"id\":3,\"method\":\"session/prompt\",\"params\":\r{hidden}}}\r\n"),
        "{\"id\":3,\r\"result\":null}".to_owned(),
        "{\"id\":3,\"result\":null}\r\r\n".to_owned(),
        "{\"id\":3,\"result\":null}\r".to_owned(),
        "{\"id\":3,\"result\":null}\r \n".to_owned(),
        "\r\r\n".to_owned(),
    ] {
        assert_eq!(line(&text), message, "{text:?}");
    }
    for text in ["\r\n", "{\"id\":3,\"result\":\"\\r\"}\r\n", "{\"id\":3,\"result\":\"\\r\"}\n"] {
        assert_eq!(line(text), "", "{text:?}");
    }
}

#[test]
fn message_keys_that_differ_only_in_case_are_refused() {
    let near = |key: &str| format!("null -32600 a key of this message differs from `{key}` only in its case");
    let hidden = session_request("session/new", SSE);
    for (written, key) in [
        ("Method", "method"),
        ("METHOD", "method"),
        (r"\u004dethod", "method"),
        ("Params", "params"),
        ("Id", "id"),
        ("\u{131}d", "id"),
        ("\u{130}d", "id"),
        ("JSONRPC", "jsonrpc"),
        ("re\u{17f}ult", "result"),
        ("Error", "error"),
    ] {
        let line = format!(r#"{{"{written}":"session/new","other":{hidden}}}"#);
        check(&[V1], &line, &near(key));
        let both = format!(r#"{{"id":1,"method":"session/prompt","params":{{}},"{written}":7}}"#);
        check(&[V1], &both, &near(key));
    }
    for line in
        [r#"{"id":1,"method":"session/prompt","params":{"Id":1,"MCPServers":7}}"#, r#"{"id":1,"ids":2}"#]
    {
        check(&[V1], line, "");
    }
}

#[test]
fn session_keys_that_differ_only_in_case_are_refused() {
    let near = |key: &str| {
        format!(
            r#""x" -32602 a key of these parameters, or of a server in them, differs from `{key}` only in its case"#
        )
    };
    for method in ["session/new", "session/load", "session/resume", "session/fork"] {
        for (more, key) in [
            (r#""MCPServers":[7]"#, "mcpServers"),
            (r#""mcpservers":[]"#, "mcpServers"),
            ("\"mcp\u{17f}ervers\":[]", "mcpServers"),
            (r#""CWD":"/nowhere""#, "cwd"),
            (r#""SessionId":"t""#, "sessionId"),
            (r#""AdditionalDirectories":["x"]"#, "additionalDirectories"),
        ] {
            let line =
                session_request(method, STDIO).replace(r#""cwd":"/""#, &format!(r#""cwd":"/",{more}"#));
            check(&[V1], &line, &near(key));
        }
    }
    for (written, key) in [
        ("Type", "type"),
        ("NAME", "name"),
        ("Command", "command"),
        ("Args", "args"),
        ("Env", "env"),
        ("Cwd", "cwd"),
        ("URL", "url"),
        ("Headers", "headers"),
        ("ServerID", "serverId"),
    ] {
        let other = STDIO.replace(r#""a""#, r#""b""#);
        for entry in [STDIO, HTTP] {
            let entry = entry.replace(r#""name""#, &format!(r#""{written}":"SECRET","name""#));
            check(&[V1], &session_request("session/new", &format!("{other},{entry}")), &near(key));
        }
    }
    for (written, key) in [("Name", "name"), ("VALUE", "value")] {
        let pair = format!(r#"[{{"name":"K","{written}":"SECRET","value":"v"}}]"#);
        check(
            &[V1],
            &session_request("session/new", &STDIO.replace(r#""env":[]"#, &format!(r#""env":{pair}"#))),
            &near(key),
        );
        let http = HTTP.replace(r#""headers":[]"#, &format!(r#""headers":{pair}"#));
        check(&[V1], &session_request("session/new", &http), &near(key));
    }
    // What is below `_meta` belongs to others, and may be any JSON.
    let meta = r#""name":"a","_meta":{"Name":7,"URL":[]}"#;
    check(&[V1], &session_request("session/new", &STDIO.replace(r#""name":"a""#, meta)), "");
}

#[test]
fn acpx_02_session_folder_is_checked() {
    let line = session_request("session/new", "").replace(r#""cwd":"/""#, r#""cwd":"/nowhere/at/all""#);
    let refused = refusal(&mut initialized(&[V1]), line.as_bytes());
    assert!(refused.starts_with(r#""x" -32602 "#) && refused.contains("cwd"), "{refused}");
}

#[test]
fn session_notification_is_refused_without_response() {
    let line = session_request("session/new", SSE).replace(r#""id":"x","#, "");
    check(&[V1], &line, "no response");
}

#[test]
fn latest_initialize_response_counts() {
    let mut gate = initialized(&[V1]);
    assert_eq!(refusal(&mut gate, session_request("session/new", HTTP).as_bytes()), "");
    assert_eq!(refusal(&mut gate, INITIALIZE.replace(r#""id":0"#, r#""id":"again""#).as_bytes()), "");
    gate.observe(V1.replace("true", "false").replace(r#""id":0"#, r#""id":"again""#).as_bytes());
    assert!(
        refusal(&mut gate, session_request("session/new", HTTP).as_bytes())
            .contains("HTTP transport not supported")
    );
}
