//! The SDK's client over Streamable HTTP, with servers that lose sessions, refuse requests, and require headers.

use serde_json::json;

use super::*;
use crate::http::peer::{Peer, ReceivedRequest, Reply, json_reply, reply};
use crate::http::{legacy, tool_result};

async fn connect(peer: &Peer) -> Client {
    let url = peer.url.parse().unwrap();
    serve(&Endpoint::Http(mcp_host_model::UrlEndpoint::new(url))).await.unwrap()
}

async fn forgetful(refusal: fn(&ReceivedRequest) -> Reply) -> Peer {
    let opened = std::sync::atomic::AtomicUsize::new(0);
    Peer::start(move |request| {
        if request.kind() == "initialize" {
            opened.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
        let session = format!("s-{}", opened.load(std::sync::atomic::Ordering::SeqCst));
        legacy(request, &session, |request| match request.header("mcp-session-id") {
            "s-1" => refusal(request),
            _ => json_reply(tool_result(request, "hello")),
        })
    })
    .await
}

#[tokio::test]
async fn lost_session_is_reopened_and_its_calls_are_repeated() {
    for refusal in [(|_: &ReceivedRequest| reply(404, "", "")) as fn(&ReceivedRequest) -> Reply, |_| {
        reply(400, "", "Bad Request: No valid session ID provided")
    }] {
        let peer = forgetful(refusal).await;
        let client = connect(&peer).await;
        for called in futures_util::future::join_all((0..8).map(|_| call(&client))).await {
            assert_eq!(called.unwrap(), "hello", "{}", peer.summary());
        }
        assert_eq!(peer.count("initialize"), 2, "{}", peer.summary());
        client.cancel().await.unwrap();
        assert_eq!(peer.first("DELETE").header("mcp-session-id"), "s-2");
    }
}

#[tokio::test]
async fn server_that_loses_every_session_is_not_retried_endlessly() {
    let peer = Peer::start(|request| legacy(request, "s", |_| reply(404, "", ""))).await;
    let client = connect(&peer).await;
    let error = call(&client).await.unwrap_err().to_string();
    assert!(error.contains("lost the session"), "{error}");
    assert!(peer.count("initialize") <= 4, "{}", peer.summary());
}

#[tokio::test]
async fn error_without_an_id_ends_its_request() {
    let peer = Peer::start(|request| {
        legacy(request, "s", |_| {
            let error = json!({"jsonrpc": "2.0", "error": {"code": -32600, "message": "Bad things"}});
            reply(400, "Content-Type: application/json\r\n", error.to_string())
        })
    })
    .await;
    let error = call(&connect(&peer).await).await.unwrap_err().to_string();
    assert!(error.contains("Bad things"), "{error}");
}

#[tokio::test]
async fn negotiated_version_and_protocol_headers_are_sent() {
    let peer =
        Peer::start(|request| legacy(request, "s", |request| json_reply(tool_result(request, "hello"))))
            .await;
    let client = connect(&peer).await;
    assert_eq!(call(&client).await.unwrap(), "hello");
    let received = peer.first("tools/call");
    assert_eq!(received.header("mcp-session-id"), "s");
    assert!(!received.header("mcp-protocol-version").is_empty());
    client.cancel().await.unwrap();
}
