//! Sessions that a server forgets, and sessions that were there before.

use std::sync::atomic::{AtomicUsize, Ordering};

use mcp_testkit::wait::wait_until;

use super::*;

/// A server that forgets its first session: it refuses calls in it with `refusal`. The session id counts up.
async fn forgetful(refusal: fn(&ReceivedRequest) -> Reply) -> Peer {
    let opened = AtomicUsize::new(0);
    Peer::start(move |request| {
        if request.kind() == "initialize" {
            opened.fetch_add(1, Ordering::SeqCst);
        }
        let session = format!("s-{}", opened.load(Ordering::SeqCst));
        legacy(request, &session, |request| match request.header("mcp-session-id") {
            "s-1" => refusal(request),
            _ => json_reply(tool_result(request, "hello")),
        })
    })
    .await
}

#[track_caller]
fn check(refusal: fn(&ReceivedRequest) -> Reply) -> impl Future<Output = ()> {
    let place = std::panic::Location::caller();
    async move {
        let peer = forgetful(refusal).await;
        let session = TestClient::legacy().connect(&peer.url).await.unwrap();
        // Many find out at once, and one of them opens the new session.
        let calls = futures_util::future::join_all((0..8).map(|_| call(&session))).await;
        for called in calls {
            assert_eq!(called.unwrap(), "hello", "{place}");
        }
        assert_eq!(peer.count("initialize"), 2, "{place}: {}", peer.summary());
        assert_eq!(session.list_changes().borrow().tools, 1, "{place}: what was listed before is old");
        session.close(Duration::from_secs(1)).await;
        assert_eq!(peer.first("DELETE").header("mcp-session-id"), "s-2", "{place}");
    }
}

#[tokio::test]
async fn lost_session_is_reopened_once() {
    check(|_| reply(404, "", "")).await;
    check(|_| not_initialized()).await;
    check(|_| reply(400, "", "Bad Request: No valid session ID provided")).await;
    check(|request| {
        let error = json!({"jsonrpc": "2.0", "id": request.rpc()["id"],
            "error": {"code": -32001, "message": "Session not found"}});
        reply(404, "Content-Type: application/json\r\n", error.to_string())
    })
    .await;
}

