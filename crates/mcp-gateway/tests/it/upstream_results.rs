//! Invalid results of servers, and request states that a client made up.

use mcp_host_gateway::{GatewayOptions, HttpOptions, Tokens};
use mcp_host_model::{Secret, code};
use serde_json::{Value, json};

use crate::support::{Reply, TestGateway, initialize, server};

async fn fixture(http: HttpOptions) -> TestGateway {
    let servers = ["demo", "own", "old", "new"].map(server).to_vec();
    TestGateway::with_servers(servers, GatewayOptions::default(), http).await
}

/// Calls a tool without a session, with these client capabilities and additional parameters.
async fn call(fixture: &TestGateway, token: &str, capabilities: &str, name: &str, more: &Value) -> Reply {
    let mut params = json!({
        "name": name,
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities":
                serde_json::from_str::<Value>(capabilities).unwrap(),
            "mcp-host/dialog": "secret",
            "other": 1,
        },
    });
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let authorization = format!("Bearer {token}");
    let mut headers =
        vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", name)];
    if !token.is_empty() {
        headers.push(("authorization", &authorization));
    }
    fixture.post(&headers, &body.to_string()).await
}

/// Calls a tool of a scripted server that returns this result. Returns the result that a client with these capabilities
/// receives, or the message of the error.
async fn result_or_error(fixture: &TestGateway, name: &str, capabilities: &str, result: &str) -> String {
    let reply = call(fixture, "", capabilities, name, &json!({"arguments": {"result": result}})).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let value = reply.json();
    match value.get("error") {
        Some(error) => {
            assert_eq!(error["code"], code::INTERNAL_ERROR);
            error["message"].as_str().unwrap().to_owned()
        }
        None => value["result"].to_string(),
    }
}

const EVERYTHING: &str = r#"{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{}}"#;
const INPUT_REQUIRED: &str = r#"{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"?"}}},"requestState":"mcp-host:abc"}"#;

#[tokio::test]
async fn result_must_be_an_object() {
    let fixture = fixture(HttpOptions::default()).await;
    let session = fixture.initialize(&[]).await;
    for name in ["old__say", "new__say"] {
        for result in ["5", "\"abc\"", "null", "[1]"] {
            let outcome = result_or_error(&fixture, name, "{}", result).await;
            assert!(outcome.contains("object"), "{name} {result}: {outcome}");
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": name, "arguments": {"result": result}}});
            let reply = fixture.post(&[("mcp-session-id", &session)], &body.to_string()).await.json();
            assert_eq!(reply["error"]["code"], code::INTERNAL_ERROR, "{name} {result}: {reply}");
        }
    }
    fixture.end().await;
}

