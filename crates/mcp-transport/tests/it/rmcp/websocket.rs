//! The SDK's client over WebSocket, with servers that exit, stop responding, or send invalid responses.

use serde_json::{Value, json};

use super::*;
use crate::websocket::{Opening, Peer, Step, legacy, said};

async fn peer(about: impl Fn(&Value) -> Vec<Step> + Send + Sync + 'static) -> Peer {
    Peer::start(move |it| legacy(it, &about)).await
}

fn endpoint(peer: &Peer) -> Endpoint {
    Endpoint::WebSocket(mcp_model::UrlEndpoint::new(peer.url.parse().unwrap()))
}

#[tokio::test]
async fn a_server_that_closes_in_a_call_leaves_its_last_words() {
    let peer = peer(|_| vec![Step::Close(1011, "out of cheese")]).await;
    let client = serve(&endpoint(&peer)).await.unwrap();
    let error = call(&client).await.unwrap_err().to_string();
    assert!(error.contains("1011") && error.contains("out of cheese"), "{error}");
    assert!(call(&client).await.is_err());
}

#[tokio::test]
async fn a_server_that_is_gone_in_a_call_is_told_so() {
    let peer = peer(|_| vec![Step::Drop]).await;
    let error = call(&serve(&endpoint(&peer)).await.unwrap()).await.unwrap_err().to_string();
    assert!(error.contains("no longer available"), "{error}");
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_ends_its_request_and_nothing_else() {
    let peer = peer(|it| match it["id"] == 1 {
        true => {
            let error = json!({"code": "E_NOPE", "message": "odd"});
            vec![Step::Text(json!({"jsonrpc": "2.0", "id": it["id"], "error": error}).to_string())]
        }
        false => {
            let nobodys = json!({"jsonrpc": "2.0", "id": null, "result": {"content": []}});
            vec![Step::Text(nobodys.to_string()), said(it, "hello")]
        }
    })
    .await;
    let client = serve(&endpoint(&peer)).await.unwrap();
    let error = call(&client).await.unwrap_err().to_string();
    assert!(error.contains("odd"), "{error}");
    assert_eq!(call(&client).await.unwrap(), "hello");
}

#[tokio::test]
async fn a_server_that_refuses_the_upgrade_is_quoted() {
    let refusal = "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nWWW-Authenticate: Bearer\r\n\r\n";
    let peer = Peer::refusing(Opening::Say(refusal.to_owned())).await;
    let error = serve(&endpoint(&peer)).await.err().unwrap().to_string();
    assert!(error.contains("401") && error.contains("Bearer"), "{error}");
}

#[tokio::test]
async fn a_silent_server_ends_the_handshake() {
    let peer = Peer::start(|_| vec![]).await;
    let options = RmcpOptions { handshake: Duration::from_millis(50), grace: Duration::from_millis(50) };
    let transport = RmcpTransport::new(&*dial(&endpoint(&peer)), options);
    let ended = transport.disconnected();
    let error = ().serve(transport).await.err().unwrap().to_string();
    assert!(error.contains("did not answer within 0.05 s"), "{error}");
    ended.await;
}

#[tokio::test]
async fn a_close_is_polite_and_leaves_no_call() {
    let peer = peer(|_| vec![]).await;
    let client = serve(&endpoint(&peer)).await.unwrap();
    let other = client.peer().clone();
    let waiting = tokio::spawn(async move { other.call_tool(CallToolRequestParams::new("t")).await });
    client.cancel().await.unwrap();
    assert!(waiting.await.unwrap().is_err());
    until(|| peer.open() == 0).await;
    assert_eq!(peer.ends(), "close 1000");
}
