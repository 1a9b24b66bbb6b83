//! The handshake of either era over the older transport.

use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_testkit::wait::wait_until;

use super::*;

/// Connects to a server with this response to the probe; returns the requests that it received.
async fn check(probe: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static, want: &str) {
    let peer = Peer::start(move |request| match request.kind().as_str() {
        "server/discover" => probe(request),
        _ => greeting(request),
    })
    .await;
    let session = TestClient::default().connect(&peer.url).await.unwrap();
    assert_eq!(call(&session).await.unwrap(), "hello");
    assert_eq!(peer.summary(), want);
}

#[tokio::test]
async fn every_error_of_the_probe_leads_to_initialize() {
    let want = "GET server/discover initialize notifications/initialized tools/call";
    check(|it| taken().push(no_method(it)), want).await;
    let invalid = |request: &ReceivedRequest| {
        let error = json!({"code": -32602, "message": "Invalid request parameters", "data": ""});
        taken().push(message(&json!({"jsonrpc": "2.0", "id": request.rpc()["id"], "error": error})))
    };
    check(invalid, want).await;
    check(|_| reply(400, "Could not parse message"), want).await;
    check(|_| reply(500, "oops"), want).await;
    // The reply of a server that answers anything to anything.
    check(|request| taken().push(request.result(json!({}))), want).await;
}

#[tokio::test]
async fn unanswered_probe_leads_to_initialize() {
    check(|_| taken(), "GET server/discover initialize notifications/initialized tools/call").await;
}

#[tokio::test]
async fn connection_lost_by_the_probe_is_opened_again() {
    let want = "GET server/discover GET initialize notifications/initialized tools/call";
    check(|_| taken().ending(), want).await;
    check(|_| taken().breaking(), want).await;
    check(|_| reply(404, "no session"), want).await;
}

#[tokio::test]
async fn connection_lost_by_every_request_is_not_retried_forever() {
    let streams = std::sync::Arc::new(AtomicUsize::new(0));
    let seen = std::sync::Arc::clone(&streams);
    let peer = Peer::start(move |request| match request.kind().as_str() {
        "GET" => {
            seen.fetch_add(1, Ordering::SeqCst);
            stream()
        }
        _ => taken().ending(),
    })
    .await;
    let error = TestClient::default().connect(&peer.url).await.err().unwrap();
    assert!(error.to_string().contains("it closed the connection"), "{error}");
    assert_eq!(error.help().unwrap(), "check the server's log");
    assert_eq!(streams.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn modern_server_is_opened_without_initialize() {
    let peer = Peer::start(|request| match request.kind().as_str() {
        "GET" => stream(),
        "server/discover" => taken().push(request.result(json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "modern", "version": "1"}},
        }))),
        "tools/call" if request.rpc()["params"]["name"] == "silent" => taken(),
        _ => taken().push(tool_result(request, "hello")),
    })
    .await;
    let session = TestClient::default().connect(&peer.url).await.unwrap();
    assert_eq!((session.version().as_str(), session.server().name.as_str()), ("2026-07-28", "modern"));
    assert_eq!(call(&session).await.unwrap(), "hello");
    // Here, too, a call is cancelled with a notice: there is no stream of its own to close.
    let options = CallOptions::with_timeout(Duration::from_millis(20));
    session.call_tool("silent", &RawJson::empty_object(), options).await.unwrap_err();
    wait_until(|| peer.count("notifications/cancelled") == 1).await;
    assert_eq!(peer.summary(), "GET server/discover tools/call tools/call notifications/cancelled");
    assert_eq!(peer.first("tools/call").header("mcp-protocol-version"), "2026-07-28");
}
