//! Calls that nobody waits for any more, and many calls at once.

use super::peer::Step;
use super::*;

#[tokio::test]
async fn dropped_call_closes_a_modern_stream() {
    let peer = Peer::start(|it| modern(it, |_| vec![Step::Hang])).await;
    let session = How::default().connect(&peer.url).await.unwrap();
    tokio::select! {
        called = call(&session) => panic!("{called:?}"),
        () = until(|| peer.count("tools/call") == 1) => {}
    }
    until(|| peer.hung_up() == 1).await;
    assert_eq!(peer.words(), "server/discover tools/call");
}

#[tokio::test]
async fn dropped_call_sends_cancelled_to_a_legacy_server() {
    let peer = Peer::start(|it| legacy(it, "s", |_| vec![Step::Hang])).await;
    let session = How::legacy().connect(&peer.url).await.unwrap();
    tokio::select! {
        called = call(&session) => panic!("{called:?}"),
        () = until(|| peer.count("tools/call") == 1) => {}
    }
    until(|| peer.count("notifications/cancelled") == 1 && peer.hung_up() == 1).await;
    let (notice, called) = (peer.first("notifications/cancelled"), peer.first("tools/call"));
    assert_eq!(notice.rpc()["params"]["requestId"], called.rpc()["id"]);
    assert_eq!(notice.header("mcp-session-id"), "s");
}

#[tokio::test]
async fn hd_119_call_past_its_deadline_ends_and_is_cancelled() {
    let peer = Peer::start(|it| legacy(it, "s", |_| vec![Step::Hang])).await;
    let session = How::legacy().connect(&peer.url).await.unwrap();
    let options = CallOptions { timeout: Some(Duration::from_millis(50)), ..CallOptions::default() };
    assert!(matches!(call_with(&session, options).await, Err(CallError::TimedOut(_))));
    until(|| peer.count("notifications/cancelled") == 1).await;
}

#[tokio::test]
async fn calls_run_concurrently() {
    let peer = Peer::start(|it| {
        modern(it, |it| {
            let mut steps = vec![Step::Wait(Duration::from_millis(100))];
            steps.extend(json_reply(said(it, "hello")));
            steps
        })
    })
    .await;
    let session = How::default().connect(&peer.url).await.unwrap();
    let begun = std::time::Instant::now();
    let calls = futures_util::future::join_all((0..64).map(|_| call(&session))).await;
    assert!(calls.into_iter().all(|it| it.unwrap() == "hello"));
    // One after the other they take longer.
    assert!(begun.elapsed() < Duration::from_millis(6400), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn calls_beyond_the_limit_queue_and_can_be_dropped() {
    let peer = Peer::start(|it| {
        modern(it, |it| match it.rpc()["params"]["name"].as_str() {
            Some("hang") => vec![Step::Hang],
            _ => json_reply(said(it, "hello")),
        })
    })
    .await;
    let session = How::default().connect(&peer.url).await.unwrap();
    let empty = RawJson::empty_object();
    let hang = |_| session.call_tool("hang", &empty, CallOptions::default());
    {
        let mut hanging = std::pin::pin!(futures_util::future::join_all((0..600).map(hang)));
        tokio::select! {
            _ = &mut hanging => panic!("they hang"),
            () = until(|| peer.count("tools/call") == 512) => {}
        }
    }
    // All of them are given up, those that were never sent included: the way is free.
    assert_eq!(call(&session).await.unwrap(), "hello");
    assert_eq!(peer.count("tools/call"), 513);
    until(|| peer.hung_up() == 512).await;
}

#[tokio::test]
async fn dropped_session_closes_its_connections() {
    let peer = Peer::start(|it| match it.what().as_str() {
        "GET" => peer::stream(&[], vec![Step::Hang]),
        _ => legacy(it, "s", |it| json_reply(said(it, "hello"))),
    })
    .await;
    let session = How::legacy().connect(&peer.url).await.unwrap();
    call(&session).await.unwrap();
    until(|| peer.count("GET") == 1).await;
    drop(session);
    // The stream that listens, and the connection that waited for the next call.
    until(|| peer.open() == 0).await;
}
