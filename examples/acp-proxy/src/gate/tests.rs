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
    check(&[V2], &asks("session/load", ""), r#""x" -32601 the method `session/load` sets no session up"#);
}

#[test]
fn acp_027_nothing_is_known_before_initialize_is_answered() {
    let early = r#""x" -32600 there is no session before `initialize` is answered"#;
    check(&[], &asks("session/new", STDIO), early);
    let others = [
        r#"{"id":1,"result":{"protocolVersion":1}}"#,
        r#"{"id":0,"method":"fs/read_text_file","result":{"protocolVersion":1}}"#,
        r#"{"id":0,"error":{"code":-32603,"message":"no"}}"#,
        "no JSON",
        r#"{"id":0,"id":1,"result":{"protocolVersion":1}}"#,
    ];
    check(&others, &asks("session/new", STDIO), early);
    let unknown =
        r#""x" -32600 acp-proxy does not know the rules of the protocol version that was agreed on"#;
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
    let none = "null -32600 this is no message of ACP";
    check(&[V1], &format!("[{}]", asks("session/new", SSE)), none);
    check(&[V1], r#"{"method":"session/prompt","method":"session/new","id":1,"params":{}}"#, none);
    check(&[V1], r#"{"method":"session/new","id":1,"params":{},"params":{}}"#, none);
    check(&[V1], r#"{"method":["session/new"],"id":1}"#, none);
    let no_json = "null -32700 this line holds no JSON value";
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
