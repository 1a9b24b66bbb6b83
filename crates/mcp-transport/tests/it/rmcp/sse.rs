//! The SDK's client over HTTP with server-sent events, with servers that exit, stop responding, or send invalid
//! responses.

use serde_json::json;

use super::*;
use crate::sse::legacy;
use crate::sse::peer::{Heard, Peer, Reply, message, stream, taken};

async fn peer(about: impl Fn(&Heard) -> Reply + Send + Sync + 'static) -> Peer {
    Peer::start(move |it| legacy(it, &about)).await
}

fn endpoint(peer: &Peer) -> Endpoint {
    Endpoint::Sse(mcp_model::UrlEndpoint::new(peer.url.parse().unwrap()))
}

fn hello(heard: &Heard) -> String {
    heard.result(json!({"content": [{"type": "text", "text": "hello"}]}))
}

#[tokio::test]
async fn a_stream_that_ends_in_a_call_ends_all_of_them_with_words() {
    for end in [Reply::ending as fn(Reply) -> Reply, Reply::breaking] {
        let peer = peer(move |_| end(taken())).await;
        let client = serve(&endpoint(&peer)).await.unwrap();
        let error = call(&client).await.unwrap_err().to_string();
        assert!(error.contains("no longer available"), "{error}");
        assert!(call(&client).await.is_err());
    }
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_ends_its_request_and_nothing_else() {
    let peer = peer(|it| match it.rpc()["params"]["name"] == "t" && it.rpc()["id"] == 1 {
        true => {
            let error = json!({"code": "E_NOPE", "message": "odd"});
            taken().push(message(&json!({"jsonrpc": "2.0", "id": it.rpc()["id"], "error": error})))
        }
        false => taken().push(hello(it)),
    })
    .await;
    let client = serve(&endpoint(&peer)).await.unwrap();
    let error = call(&client).await.unwrap_err().to_string();
    assert!(error.contains("odd"), "{error}");
    assert_eq!(call(&client).await.unwrap(), "hello");
}

#[tokio::test]
async fn a_result_without_an_id_is_nobodys_answer() {
    let peer = peer(|it| {
        let nobodys = json!({"jsonrpc": "2.0", "id": null, "result": {"content": []}});
        taken().push(message(&nobodys)).push(hello(it))
    })
    .await;
    assert_eq!(call(&serve(&endpoint(&peer)).await.unwrap()).await.unwrap(), "hello");
}

#[tokio::test]
async fn a_silent_server_ends_the_handshake() {
    let peer = Peer::start(|it| if it.verb == "GET" { stream() } else { taken() }).await;
    let options = RmcpOptions { handshake: Duration::from_millis(50), grace: Duration::from_millis(50) };
    let transport = RmcpTransport::new(&*dial(&endpoint(&peer)), options);
    let ended = transport.disconnected();
    let error = ().serve(transport).await.err().unwrap().to_string();
    assert!(error.contains("did not answer within 0.05 s"), "{error}");
    ended.await;
}

#[tokio::test]
async fn a_close_leaves_no_stream_and_no_call() {
    let peer = peer(|_| taken()).await;
    let client = serve(&endpoint(&peer)).await.unwrap();
    let other = client.peer().clone();
    let waiting = tokio::spawn(async move { other.call_tool(CallToolRequestParams::new("t")).await });
    client.cancel().await.unwrap();
    assert!(waiting.await.unwrap().is_err());
    until(|| peer.streams() == 0).await;
}
