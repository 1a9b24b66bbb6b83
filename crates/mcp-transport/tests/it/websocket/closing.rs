//! The end of a connection from either side, and dropped calls.

use mcp_host_transport::{DisconnectReason, SessionState};
use mcp_testkit::wait::wait_until;

use super::*;

/// What a call is told when the peer ends the connection so.
async fn check(end: fn() -> Vec<Step>, want: &str) {
    let peer = Peer::start(move |message| modern(message, |_| end())).await;
    let headers = vec![("X-Key".to_owned(), Secret::from("hunter22"))];
    let session = TestClient { headers, ..TestClient::default() }.connect(&peer.url).await.unwrap();
    let error = call(&session).await.unwrap_err();
    assert!(
        matches!(&error, CallError::Closed(it) if it.reason == DisconnectReason::PeerClosed),
        "{error:?}"
    );
    assert_eq!(
        error.to_string(),
        format!("the server is no longer available: it closed the connection {want}")
    );
    assert!(matches!(&*session.state().borrow(), SessionState::Error(_)));
    wait_until(|| peer.open() == 0).await;
}

#[tokio::test]
async fn hd_117_hd_sc5_close_reason_is_reported_without_secrets() {
    check(|| vec![Step::Close(1000, "")], "with code 1000 (normal)").await;
    check(
        || vec![Step::Close(1011, "\u{1b}[31mno hunter22\u{7}\n\"ever\"\u{202e}")],
        r#"with code 1011 (internal error): "no *** \"ever\"""#,
    )
    .await;
    check(|| vec![Step::Raw(b"\x88\0".to_vec())], "without a code").await;
    check(|| vec![Step::Drop], "without a close frame").await;
    // Half of a message.
    check(|| vec![Step::Raw(b"\x81\x10{\"id".to_vec()), Step::Drop], "without a close frame").await;
}

#[tokio::test]
async fn close_sends_a_close_frame() {
    let peer = Peer::start(|message| modern(message, |message| vec![tool_result(message, "hello")])).await;
    let session = connect(&peer).await.unwrap();
    call(&session).await.unwrap();
    let ended = session.close(Duration::from_secs(5)).await;
    assert_eq!(ended.reason, DisconnectReason::Stopped);
    assert_eq!(*session.state().borrow(), SessionState::Disconnected);
    wait_until(|| peer.open() == 0).await;
    assert_eq!(peer.ends(), "close 1000");
}

#[tokio::test]
async fn unanswered_close_frame_does_not_delay_the_close() {
    let peer = Peer::start(|message| modern(message, |_| vec![Step::Stall])).await;
    let session = connect(&peer).await.unwrap();
    tokio::select! {
        _ = call(&session) => panic!("there is no answer"),
        () = wait_until(|| peer.count("tools/call") == 1) => {}
    }
    // Without a bound this never ends.
    assert_eq!(session.close(Duration::from_millis(50)).await.reason, DisconnectReason::Stopped);
}

#[tokio::test]
async fn dropped_session_closes_its_socket() {
    let peer = Peer::start(|message| modern(message, |message| vec![tool_result(message, "hello")])).await;
    let session = connect(&peer).await.unwrap();
    call(&session).await.unwrap();
    drop(session);
    wait_until(|| peer.open() == 0).await;
}

#[tokio::test]
async fn dropped_call_sends_cancelled() {
    let peer = Peer::start(|message| legacy(message, |_| vec![])).await;
    let session = connect(&peer).await.unwrap();
    tokio::select! {
        called = call(&session) => panic!("{called:?}"),
        () = wait_until(|| peer.count("tools/call") == 1) => {}
    }
    wait_until(|| peer.count("notifications/cancelled") == 1).await;
    let (notice, called) = (peer.first("notifications/cancelled"), peer.first("tools/call"));
    assert_eq!(notice["params"]["requestId"], called["id"]);
}

#[tokio::test]
async fn hd_119_call_past_its_deadline_ends_and_is_cancelled() {
    let peer = Peer::start(|message| legacy(message, |_| vec![])).await;
    let session = connect(&peer).await.unwrap();
    let options = CallOptions::with_timeout(Duration::from_millis(50));
    let called = session.call_tool("echo", &RawJson::empty_object(), options).await;
    assert!(matches!(called, Err(CallError::TimedOut(_))));
    wait_until(|| peer.count("notifications/cancelled") == 1).await;
}

#[tokio::test]
async fn peer_that_does_not_read_times_out() {
    let peer = Peer::start(|message| modern(message, |_| vec![Step::Stall])).await;
    let mut limits = Limits::default();
    limits.request = Duration::from_millis(300);
    let session =
        TestClient { limits: Some(limits), ..TestClient::default() }.connect(&peer.url).await.unwrap();
    // More than any socket holds.
    let arguments = format!("{{\"text\":\"{}\"}}", "x".repeat(48 << 20));
    let arguments = RawJson::parse(arguments.into()).unwrap();
    let empty = RawJson::empty_object();
    let (first, second) = tokio::join!(
        session.call_tool("echo", &empty, CallOptions::default()),
        session.call_tool("echo", &arguments, CallOptions::default()),
    );
    assert!(first.is_err() && second.is_err());
    let ended = session.closed().await;
    assert_eq!(ended.reason, DisconnectReason::Stalled(Duration::from_millis(300)));
}