/// A server that forgets its first session after the first response in it, and then refuses every request in it.
async fn restarting(refusal: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> Peer {
    let (opened, answered) = (AtomicUsize::new(0), AtomicUsize::new(0));
    Peer::start(move |request| {
        if request.kind() == "initialize" {
            opened.fetch_add(1, Ordering::SeqCst);
        }
        let session = format!("s-{}", opened.load(Ordering::SeqCst));
        legacy(request, &session, |request| {
            if request.header("mcp-session-id") == "s-1" && answered.fetch_add(1, Ordering::SeqCst) > 0 {
                return refusal(request);
            }
            match request.kind().as_str() {
                "ping" => json_reply(request.result(json!({}))),
                _ => json_reply(tool_result(request, "hello")),
            }
        })
    })
    .await
}

#[track_caller]
fn check_suspected(
    refusal: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static,
) -> impl Future<Output = ()> {
    let place = std::panic::Location::caller();
    async move {
        let peer = restarting(refusal).await;
        let session = TestClient::legacy().connect(&peer.url).await.unwrap();
        assert_eq!(call(&session).await.unwrap(), "hello", "{place}");
        let calls = futures_util::future::join_all((0..4).map(|_| call(&session))).await;
        for called in calls {
            assert_eq!(called.unwrap(), "hello", "{place}");
        }
        assert_eq!(peer.count("initialize"), 2, "{place}: {}", peer.summary());
    }
}

/// An error response with this status.
fn rpc_error(request: &ReceivedRequest, status: u16, code: i64, message: &str) -> Reply {
    let error =
        json!({"jsonrpc": "2.0", "id": request.rpc()["id"], "error": {"code": code, "message": message}});
    reply(status, "Content-Type: application/json\r\n", error.to_string())
}

// RPT-040
#[tokio::test]
async fn lost_session_is_recognized_by_any_refusal_of_every_request() {
    check_suspected(|_| reply(400, "", "")).await;
    check_suspected(|_| reply(400, "", r#"{"error":"session does not exist"}"#)).await;
    check_suspected(|_| reply(401, "", "Unauthorized")).await;
    let challenge = "WWW-Authenticate: Bearer error=\"invalid_token\"\r\n";
    check_suspected(move |_| reply(401, challenge, "Session not found")).await;
    check_suspected(|request| rpc_error(request, 403, -32001, "Session not found or expired")).await;
    check_suspected(|_| reply(410, "", "")).await;
    check_suspected(|request| rpc_error(request, 500, -32603, "Session not found")).await;
}

// RPT-041
#[tokio::test]
async fn lost_session_is_recognized_by_an_error_response_to_every_request() {
    for code in [-32000, -32001, -32002, -32005, -32600] {
        check_suspected(move |request| rpc_error(request, 200, code, "unknown")).await;
    }
    check_suspected(|request| rpc_error(request, 200, -32603, "Session not found")).await;
    check_suspected(|request| {
        let error = json!({"jsonrpc": "2.0", "id": request.rpc()["id"],
            "error": {"code": -32001, "message": "Session not found"}});
        peer::stream(&[&format!("data: {error}\n\n")], vec![])
    })
    .await;
}

// RPT-044
#[tokio::test]
async fn tool_whose_error_has_words_about_a_session_runs_once() {
    let words = "the browser session expired";
    check_kept(move |_| reply(400, "", words), words).await;
    check_kept(|request| rpc_error(request, 400, -32000, "No valid session ID"), "No valid session ID").await;
    check_kept(|_| reply(400, "", "Bad Request: Server not initialized"), "not initialized").await;
}

/// Checks that an error of a call is returned, and that the session stays.
async fn check_kept(refusal: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static, want: &str) {
    let answered = AtomicUsize::new(0);
    let peer = Peer::start(move |request| {
        legacy(request, "s", |request| match request.kind().as_str() {
            "ping" => json_reply(request.result(json!({}))),
            _ if answered.fetch_add(1, Ordering::SeqCst) == 0 => json_reply(tool_result(request, "hello")),
            _ => refusal(request),
        })
    })
    .await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    assert_eq!(call(&session).await.unwrap(), "hello");
    for _ in 0..2 {
        let error = call(&session).await.unwrap_err().to_string();
        assert!(error.contains(want), "{error}");
    }
    assert_eq!((peer.count("tools/call"), peer.count("initialize")), (3, 1), "{}", peer.summary());
}

// RPT-040, RPT-041
#[tokio::test]
async fn error_of_a_call_in_a_session_that_is_alive_is_returned() {
    check_kept(|request| rpc_error(request, 200, -32001, "browser session not found"), "browser session")
        .await;
    check_kept(|_| reply(403, "", "this tool is not for you"), "HTTP 403").await;
    check_kept(|_| reply(401, "", "no"), "HTTP 401").await;
    check_kept(|_| reply(410, "", "the page is gone"), "HTTP 410").await;
    check_kept(|_| reply(400, "", "bad arguments"), "HTTP 400").await;
}

// RPT-042
#[tokio::test]
async fn error_that_remains_in_a_new_session_opens_no_further_one() {
    let refused = AtomicUsize::new(0);
    let peer = Peer::start(move |request| {
        legacy(request, "s", |request| match request.kind().as_str() {
            "ping" => rpc_error(request, 200, -32000, "too busy"),
            // Between the errors it works again.
            _ if refused.fetch_add(1, Ordering::SeqCst).is_multiple_of(4) => {
                json_reply(tool_result(request, "hello"))
            }
            _ => rpc_error(request, 200, -32000, "too busy"),
        })
    })
    .await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    for _ in 0..8 {
        let _ = call(&session).await;
    }
    assert_eq!(peer.count("initialize"), 2, "{}", peer.summary());
}

// RPT-042
#[tokio::test]
async fn refusal_of_a_new_session_too_is_the_refusal_of_the_call() {
    let opened = AtomicUsize::new(0);
    let answered = AtomicUsize::new(0);
    let peer = Peer::start(move |request| {
        if request.kind() == "initialize" && opened.fetch_add(1, Ordering::SeqCst) > 0 {
            return reply(403, "", "this account is closed");
        }
        legacy(request, "s", |request| match answered.fetch_add(1, Ordering::SeqCst) {
            0 => json_reply(tool_result(request, "hello")),
            _ => reply(403, "", "this account is closed"),
        })
    })
    .await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    assert_eq!(call(&session).await.unwrap(), "hello");
    let error = call(&session).await.unwrap_err();
    assert!(error.to_string().contains("this account is closed"), "{error}");
    assert!(error.suggests_outage(), "{error:?}");
}

#[tokio::test]
async fn server_that_loses_every_session_is_not_retried_forever() {
    let peer = Peer::start(|request| legacy(request, "s", |_| reply(404, "", ""))).await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    let error = call(&session).await.unwrap_err();
    assert_eq!(error.to_string(), "the server loses the session as soon as it is opened");
    assert_eq!(peer.count("initialize"), 2);
}

#[tokio::test]
async fn unknown_method_is_not_a_lost_session() {
    let peer = Peer::start(|request| {
        legacy(request, "s", |request| {
            let error = json!({"jsonrpc": "2.0", "id": request.rpc()["id"],
                "error": {"code": -32601, "message": "Method not found"}});
            reply(404, "Content-Type: application/json\r\n", error.to_string())
        })
    })
    .await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    assert!(matches!(call(&session).await, Err(CallError::Rpc(error)) if error.code == -32601));
    assert_eq!(peer.count("initialize"), 1);
}

#[tokio::test]
async fn configured_session_is_used_and_not_deleted() {
    let peer =
        Peer::start(|request| legacy(request, "new", |request| json_reply(tool_result(request, "hello"))))
            .await;
    let how = || TestClient { session_id: Some(Secret::from("kept")), ..TestClient::default() };
    let session = how().connect(&peer.url).await.unwrap();
    assert_eq!(call(&session).await.unwrap(), "hello");
    wait_until(|| peer.count("GET") == 1).await;
    session.close(Duration::from_secs(1)).await;
    assert_eq!(peer.summary(), "tools/call GET");
    assert_eq!(peer.first("tools/call").header("mcp-session-id"), "kept");
    assert_eq!(peer.first("GET").header("mcp-session-id"), "kept");
}

#[tokio::test]
async fn lost_configured_session_is_replaced() {
    let peer = Peer::start(|request| {
        legacy(request, "new", |request| match request.header("mcp-session-id") {
            "new" => json_reply(tool_result(request, "hello")),
            _ => reply(404, "", ""),
        })
    })
    .await;
    let session = TestClient { session_id: Some(Secret::from("kept")), ..TestClient::default() }
        .connect(&peer.url)
        .await
        .unwrap();
    assert_eq!(call(&session).await.unwrap(), "hello");
    session.close(Duration::from_secs(1)).await;
    assert_eq!(peer.first("initialize").header("mcp-session-id"), "");
    assert_eq!(peer.first("DELETE").header("mcp-session-id"), "new");
}

#[tokio::test]
async fn abandoned_reopening_keeps_the_deadline_and_closes_its_socket() {
    let opened = AtomicUsize::new(0);
    let peer = Peer::start(move |request| {
        if request.kind() == "initialize" && opened.fetch_add(1, Ordering::SeqCst) > 0 {
            return vec![peer::Step::WaitForClose];
        }
        legacy(request, "s", |_| reply(404, "", ""))
    })
    .await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    let options = CallOptions::with_timeout(Duration::from_millis(150));
    for attempt in 1..=3 {
        let error = call_with(&session, options.clone()).await.unwrap_err();
        assert_eq!(error.to_string(), "no response within 0.15 s");
        wait_until(|| peer.closed_by_client() >= attempt).await;
    }
    assert!(
        !peer.summary().contains("notifications/cancelled"),
        "initialize must not be cancelled: {}",
        peer.summary()
    );
}

/// Handles `roots/list`. Delays its first response until it is notified.
struct Slow(std::sync::Arc<tokio::sync::Notify>, AtomicUsize);

#[async_trait::async_trait]
impl mcp_host_transport::Roots for Slow {
    async fn roots(&self) -> Result<Vec<mcp_host_transport::Root>, mcp_host_model::RpcError> {
        if self.1.fetch_add(1, Ordering::SeqCst) == 0 {
            self.0.notified().await;
        }
        Ok(Vec::new())
    }
}

#[tokio::test]
async fn late_response_does_not_reach_the_next_session() {
    // Both sessions ask under the same id, the first one for something that takes a while.
    let opened = AtomicUsize::new(0);
    let peer = Peer::start(move |request| {
        if request.kind() == "initialize" {
            opened.fetch_add(1, Ordering::SeqCst);
        }
        let session = format!("s-{}", opened.load(Ordering::SeqCst));
        match request.kind().as_str() {
            "GET" => {
                let asked = json!({"jsonrpc": "2.0", "id": 1, "method": "roots/list"});
                peer::stream(&[&format!("data: {asked}\n\n")], vec![peer::Step::WaitForClose])
            }
            // An answer to what was asked.
            "POST" => reply(202, "", ""),
            _ => legacy(request, &session, |request| match request.header("mcp-session-id") {
                "s-1" => reply(404, "", ""),
                _ => json_reply(tool_result(request, "hello")),
            }),
        }
    })
    .await;
    let release = std::sync::Arc::new(tokio::sync::Notify::new());
    let slow = std::sync::Arc::new(Slow(std::sync::Arc::clone(&release), AtomicUsize::new(0)));
    let mut handlers = mcp_host_transport::Handlers::default();
    handlers.roots = Some(slow.clone());
    let session = TestClient { handlers, ..TestClient::legacy() }.connect(&peer.url).await.unwrap();
    wait_until(|| slow.1.load(Ordering::SeqCst) == 1).await;
    assert_eq!(call(&session).await.unwrap(), "hello");
    wait_until(|| peer.count("POST") == 1).await;
    release.notify_one();
    // Long enough for an answer that should not come.
    assert_eq!(call(&session).await.unwrap(), "hello");
    assert_eq!(call(&session).await.unwrap(), "hello");
    assert_eq!(peer.count("POST"), 1, "{}", peer.summary());
    assert_eq!(peer.first("POST").header("mcp-session-id"), "s-2");
}
