//! The SDK's client over HTTP with server-sent events, with servers that exit, stop responding, or send invalid
//! responses.

use mcp_testkit::wait::wait_until;
use serde_json::json;

use super::*;
use crate::sse::legacy;
use crate::sse::peer::{Peer, ReceivedRequest, Reply, message, stream, taken};

async fn peer(about: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> Peer {
    Peer::start(move |request| legacy(request, &about)).await
}

fn endpoint(peer: &Peer) -> Endpoint {
    Endpoint::Sse(mcp_host_model::UrlEndpoint::new(peer.url.parse().unwrap()))
}

fn hello(received: &ReceivedRequest) -> String {
    received.result(json!({"content": [{"type": "text", "text": "hello"}]}))
}

#[tokio::test]
async fn end_of_the_stream_fails_all_calls_with_a_message() {
    for end in [Reply::ending as fn(Reply) -> Reply, Reply::breaking] {
        let peer = peer(move |_| end(taken())).await;
        let client = serve(&endpoint(&peer)).await.unwrap();
        let error = call(&client).await.unwrap_err().to_string();
        assert!(error.contains("no longer available"), "{error}");
        assert!(call(&client).await.is_err());
    }
}

#[tokio::test]
async fn unreadable_response_fails_its_request_only() {
    let peer = peer(|request| match request.rpc()["params"]["name"] == "t" && request.rpc()["id"] == 1 {
        true => {
            let error = json!({"code": "E_NOPE", "message": "odd"});
            taken().push(message(&json!({"jsonrpc": "2.0", "id": request.rpc()["id"], "error": error})))
        }
        false => taken().push(hello(request)),
    })
    .await;
    let client = serve(&endpoint(&peer)).await.unwrap();
    let error = call(&client).await.unwrap_err().to_string();
    assert!(error.contains("odd"), "{error}");
    assert_eq!(call(&client).await.unwrap(), "hello");
}

#[tokio::test]
async fn result_without_an_id_is_ignored() {
    let peer = peer(|it| {
        let nobodys = json!({"jsonrpc": "2.0", "id": null, "result": {"content": []}});
        taken().push(message(&nobodys)).push(hello(it))
    })
    .await;
    assert_eq!(call(&serve(&endpoint(&peer)).await.unwrap()).await.unwrap(), "hello");
}

#[tokio::test]
async fn silent_server_times_out_the_handshake() {
    let peer = Peer::start(|request| if request.verb == "GET" { stream() } else { taken() }).await;
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
async fn close_ends_the_stream_and_all_calls() {
    let peer = peer(|_| taken()).await;
    let client = serve(&endpoint(&peer)).await.unwrap();
    let other = client.peer().clone();
    let waiting = tokio::spawn(async move { other.call_tool(CallToolRequestParams::new("t")).await });
    client.cancel().await.unwrap();
    assert!(waiting.await.unwrap().is_err());
    wait_until(|| peer.streams() == 0).await;
}
