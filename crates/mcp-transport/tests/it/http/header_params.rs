//! Tool arguments as headers, and the errors of the modern era about them.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use mcp_host_transport::ListResult;

fn tool(name: &str, properties: serde_json::Value) -> serde_json::Value {
    json!({"name": name, "inputSchema": {"type": "object", "properties": properties}})
}

fn error(received: &ReceivedRequest, status: u16, code: i64, data: serde_json::Value) -> Reply {
    let error = json!({"code": code, "message": "no", "data": data});
    let body = json!({"jsonrpc": "2.0", "id": received.rpc()["id"], "error": error});
    reply(status, "Content-Type: application/json\r\n", body.to_string())
}

#[tokio::test]
async fn marked_arguments_are_sent_as_headers_and_tools_with_invalid_marks_are_dropped() {
    let peer = Peer::start(|request| {
        modern(request, |request| match request.kind().as_str() {
            "tools/list" => {
                let mark = |mark: &str| json!({"type": "string", "x-mcp-header": mark});
                let tools = json!([
                    tool(
                        "echo",
                        json!({"region": mark("Region"), "note": mark("Note"), "none": mark("None"),
                        "plain": {"type": "string"}})
                    ),
                    tool("odd", json!({"a": mark("not a token")})),
                ]);
                json_reply(request.result(json!({"resultType": "complete", "tools": tools})))
            }
            _ => json_reply(tool_result(request, "hello")),
        })
    })
    .await;
    let session = TestClient::default().connect(&peer.url).await.unwrap();
    let arguments =
        RawJson::parse(r#"{"region":"us-west1","note":"zwölf","none":null,"plain":"p"}"#.into()).unwrap();
    // What is not known of a tool cannot be mirrored.
    session.call_tool("echo", &arguments, CallOptions::default()).await.unwrap();
    let ListResult { items, rejected, .. } = session.list_tools().await.unwrap();
    assert_eq!((items.len(), &*items[0].name), (1, "echo"));
    assert_eq!(rejected[0].name.as_deref(), Some("odd"));
    assert_eq!(rejected[0].reason, "`x-mcp-header` of `a` is not a header name");
    session.call_tool("echo", &arguments, CallOptions::default()).await.unwrap();
    let raw = RawJson::parse(r#"{"name":"echo","arguments":{"region":"eu"}}"#.into()).unwrap();
    session.request_raw("tools/call", Some("echo"), &raw, CallOptions::default()).await.unwrap();
    let calls: Vec<ReceivedRequest> =
        peer.received().into_iter().filter(|request| request.kind() == "tools/call").collect();
    let headers = |request: &ReceivedRequest| {
        let names = ["mcp-param-region", "mcp-param-note", "mcp-param-none", "mcp-param-plain"];
        names.map(|name| request.header(name).to_owned())
    };
    assert_eq!(headers(&calls[0]), [""; 4]);
    assert_eq!(headers(&calls[2])[0], "eu");
    assert_eq!(headers(&calls[1]), ["us-west1", "=?base64?enfDtmxm?=", "", ""].map(str::to_owned));
}

#[tokio::test]
async fn missing_header_error_refreshes_the_tools_and_retries() {
    let peer = Peer::start(|request| {
        modern(request, |request| match request.kind().as_str() {
            "tools/list" => {
                let schema = json!({"region": {"type": "string", "x-mcp-header": "Region"}});
                json_reply(request.result(json!({"resultType": "complete", "tools": [tool("echo", schema)]})))
            }
            _ if request.header("mcp-param-region").is_empty() => error(request, 400, -32020, json!(null)),
            _ => json_reply(tool_result(request, "hello")),
        })
    })
    .await;
    let session = TestClient::default().connect(&peer.url).await.unwrap();
    let arguments = RawJson::parse(r#"{"region":"r"}"#.into()).unwrap();
    let called = session.call_tool("echo", &arguments, CallOptions::default()).await.unwrap();
    assert_eq!(called.value.text(), "hello");
    assert_eq!(peer.summary(), "server/discover tools/call tools/list tools/call");
    // Where the list says nothing new, the error stands.
    let without =
        session.call_tool("echo", &RawJson::empty_object(), CallOptions::default()).await.unwrap_err();
    assert!(without.help().unwrap().starts_with("headers and body differ"), "{without}");
    assert_eq!(peer.count("tools/call"), 3);
}

#[tokio::test]
async fn modern_error_codes_are_distinguished() {
    let count = AtomicUsize::new(0);
    let peer = Peer::start(move |request| {
        modern(request, |it| match count.fetch_add(1, Ordering::SeqCst) {
            0 => error(it, 400, -32021, json!({"requiredCapabilities": {"elicitation": {}, "sampling": {}}})),
            1 => error(it, 400, -32022, json!({"supported": ["2027-01-01"]})),
            2 => error(it, 404, -32601, json!(null)),
            _ => {
                let body =
                    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no such method"}}"#;
                reply(404, "Content-Type: application/json\r\n", body)
            }
        })
    })
    .await;
    let session = TestClient::default().connect(&peer.url).await.unwrap();
    for want in [
        "the server needs elicitation, sampling from its client: configure a handler for it",
        "the server now uses another protocol version: connect again",
        "the server does not know this method: see the capabilities that it declares, or update it",
        "the server does not know this method: see the capabilities that it declares, or update it",
    ] {
        let error = call(&session).await.unwrap_err();
        assert!(matches!(error, CallError::Rpc(_)), "{error:?}");
        assert_eq!(error.help().as_deref(), Some(want), "{error}");
    }
}
