//! The SDK's client over WebSocket, with servers that exit, stop responding, or send invalid responses.

use mcp_testkit::wait::wait_until;
use serde_json::{Value, json};

use super::*;
use crate::websocket::{Opening, Peer, Step, legacy, tool_result};

async fn peer(about: impl Fn(&Value) -> Vec<Step> + Send + Sync + 'static) -> Peer {
    Peer::start(move |message| legacy(message, &about)).await
}

fn endpoint(peer: &Peer) -> Endpoint {
    Endpoint::WebSocket(mcp_host_model::UrlEndpoint::new(peer.url.parse().unwrap()))
}

#[tokio::test]
async fn close_during_a_call_is_reported_with_its_reason() {
    let peer = peer(|_| vec![Step::Close(1011, "out of cheese")]).await;
    let client = serve(&endpoint(&peer)).await.unwrap();
    let error = call(&client).await.unwrap_err().to_string();
    assert!(error.contains("1011") && error.contains("out of cheese"), "{error}");
    assert!(call(&client).await.is_err());
}

#[tokio::test]
async fn lost_connection_during_a_call_is_reported() {
    let peer = peer(|_| vec![Step::Drop]).await;
    let error = call(&serve(&endpoint(&peer)).await.unwrap()).await.unwrap_err().to_string();
    assert!(error.contains("no longer available"), "{error}");
}

#[tokio::test]
async fn unreadable_response_fails_its_request_only() {
    let peer = peer(|message| match message["id"] == 1 {
        true => {
            let error = json!({"code": "E_NOPE", "message": "odd"});
            vec![Step::Text(json!({"jsonrpc": "2.0", "id": message["id"], "error": error}).to_string())]
        }
        false => {
            let nobodys = json!({"jsonrpc": "2.0", "id": null, "result": {"content": []}});
            vec![Step::Text(nobodys.to_string()), tool_result(message, "hello")]
        }
    })
    .await;
    let client = serve(&endpoint(&peer)).await.unwrap();
    let error = call(&client).await.unwrap_err().to_string();
    assert!(error.contains("odd"), "{error}");
    assert_eq!(call(&client).await.unwrap(), "hello");
}

#[tokio::test]
async fn refused_upgrade_is_reported_with_its_body() {
    let refusal = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nWWW-Authenticate: Bearer\r\n\r\n";
    let peer = Peer::refusing(Opening::Refuse(refusal.to_owned())).await;
    let error = serve(&endpoint(&peer)).await.err().unwrap().to_string();
    assert!(error.contains("401") && error.contains("Bearer"), "{error}");
}

#[tokio::test]
async fn silent_server_times_out_the_handshake() {
    let peer = Peer::start(|_| vec![]).await;
    let mut options = RmcpOptions::default();
    options.handshake = Duration::from_millis(50);
    options.grace = Duration::from_millis(50);
    let transport = RmcpTransport::new(&*dial(&endpoint(&peer)), options);
    let ended = transport.disconnected();
    let error = ().serve(transport).await.err().unwrap().to_string();
    assert!(error.contains("did not answer within 0.05 s"), "{error}");
    ended.await;
}

#[tokio::test]
async fn close_sends_a_close_frame_and_ends_all_calls() {
    let peer = peer(|_| vec![]).await;
    let client = serve(&endpoint(&peer)).await.unwrap();
    let other = client.peer().clone();
    let waiting = tokio::spawn(async move { other.call_tool(CallToolRequestParams::new("t")).await });
    client.cancel().await.unwrap();
    assert!(waiting.await.unwrap().is_err());
    wait_until(|| peer.open() == 0).await;
    assert_eq!(peer.ends(), "close 1000");
}
