//! Defects of Semantic Kernel's MCP client that this crate does not have. Others are tested with their subject: SK-10
//! (only the first page, section 7 number 7) in `session`, SK-11 (number 6) and SK-17 in `handlers`, SK-12 (number 5)
//! in `stdio`.

use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::{Content, Limits, RawJson, ToolResult};
use mcp_host_transport::{CallError, CallOptions, Dial, Session, SessionOptions};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::in_memory::{Reply, Server, answer, refuse};

async fn called(result: Value) -> ToolResult {
    let server = Server::legacy(json!({"tools": {}}), move |message| match message["method"].as_str() {
        Some("tools/call") => answer(message, result.clone()),
        _ => vec![],
    });
    let session = server.connect(SessionOptions::default()).await;
    session.call_tool("t", &RawJson::empty_object(), CallOptions::default()).await.unwrap().value
}

// Section 7 number 8: in Semantic Kernel, one unknown block or a link fails the whole result, and a blob loses its
// type.
#[tokio::test(start_paused = true)]
async fn sk_05_sk_06_all_content_blocks_are_delivered() {
    let result = called(json!({"content": [
        {"type": "text", "text": "before"},
        {"depth": 3, "type": "hologram"},
        {"type": "resource_link", "uri": "a:1", "name": "n", "mimeType": "text/csv"},
        {"type": "resource", "resource": {"uri": "a:2", "mimeType": "text/plain", "text": "inside"}},
        {"type": "resource", "resource": {"uri": "a:3", "mimeType": "image/png", "blob": "AQI="}},
        {"type": "text", "text": "after"},
    ]}))
    .await;
    assert_eq!(result.text(), "before\nafter");
    let kinds: Vec<String> = result
        .content
        .iter()
        .map(|it| match it {
            Content::Unknown(raw) => format!("unknown {}", raw.as_str()),
            Content::Binary { data, mime_type, uri, text } => {
                format!("binary {} {} {data} {:?}", uri.as_ref().unwrap(), mime_type.as_ref().unwrap(), text)
            }
            other => other.text().unwrap().to_owned(),
        })
        .collect();
    assert_eq!(
        kinds[1..5],
        [
            r#"unknown {"depth":3,"type":"hologram"}"#,
            "binary a:1 text/csv  None",
            "binary a:2 text/plain aW5zaWRl Some(\"inside\")",
            "binary a:3 image/png AQI= None",
        ]
    );
}

// Section 7 number 9: in Semantic Kernel, the result of a failed tool looks like a success.
#[tokio::test(start_paused = true)]
async fn sk_07_tool_error_is_flagged_and_structured_content_kept() {
    let result = called(json!({"content": [{"type": "text", "text": "no"}], "isError": true,
                               "structuredContent": {"code": 7}}))
    .await;
    assert!(result.is_error);
    assert_eq!(result.structured.unwrap().as_str(), r#"{"code":7}"#);
}

#[tokio::test(start_paused = true)]
async fn sk_08_error_response_differs_from_a_lost_connection() {
    let server = Server::legacy(json!({"tools": {}}), |message| match message["params"]["name"].as_str() {
        Some("refuse") => refuse(message, -32602, json!({"why": 1})),
        Some("garbage") => answer(message, json!([1])),
        Some("leave") => vec![Reply::Disconnect],
        _ => vec![],
    });
    let session = server.connect(SessionOptions::default()).await;
    let call = async |name: &str| {
        session.call_tool(name, &RawJson::empty_object(), CallOptions::default()).await.unwrap_err()
    };
    assert!(
        matches!(call("refuse").await, CallError::Rpc(error) if error.code == -32602 && error.data.is_some())
    );
    assert!(matches!(call("garbage").await, CallError::InvalidResponse(_)));
    assert!(matches!(call("leave").await, CallError::Closed(_)));
}

#[tokio::test(start_paused = true)]
async fn sk_10_failed_list_is_an_error() {
    let server =
        Server::legacy(json!({"tools": {}, "prompts": {}}), |message| refuse(message, -32603, Value::Null));
    let session = server.connect(SessionOptions::default()).await;
    assert!(matches!(session.list_tools().await, Err(CallError::Rpc(_))));
    assert!(matches!(session.list_prompts().await, Err(CallError::Rpc(_))));
}

// Section 7 number 5: in Semantic Kernel, a connection to such servers hangs, or succeeds without an error.
#[tokio::test(start_paused = true)]
async fn sk_12_sk_13_failed_connection_is_reported_in_time() {
    let mut limits = Limits::default();
    limits.startup = Duration::from_secs(20);
    let connect = async |server: Server| {
        let mut options = SessionOptions::default();
        options.limits = limits.clone();
        Session::connect(Arc::clone(&server.dial) as Arc<dyn Dial>, options).await.err().unwrap().to_string()
    };
    let begun = Instant::now();
    let silent = connect(Server::new(|_| vec![])).await;
    assert_eq!(silent, "the server is silent: it sent no response within 20 s");
    let garbage = connect(Server::new(|_| vec![Reply::Noise])).await;
    assert_eq!(
        garbage,
        "the server did not finish its handshake within 20 s; 26 bytes that it sent were not MCP"
    );
    let refusing = connect(Server::new(|message| refuse(message, -32603, Value::Null))).await;
    assert_eq!(refusing, "the server refused the handshake: no (code -32603)");
    let leaving = connect(Server::new(|_| vec![Reply::Disconnect])).await;
    assert_eq!(leaving, "the server could not be started: it closed the connection");
    assert_eq!(begun.elapsed(), Duration::from_secs(40));
}

// Section 7 number 15: in Semantic Kernel, the configured limit is not applied, and a call may take forever.
#[tokio::test(start_paused = true)]
async fn sk_14_configured_request_timeout_applies() {
    let server = Server::legacy(json!({"tools": {}}), |_| vec![]);
    let mut limits = Limits::default();
    limits.request = Duration::from_secs(7);
    let session = server
        .connect({
            let mut options = SessionOptions::default();
            options.limits = limits;
            options
        })
        .await;
    let begun = Instant::now();
    let error = session.call_tool("t", &RawJson::empty_object(), CallOptions::default()).await.unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), begun.elapsed()),
        ("no response within 7 s", Duration::from_secs(7))
    );
}
