//! Cancelled calls, and many calls at once.

use mcp_testkit::wait::wait_until;

use super::peer::Step;
use super::*;

#[tokio::test]
async fn dropped_call_closes_a_modern_stream() {
    let peer = Peer::start(|request| modern(request, |_| vec![Step::WaitForClose])).await;
    let session = TestClient::default().connect(&peer.url).await.unwrap();
    tokio::select! {
        called = call(&session) => panic!("{called:?}"),
        () = wait_until(|| peer.count("tools/call") == 1) => {}
    }
    wait_until(|| peer.closed_by_client() == 1).await;
    assert_eq!(peer.summary(), "server/discover tools/call");
}

#[tokio::test]
async fn dropped_call_sends_cancelled_to_a_legacy_server() {
    let peer = Peer::start(|request| legacy(request, "s", |_| vec![Step::WaitForClose])).await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    tokio::select! {
        called = call(&session) => panic!("{called:?}"),
        () = wait_until(|| peer.count("tools/call") == 1) => {}
    }
    wait_until(|| peer.count("notifications/cancelled") == 1 && peer.closed_by_client() == 1).await;
    let (notice, called) = (peer.first("notifications/cancelled"), peer.first("tools/call"));
    assert_eq!(notice.rpc()["params"]["requestId"], called.rpc()["id"]);
    assert_eq!(notice.header("mcp-session-id"), "s");
}

#[tokio::test]
async fn hd_119_call_past_its_deadline_ends_and_is_cancelled() {
    let peer = Peer::start(|request| legacy(request, "s", |_| vec![Step::WaitForClose])).await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    let options = CallOptions::with_timeout(Duration::from_millis(50));
    assert!(matches!(call_with(&session, options).await, Err(CallError::TimedOut(_))));
    wait_until(|| peer.count("notifications/cancelled") == 1).await;
}

#[tokio::test]
async fn calls_run_concurrently() {
    let peer = Peer::start(|request| {
        modern(request, |request| {
            let mut steps = vec![Step::Wait(Duration::from_millis(100))];
            steps.extend(json_reply(tool_result(request, "hello")));
            steps
        })
    })
    .await;
    let session = TestClient::default().connect(&peer.url).await.unwrap();
    let begun = std::time::Instant::now();
    let calls = futures_util::future::join_all((0..64).map(|_| call(&session))).await;
    assert!(calls.into_iter().all(|it| it.unwrap() == "hello"));
    // One after the other they take longer.
    assert!(begun.elapsed() < Duration::from_millis(6400), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn calls_beyond_the_limit_queue_and_can_be_dropped() {
    let peer = Peer::start(|request| {
        modern(request, |request| match request.rpc()["params"]["name"].as_str() {
            Some("hang") => vec![Step::WaitForClose],
            _ => json_reply(tool_result(request, "hello")),
        })
    })
    .await;
    let session = TestClient::default().connect(&peer.url).await.unwrap();
    let empty = RawJson::empty_object();
    let hang = |_| session.call_tool("hang", &empty, CallOptions::default());
    {
        let mut hanging = std::pin::pin!(futures_util::future::join_all((0..600).map(hang)));
        tokio::select! {
            _ = &mut hanging => panic!("they hang"),
            () = wait_until(|| peer.count("tools/call") == 512) => {}
        }
    }
    // All of them are given up, those that were never sent included: the way is free.
    assert_eq!(call(&session).await.unwrap(), "hello");
    assert_eq!(peer.count("tools/call"), 513);
    wait_until(|| peer.closed_by_client() == 512).await;
}

#[tokio::test]
async fn dropped_session_closes_its_connections() {
    let peer = Peer::start(|request| match request.kind().as_str() {
        "GET" => peer::stream(&[], vec![Step::WaitForClose]),
        _ => legacy(request, "s", |request| json_reply(tool_result(request, "hello"))),
    })
    .await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    call(&session).await.unwrap();
    wait_until(|| peer.count("GET") == 1).await;
    drop(session);
    // The stream that listens, and the connection that waited for the next call.
    wait_until(|| peer.open() == 0).await;
}
