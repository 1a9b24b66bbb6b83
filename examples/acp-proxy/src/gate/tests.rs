//! What passes, what is answered, and what is learnt, line by line.

use super::*;

const OPEN: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
const V1: &str =
    r#"{"id":0,"result":{"protocolVersion":1,"agentCapabilities":{"mcpCapabilities":{"http":true}}}}"#;
const V2: &str = r#"{"id":0,"result":{"protocolVersion":2,"capabilities":{"session":{"mcp":{"http":{}}}}}}"#;
const STDIO: &str = r#"{"name":"a","command":"/a","args":[],"env":[]}"#;
const HTTP: &str = r#"{"type":"http","name":"a","url":"https://a.example","headers":[]}"#;
const SSE: &str = r#"{"type":"sse","name":"a","url":"https://a.example","headers":[]}"#;

/// A gate after these lines of the agent's, that followed `initialize`.
fn after(answers: &[&str]) -> Gate {
    let mut gate = Gate::default();
    assert_eq!(gate.admit(OPEN.as_bytes()), Ok(()));
    for it in answers {
        gate.learn(it.as_bytes());
    }
    gate
}

fn asks(method: &str, servers: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":"x","method":"{method}","params":{{"cwd":"/","sessionId":"s","mcpServers":[{servers}]}}}}"#
    )
}

/// What the client hears: nothing where the line passes, else id, code and message.
fn says(gate: &mut Gate, line: &[u8]) -> String {
    let Err(refused) = gate.admit(line) else { return String::new() };
    let Some(answer) = refused.answer else { return "silence".to_owned() };
    assert!(answer.ends_with('\n') && !answer.contains("SECRET"), "{answer}");
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["error"]["code"], refused.error.code);
    format!("{} {} {}", answer["id"], answer["error"]["code"], answer["error"]["message"].as_str().unwrap())
}

#[track_caller]
fn check(answers: &[&str], line: &str, want: &str) {
    assert_eq!(says(&mut after(answers), line.as_bytes()), want, "{line}");
}