#[tokio::test]
async fn legacy_server_cannot_request_input_by_result() {
    let fixture = fixture(HttpOptions::default()).await;
    for capabilities in ["{}", EVERYTHING] {
        let outcome: Value =
            serde_json::from_str(&result_or_error(&fixture, "old__say", capabilities, INPUT_REQUIRED).await)
                .unwrap();
        assert_eq!(outcome["resultType"], "complete");
        let twice = INPUT_REQUIRED.replacen('{', r#"{"result\u0054ype":"complete","#, 1);
        let outcome: Value =
            serde_json::from_str(&result_or_error(&fixture, "old__say", capabilities, &twice).await).unwrap();
        assert_eq!(outcome["resultType"], "complete");
    }
    fixture.end().await;
}

/// Members of the modern era do not reach a legacy client, and a modern client gets those that it requires.
#[tokio::test]
async fn result_has_the_members_of_the_client_era() {
    let fixture = fixture(HttpOptions::default()).await;
    let session = fixture.initialize(&[]).await;
    for (name, result, legacy, modern) in [
        ("old__say", INPUT_REQUIRED, None, "complete"),
        ("old__say", r#"{"content":[],"ttlMs":1}"#, Some(json!({"content": [], "ttlMs": 1})), "complete"),
        (
            "new__say",
            r#"{"resultType":"complete","ttlMs":1,"cacheScope":"public","content":[],"_meta":{"ttlMs":1},"x":2}"#,
            Some(json!({"content": [], "_meta": {"ttlMs": 1}, "x": 2})),
            "complete",
        ),
        ("new__say", r#"{"result\u0054ype":"complete"}"#, Some(json!({"content": []})), "complete"),
    ] {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": name, "arguments": {"result": result}}});
        let reply = fixture.post(&[("mcp-session-id", &session)], &body.to_string()).await.json();
        assert!(reply["result"].get("resultType").is_none(), "{reply}");
        if let Some(legacy) = legacy {
            assert_eq!(reply["result"], legacy);
        }
        let outcome: Value =
            serde_json::from_str(&result_or_error(&fixture, name, "{}", result).await).unwrap();
        assert_eq!(outcome["resultType"], modern);
    }
    fixture.end().await;
}

#[tokio::test]
async fn modern_server_can_request_only_declared_input() {
    let fixture = fixture(HttpOptions::default()).await;
    let check = async |capabilities: &str, result: &str, expected: &str| {
        let outcome = result_or_error(&fixture, "new__say", capabilities, result).await;
        assert!(outcome.contains(expected), "{capabilities} {result}: {outcome}");
    };
    let input_required = |method: &str, params: &str| {
        format!(
            r#"{{"resultType":"input_required","inputRequests":{{"k":{{"method":"{method}","params":{params}}}}}}}"#
        )
    };
    let url = input_required("elicitation/create", r#"{"mode":"url","url":"http://evil","message":"go"}"#);
    let tools = input_required("sampling/createMessage", r#"{"messages":[],"tools":[]}"#);
    check("{}", INPUT_REQUIRED, "the client does not support this request").await;
    check(r#"{"elicitation":{}}"#, INPUT_REQUIRED, "input_required").await;
    check(r#"{"elicitation":{}}"#, &url, "elicitation mode").await;
    check(EVERYTHING, &url, "http://evil").await;
    check(r#"{"sampling":{}}"#, &tools, "sampling with tools").await;
    check(EVERYTHING, &tools, "input_required").await;
    check(EVERYTHING, &input_required("sampling/createMessage", "[1]"), "must be a JSON object").await;
    check(EVERYTHING, &input_required("tools/call", "{}"), "does not support this request").await;
    check(EVERYTHING, &INPUT_REQUIRED.replacen('{', r#"{"resultType":"complete","#, 1), "repeats").await;
    check(EVERYTHING, r#"{"resultType":"input_required"}"#, "without naming any").await;
    check(EVERYTHING, r#"{"resultType":"input_required","requestState":7}"#, "not a string").await;
    check("{}", r#"{"content":[],"resultType":"complete","\u0061":1}"#, r#""content":[]"#).await;
    fixture.end().await;
}

#[tokio::test]
async fn undeclared_server_requests_are_refused() {
    let fixture = fixture(HttpOptions::default()).await;
    let capabilities = r#""capabilities":{"elicitation":{},"sampling":{}}"#;
    let begun =
        fixture.post(&[], &initialize("2025-06-18").replace(r#""capabilities":{}"#, capabilities)).await;
    let session = begun.header("mcp-session-id").unwrap();
    let requests = json!([
        {"method": "elicitation/create", "params": {"mode": "url", "url": "http://evil", "message": "go"}},
        {"method": "sampling/createMessage", "params": {"messages": [], "tools": [], "maxTokens": 1}},
        {"method": "sampling/createMessage", "params": [1]},
        {"method": "roots/list", "params": {}},
    ]);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "old__say", "arguments": {"ask": requests}}});
    // A refused request does not reach the client.
    let reply = fixture.post(&[("mcp-session-id", &session)], &body.to_string()).await;
    let texts = reply.json()["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    let texts: Vec<&str> = texts.split("; ").collect();
    assert!(texts[0].contains("elicitation mode") && texts[1].contains("sampling with tools"), "{texts:?}");
    assert!(texts.len() == 4 && texts[2..].iter().all(|it| *it != "answered"), "{texts:?}");
    assert!(!reply.body.contains("evil"), "{reply:?}");
    fixture.end().await;
}

#[tokio::test]
async fn request_state_is_bound_to_its_client() {
    let tokens = Tokens::read(&Secret::new("ann-0123456789abcdef name=ann\nbob-0123456789abcdef name=bob"));
    let fixture = fixture({
        let mut options = HttpOptions::default();
        options.tokens = tokens.unwrap();
        options
    })
    .await;
    let (ann, bob) = ("ann-0123456789abcdef", "bob-0123456789abcdef");
    let capabilities = r#"{"elicitation":{}}"#;
    let question = json!({"arguments": {"question": "colour?"}});
    let asked = call(&fixture, ann, capabilities, "demo__ask", &question).await.json();
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let state = asked["result"]["requestState"].as_str().unwrap();
    assert!(state != "asked" && state.ends_with("asked"), "{state}");
    let answer = |state: &str| {
        json!({"arguments": {"question": "colour?"}, "requestState": state,
            "inputResponses": {"answer": {"action": "accept", "content": {"answer": "blue"}}}})
    };
    for (token, state) in [(bob, state), (ann, "asked"), (ann, &state.replace("asked", "other"))] {
        let refused = call(&fixture, token, capabilities, "demo__ask", &answer(state)).await.json();
        assert_eq!(refused["error"]["code"], code::INVALID_PARAMS, "{refused}");
    }
    let answered = call(&fixture, ann, capabilities, "demo__ask", &answer(state)).await.json();
    assert!(answered["result"]["content"][0]["text"].as_str().unwrap().contains("blue"), "{answered}");

    // A legacy server receives neither, and no server receives the dialog's name.
    let made_up = json!({"requestState": "x", "arguments": {}});
    let refused = call(&fixture, ann, capabilities, "old__say", &made_up).await.json();
    assert_eq!(refused["error"]["code"], code::INVALID_PARAMS, "{refused}");
    assert!(fixture.servers.scripted_calls.lock().unwrap().is_empty());
    let made_up = json!({"inputResponses": {"k": {}}, "arguments": {}, "later": 1});
    call(&fixture, ann, "{}", "old__say", &made_up).await;
    call(&fixture, ann, "{}", "new__say", &made_up).await;
    let authorization = format!("Bearer {ann}");
    let session = fixture.post(&[("authorization", &authorization)], &initialize("2025-11-25")).await;
    let session = session.header("mcp-session-id").unwrap();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "old__say", "arguments": {}, "requestState": "x", "inputResponses": {"k": {}}}});
    fixture.post(&[("authorization", &authorization), ("mcp-session-id", &session)], &body.to_string()).await;
    let received = fixture.servers.scripted_calls.lock().unwrap().clone();
    assert_eq!(received.len(), 3);
    for params in &received {
        assert!(params["_meta"].get("mcp-host/dialog").is_none() && params.get("requestState").is_none());
    }
    assert!(received[0].get("inputResponses").is_none() && received[2].get("inputResponses").is_none());
    assert!(
        received[0]["later"] == 1
            && received[0]["_meta"]["other"] == 1
            && received[1]["inputResponses"].is_object()
    );
    fixture.end().await;
}

#[tokio::test]
async fn upstream_protocol_errors_are_internal_errors() {
    let fixture = fixture(HttpOptions::default()).await;
    let check = async |name: &str, capabilities: &str, error: &Value, expected: (u16, i64)| {
        let arguments = json!({"arguments": {"error": error.to_string()}});
        let reply = call(&fixture, "", capabilities, name, &arguments).await;
        assert_eq!((reply.status, reply.json()["error"]["code"].as_i64().unwrap()), expected, "{reply:?}");
    };
    for name in ["old__say", "new__say"] {
        for number in [
            code::PARSE_ERROR,
            code::INVALID_REQUEST,
            code::METHOD_NOT_FOUND,
            code::HEADER_MISMATCH,
            code::UNSUPPORTED_PROTOCOL_VERSION,
        ] {
            let error = json!({"code": number, "message": "no", "data": {"supported": ["1999-01-01"]}});
            check(name, "{}", &error, (200, code::INTERNAL_ERROR)).await;
        }
        check(name, "{}", &json!({"code": 7, "message": "no"}), (200, 7)).await;
    }
    // A missing capability is reported only to a client that lacks it.
    let required = json!({"requiredCapabilities": {"elicitation": {"url": {}}}});
    let lacks = json!({"code": code::MISSING_CLIENT_CAPABILITY, "message": "no", "data": required});
    check("new__say", "{}", &lacks, (400, code::MISSING_CLIENT_CAPABILITY)).await;
    check("new__say", r#"{"elicitation":{}}"#, &lacks, (400, code::MISSING_CLIENT_CAPABILITY)).await;
    check("new__say", EVERYTHING, &lacks, (200, code::INTERNAL_ERROR)).await;

    let (headers, body) = crate::support::modern("resources/read", Some("x:1"), r#""uri":"x:1""#);
    let mut headers: Vec<(&str, &str)> = headers.iter().map(|(name, it)| (*name, it.as_str())).collect();
    headers.extend([("content-type", "application/json"), ("accept", "application/json")]);
    for path in ["/mcp/old", "/mcp/new"] {
        let reply = fixture.http("POST", path, &headers, &body).await;
        assert_eq!((reply.status, reply.json()["error"]["code"].as_i64()), (200, Some(code::INTERNAL_ERROR)));
    }
    fixture.end().await;
}

// RPT-034, RPT-037
#[tokio::test]
async fn result_of_a_tool_is_valid_for_strict_clients() {
    let fixture = fixture(HttpOptions::default()).await;
    let session = fixture.initialize(&[]).await;
    for (result, want) in [
        (
            r#"{"content":[{"type":"text","text":"a\ud800b \ud83d\ude00"}]}"#,
            json!([{"type": "text", "text": "a\u{fffd}b 😀"}]),
        ),
        (
            r#"{"\udc00":1,"content":"plain","isError":null,"_meta":null}"#,
            json!([{"type": "text", "text": "plain"}]),
        ),
        (r#"{"content":{"type":"text","text":"one"}}"#, json!([{"type": "text", "text": "one"}])),
        (r#"{"structuredContent":null}"#, json!([])),
        (
            r#"{"content":[{"type":"image","data":"aGk="}]}"#,
            json!([{"type": "image", "data": "aGk=", "mimeType": "application/octet-stream"}]),
        ),
    ] {
        for name in ["old__say", "new__say"] {
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": name, "arguments": {"result": result}}});
            let reply = fixture.post(&[("mcp-session-id", &session)], &body.to_string()).await.json();
            let mut members: Vec<&String> = reply["result"].as_object().unwrap().keys().collect();
            members.retain(|key| *key != "\u{fffd}");
            assert_eq!(
                (&reply["result"]["content"], members),
                (&want, vec![&"content".to_owned()]),
                "{name} {result}"
            );
            let outcome: Value =
                serde_json::from_str(&result_or_error(&fixture, name, "{}", result).await).unwrap();
            assert_eq!(outcome["content"], want, "{name} {result}");
        }
    }
    fixture.end().await;
}

// RPT-034
#[tokio::test]
async fn servers_get_no_unpaired_surrogates() {
    let fixture = fixture(HttpOptions::default()).await;
    let session = fixture.initialize(&[]).await;
    let body = r#"{"jsonrpc":"2.0","id":"\ud800","method":"tools/call","params":{"name":"old__say",
        "arguments":{"result":"{\"content\":[]}","x\udfff":"a\ud83d b"}}}"#;
    let reply = fixture.post(&[("mcp-session-id", &session)], body).await;
    assert!(reply.body.contains(r#""id":"\ud800""#), "{reply:?}");
    let received = fixture.servers.scripted_calls.lock().unwrap().last().unwrap().clone();
    assert_eq!(received["arguments"]["x\u{fffd}"], "a\u{fffd} b");
    fixture.end().await;
}
