//! `/metrics` of requests: each request of a client is counted once, by its method.

use std::time::Duration;

use mcp_host_gateway::{GatewayOptions, HttpOptions};
use mcp_host_model::RawJson;
use mcp_host_transport::{CallOptions, Eras, SessionOptions};

use crate::support::{TestGateway, initialize, modern, server};

/// The counted requests, such as `tools/call success 2`, sorted.
async fn counted_requests(gateway: &TestGateway) -> Vec<String> {
    let page = gateway.http("GET", "/metrics", &[], "").await.body;
    let series = page.lines().filter_map(|line| line.strip_prefix("mcp_gateway_requests_total{method=\""));
    let mut res: Vec<String> =
        series.map(|it| it.replace("\",outcome=\"", " ").replace("\"} ", " ")).collect();
    res.sort();
    res
}

/// Connects our own client, lists the tools, calls one twice, another that does not exist, and one that it cancels.
async fn check_counts(eras: Eras, expected: &[&str]) {
    let gateway = TestGateway::new().await;
    let session = gateway.client("/mcp", eras, SessionOptions::default()).await;
    session.list_tools().await.unwrap();
    let call = async |tool: &str, arguments: &'static str| {
        let arguments = RawJson::parse(arguments.into()).unwrap();
        session.call_tool(tool, &arguments, CallOptions::default()).await
    };
    for _ in 0..2 {
        call("demo__echo", r#"{"text":"a"}"#).await.unwrap();
    }
    call("nothing", "{}").await.unwrap_err();
    tokio::time::timeout(Duration::from_millis(100), call("demo__sleep", r#"{"ms":60000}"#))
        .await
        .unwrap_err();
    // The end of a cancelled call is counted after it.
    while !counted_requests(&gateway).await.iter().any(|it| it.contains("cancelled")) {
        tokio::task::yield_now().await;
    }
    session.close(Duration::from_secs(5)).await;
    assert_eq!(counted_requests(&gateway).await, expected);
    gateway.end().await;
}

#[tokio::test]
async fn requests_of_a_client_with_a_session_are_counted_once() {
    check_counts(
        Eras::Legacy,
        &[
            "initialize success 1",
            "tools/call cancelled 1",
            "tools/call error 1",
            "tools/call success 2",
            "tools/list success 1",
        ],
    )
    .await;
}

#[tokio::test]
async fn requests_of_a_client_without_a_session_are_counted_once() {
    check_counts(
        Eras::Modern,
        &[
            "server/discover success 1",
            "subscriptions/listen success 1",
            "tools/call cancelled 1",
            "tools/call error 1",
            "tools/call success 2",
            "tools/list success 1",
        ],
    )
    .await;
}

#[tokio::test]
async fn refused_requests_are_counted_as_errors() {
    let gateway = TestGateway::new().await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    gateway.post(&[], ping).await;
    gateway.post(&[], &initialize("2025-11-25").replace("protocolVersion", "x")).await;
    let session = gateway.post(&[], &initialize("2025-03-26")).await.header("mcp-session-id").unwrap();
    let own = ("mcp-session-id", session.as_str());
    gateway.post(&[own], &initialize("2025-03-26")).await;
    gateway.post(&[own], &format!(r#"[{ping},{{"jsonrpc":"2.0","id":2,"method":"x/y"}}]"#)).await;
    // A request whose header names another method.
    let (_, body) = modern("tools/list", None, "");
    gateway.post(&[("mcp-protocol-version", "2026-07-28"), ("mcp-method", "ping")], &body).await;
    assert_eq!(
        counted_requests(&gateway).await,
        [
            "initialize error 2",
            "initialize success 1",
            "other error 1",
            "ping error 1",
            "ping success 1",
            "tools/list error 1",
        ]
    );
    gateway.end().await;
}

#[tokio::test]
async fn call_that_requires_input_counts_as_two_requests() {
    let servers = vec![server("demo"), server("auto-roots")];
    let gateway = TestGateway::with_servers(servers, GatewayOptions::default(), HttpOptions::default()).await;
    let (headers, body) = modern("tools/call", Some("auto-roots__state"), r#""name":"auto-roots__state""#);
    let body = body.replace(r#"clientCapabilities":{}"#, r#"clientCapabilities":{"roots":{}}"#);
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, it)| (*name, it.as_str())).collect();
    let asked = gateway.post(&headers, &body).await.json()["result"].clone();
    let key = asked["inputRequests"].as_object().unwrap().keys().next().unwrap();
    let more = format!(
        r#","inputResponses":{{"{key}":{{"roots":[]}}}},"requestState":{}}}}}"#,
        asked["requestState"]
    );
    let answer = gateway.post(&headers, &format!("{}{more}", body.strip_suffix("}}").unwrap())).await.json();
    assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
    assert_eq!(counted_requests(&gateway).await, ["tools/call success 2"]);
    gateway.end().await;
}