#[test]
fn acp_015_acp_039_what_the_agent_declared_is_enforced_for_each_method() {
    let sse = r#""x" -32602 SSE transport not supported: agent did not declare mcpCapabilities.sse"#;
    let stdio = r#""x" -32602 STDIO transport not supported: agent did not declare session.mcp.stdio"#;
    for method in ["session/new", "session/load", "session/resume", "session/fork"] {
        check(&[V1], &asks(method, STDIO), "");
        check(&[V1], &asks(method, HTTP), "");
        check(&[V1], &asks(method, SSE), sse);
    }
    for method in ["session/new", "session/resume", "session/fork"] {
        check(&[V2], &asks(method, HTTP), "");
        check(&[V2], &asks(method, r#"{"type":"stdio","name":"a","command":"/a"}"#), stdio);
    }
    check(
        &[V2],
        &asks("session/load", ""),
        r#""x" -32601 the method `session/load` does not set up a session"#,
    );
}

#[test]
fn acp_027_nothing_is_known_before_initialize_is_answered() {
    let early = r#""x" -32600 there is no session before the response to `initialize`"#;
    check(&[], &asks("session/new", STDIO), early);
    let others = [
        r#"{"id":1,"result":{"protocolVersion":1}}"#,
        r#"{"id":0,"method":"fs/read_text_file","result":{"protocolVersion":1}}"#,
        r#"{"id":0,"error":{"code":-32603,"message":"no"}}"#,
        "no JSON",
        r#"{"id":0,"id":1,"result":{"protocolVersion":1}}"#,
    ];
    check(&others, &asks("session/new", STDIO), early);
    let unknown = r#""x" -32600 acp-proxy does not support the negotiated protocol version"#;
    check(&[r#"{"id":0,"result":{"protocolVersion":3}}"#], &asks("session/new", STDIO), unknown);
    check(&[r#"{"id":0,"result":null}"#], &asks("session/new", STDIO), early);
}

#[test]
fn what_sets_no_session_up_passes() {
    for line in [
        "\n",
        OPEN,
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
fn what_an_agent_might_read_otherwise_does_not_pass() {
    let none = "null -32600 this is not an ACP message";
    check(&[V1], &format!("[{}]", asks("session/new", SSE)), none);
    check(&[V1], r#"{"method":"session/prompt","method":"session/new","id":1,"params":{}}"#, none);
    check(&[V1], r#"{"method":"session/new","id":1,"params":{},"params":{}}"#, none);
    check(&[V1], r#"{"method":["session/new"],"id":1}"#, none);
    let no_json = "null -32700 this line is not valid JSON";
    check(&[V1], r#"{"method":"session/new","id":1,"params":{"x":NaN}}"#, no_json);
    check(&[V1], "Content-Length: 20", no_json);
    assert_eq!(says(&mut after(&[V1]), b"{\"method\":\"\xff\"}"), no_json);

    let escaped = asks(r"session\/n\u0065w", SSE);
    check(
        &[V1],
        &escaped,
        r#""x" -32602 SSE transport not supported: agent did not declare mcpCapabilities.sse"#,
    );
    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[],"mcpServers":[7]}}"#;
    assert!(says(&mut after(&[V1]), twice.as_bytes()).starts_with("1 -32602 "), "a list that stands twice");
}

#[test]
fn a_line_is_one_line_to_whoever_ends_lines_at_a_carriage_return_too() {
    let line = |text: &str| says(&mut after(&[V1]), text.as_bytes());
    let split = "null -32600 this line contains a carriage return";
    let hidden = asks("session/new", SSE);
    for text in [
        format!("{{\"result\":[\r{hidden}\r]}}\n"),
        format!("{{\"id\":3,\"method\":\"session/prompt\",\"params\":\r{hidden}}}\r\n"),
        "{\"id\":3,\r\"result\":null}".to_owned(),
        "{\"id\":3,\"result\":null}\r\r\n".to_owned(),
        "{\"id\":3,\"result\":null}\r".to_owned(),
        "{\"id\":3,\"result\":null}\r \n".to_owned(),
        "\r\r\n".to_owned(),
    ] {
        assert_eq!(line(&text), split, "{text:?}");
    }
    for text in ["\r\n", "{\"id\":3,\"result\":\"\\r\"}\r\n", "{\"id\":3,\"result\":\"\\r\"}\n"] {
        assert_eq!(line(text), "", "{text:?}");
    }
}

#[test]
fn a_key_of_a_message_is_not_taken_for_another_by_whoever_ignores_case() {
    let near = |key: &str| format!("null -32600 a key of this message differs from `{key}` only in its case");
    let hidden = asks("session/new", SSE);
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
fn a_key_of_a_set_up_is_not_taken_for_another_by_whoever_ignores_case() {
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
            let line = asks(method, STDIO).replace(r#""cwd":"/""#, &format!(r#""cwd":"/",{more}"#));
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
            check(&[V1], &asks("session/new", &format!("{other},{entry}")), &near(key));
        }
    }
    for (written, key) in [("Name", "name"), ("VALUE", "value")] {
        let pair = format!(r#"[{{"name":"K","{written}":"SECRET","value":"v"}}]"#);
        check(
            &[V1],
            &asks("session/new", &STDIO.replace(r#""env":[]"#, &format!(r#""env":{pair}"#))),
            &near(key),
        );
        let http = HTTP.replace(r#""headers":[]"#, &format!(r#""headers":{pair}"#));
        check(&[V1], &asks("session/new", &http), &near(key));
    }
    // What is below `_meta` belongs to others, and may be any JSON.
    let meta = r#""name":"a","_meta":{"Name":7,"URL":[]}"#;
    check(&[V1], &asks("session/new", &STDIO.replace(r#""name":"a""#, meta)), "");
}

#[test]
fn acpx_02_the_folder_of_the_session_is_looked_at() {
    let line = asks("session/new", "").replace(r#""cwd":"/""#, r#""cwd":"/nowhere/at/all""#);
    let said = says(&mut after(&[V1]), line.as_bytes());
    assert!(said.starts_with(r#""x" -32602 "#) && said.contains("cwd"), "{said}");
}

#[test]
fn a_notification_is_not_answered_and_does_not_pass() {
    let line = asks("session/new", SSE).replace(r#""id":"x","#, "");
    check(&[V1], &line, "silence");
}

#[test]
fn the_latest_answer_to_initialize_counts() {
    let mut gate = after(&[V1]);
    assert_eq!(says(&mut gate, asks("session/new", HTTP).as_bytes()), "");
    assert_eq!(says(&mut gate, OPEN.replace(r#""id":0"#, r#""id":"again""#).as_bytes()), "");
    gate.learn(V1.replace("true", "false").replace(r#""id":0"#, r#""id":"again""#).as_bytes());
    assert!(says(&mut gate, asks("session/new", HTTP).as_bytes()).contains("HTTP transport not supported"));
}
