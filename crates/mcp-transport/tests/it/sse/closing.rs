//! The end: nothing is left of a connection.

use mcp_testkit::wait::wait_until;

use super::*;

#[tokio::test]
async fn close_ends_the_stream_and_all_posts() {
    let peer = Peer::start(|request| legacy(request, |_| taken().never())).await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    assert_eq!(peer.streams(), 1);
    let close = async {
        wait_until(|| peer.count("tools/call") == 1).await;
        session.close(Duration::from_secs(5)).await
    };
    let (called, ended) = tokio::join!(call(&session), close);
    assert!(matches!(called, Err(CallError::Closed(_))), "{called:?}");
    assert_eq!(ended.to_string(), "it was stopped");
    wait_until(|| peer.streams() == 0 && peer.posting() == 0).await;
    assert_eq!(peer.count("DELETE"), 0, "there is no session to delete");
}

#[tokio::test]
async fn dropped_session_ends_its_stream() {
    let peer = Peer::start(greeting).await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    assert_eq!(peer.streams(), 1);
    drop(session);
    wait_until(|| peer.streams() == 0).await;
}

#[tokio::test]
async fn new_session_opens_a_new_stream() {
    let peer = Peer::start(|request| match request.kind().as_str() {
        "tools/call" => taken().ending(),
        _ => greeting(request),
    })
    .await;
    for number in 1..=2 {
        let session = TestClient::legacy().connect(&peer.url).await.unwrap();
        call(&session).await.unwrap_err();
        assert_eq!(session.closed().await.to_string(), "it closed the connection");
        assert_eq!(peer.count("GET"), number);
    }
}
