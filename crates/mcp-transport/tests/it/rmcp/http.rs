//! The SDK's client over Streamable HTTP, with servers that lose sessions, refuse requests, and require headers.

use serde_json::json;

use super::*;
use crate::http::peer::{Heard, Peer, Reply, json_reply, reply};
use crate::http::{legacy, said};

async fn connect(peer: &Peer) -> Client {
    let url = peer.url.parse().unwrap();
    serve(&Endpoint::Http(mcp_model::UrlEndpoint::new(url))).await.unwrap()
}

async fn forgetful(refusal: fn(&Heard) -> Reply) -> Peer {
    let opened = std::sync::atomic::AtomicUsize::new(0);
    Peer::start(move |it| {
        if it.what() == "initialize" {
            opened.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        }
        let session = format!("s-{}", opened.load(std::sync::atomic::Ordering::SeqCst));
        legacy(it, &session, |it| match it.header("mcp-session-id") {
            "s-1" => refusal(it),
            _ => json_reply(said(it, "hello")),
        })
    })
    .await
}

#[tokio::test]
async fn a_forgotten_session_is_opened_again_and_the_calls_are_made() {
    for refusal in [(|_: &Heard| reply(404, "", "")) as fn(&Heard) -> Reply, |_| {
        reply(400, "", "Bad Request: No valid session ID provided")
    }] {
        let peer = forgetful(refusal).await;
        let client = connect(&peer).await;
        for called in futures_util::future::join_all((0..8).map(|_| call(&client))).await {
            assert_eq!(called.unwrap(), "hello", "{}", peer.words());
        }
        assert_eq!(peer.count("initialize"), 2, "{}", peer.words());
        client.cancel().await.unwrap();
        assert_eq!(peer.first("DELETE").header("mcp-session-id"), "s-2");
    }
}

#[tokio::test]
async fn a_server_that_forgets_every_session_is_not_asked_for_ever() {
    let peer = Peer::start(|it| legacy(it, "s", |_| reply(404, "", ""))).await;
    let client = connect(&peer).await;
    let error = call(&client).await.unwrap_err().to_string();
    assert!(error.contains("forgotten the session"), "{error}");
    assert!(peer.count("initialize") <= 4, "{}", peer.words());
}

#[tokio::test]
async fn a_refusal_without_an_id_ends_its_request() {
    let peer = Peer::start(|it| {
        legacy(it, "s", |_| {
            let error = json!({"jsonrpc": "2.0", "error": {"code": -32600, "message": "Bad things"}});
            reply(400, "Content-Type: application/json\r\n", error.to_string())
        })
    })
    .await;
    let error = call(&connect(&peer).await).await.unwrap_err().to_string();
    assert!(error.contains("Bad things"), "{error}");
}

#[tokio::test]
async fn the_negotiated_version_and_the_headers_of_the_protocol_are_sent() {
    let peer = Peer::start(|it| legacy(it, "s", |it| json_reply(said(it, "hello")))).await;
    let client = connect(&peer).await;
    assert_eq!(call(&client).await.unwrap(), "hello");
    let heard = peer.first("tools/call");
    assert_eq!(heard.header("mcp-session-id"), "s");
    assert!(!heard.header("mcp-protocol-version").is_empty());
    client.cancel().await.unwrap();
}
