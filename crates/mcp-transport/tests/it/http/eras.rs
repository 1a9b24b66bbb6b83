//! The handshake of either era, and the headers of each message.

use super::*;
use mcp_testkit::wait::wait_until;
use serde_json::Value;

#[tokio::test]
async fn modern_server_is_opened_without_a_session() {
    let peer =
        Peer::start(|request| modern(request, |request| json_reply(tool_result(request, "hello")))).await;
    let session = TestClient::default().connect(&peer.url).await.unwrap();
    assert_eq!((session.version().as_str(), session.server().name.as_str()), ("2026-07-28", "modern"));
    assert_eq!(call(&session).await.unwrap(), "hello");
    session.close(Duration::from_secs(1)).await;
    assert_eq!(peer.summary(), "server/discover tools/call");
    let call = peer.first("tools/call");
    for (name, value) in [
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
        ("mcp-protocol-version", "2026-07-28"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-session-id", ""),
    ] {
        assert_eq!(call.header(name), value, "{name}");
    }
    assert_eq!(call.rpc()["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
}

#[tokio::test]
async fn non_ascii_name_is_encoded() {
    let peer = Peer::start(|request| modern(request, |request| json_reply(tool_result(request, "")))).await;
    let session = TestClient::default().connect(&peer.url).await.unwrap();
    session.call_tool("grün", &RawJson::empty_object(), CallOptions::default()).await.unwrap();
    assert_eq!(peer.first("tools/call").header("mcp-name"), "=?base64?Z3LDvG4=?=");
}

#[tokio::test]
async fn legacy_session_is_opened_and_deleted_on_close() {
    let peer =
        Peer::start(|request| legacy(request, "s-1", |request| json_reply(tool_result(request, "hello"))))
            .await;
    let session = TestClient::default().connect(&peer.url).await.unwrap();
    assert_eq!((session.version().as_str(), session.server().name.as_str()), ("2025-06-18", "legacy"));
    assert_eq!(call(&session).await.unwrap(), "hello");
    wait_until(|| peer.count("GET") == 1).await;
    session.close(Duration::from_secs(1)).await;
    let initialize = peer.first("initialize");
    assert_eq!((initialize.header("mcp-session-id"), initialize.header("mcp-protocol-version")), ("", ""));
    for what in ["notifications/initialized", "tools/call", "GET", "DELETE"] {
        let received = peer.first(what);
        let sent = (
            received.header("mcp-session-id"),
            received.header("mcp-protocol-version"),
            received.header("mcp-method"),
        );
        assert_eq!(sent, ("s-1", "2025-06-18", ""), "{what}");
    }
    assert_eq!(peer.first("GET").header("accept"), "text/event-stream");
    assert_eq!(peer.count("DELETE"), 1);
}

/// Checks the fallback from a probe that is refused like this.
#[track_caller]
fn check_fallback(refusal: fn(&ReceivedRequest) -> Reply) -> impl Future<Output = ()> {
    let place = std::panic::Location::caller();
    async move {
        let peer = Peer::start(move |request| match request.kind().as_str() {
            "server/discover" => refusal(request),
            _ => legacy(request, "s", |request| json_reply(tool_result(request, "hello"))),
        })
        .await;
        let session = TestClient::default().connect(&peer.url).await;
        let session = session.unwrap_or_else(|error| panic!("{place}: {error}"));
        assert_eq!(call(&session).await.unwrap(), "hello", "{place}");
    }
}

#[tokio::test]
async fn every_error_of_the_probe_leads_to_initialize() {
    check_fallback(|_| not_initialized()).await;
    check_fallback(|_| reply(400, "", "Bad Request")).await;
    check_fallback(|_| reply(404, "Content-Type: text/html\r\n", "<html>no</html>")).await;
    check_fallback(|_| reply(405, "", "")).await;
    check_fallback(|_| reply(500, "", "oops")).await;
    check_fallback(|_| reply(202, "", "")).await;
    check_fallback(|_| vec![peer::Step::Close]).await;
    check_fallback(|request| {
        let error =
            json!({"jsonrpc": "2.0", "id": request.rpc()["id"], "error": {"code": -32601, "message": "no"}});
        json_reply(error.to_string())
    })
    .await;
    check_fallback(|_| json_reply(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#))
        .await;
}

#[tokio::test]
async fn nothing_overtakes_the_initialized_notification() {
    let peer = Peer::start(|request| match request.kind().as_str() {
        "notifications/initialized" => {
            let mut steps = vec![peer::Step::Wait(Duration::from_millis(100))];
            steps.extend(reply(202, "", ""));
            steps
        }
        _ => legacy(request, "s", |request| json_reply(tool_result(request, "hello"))),
    })
    .await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    call(&session).await.unwrap();
    let waited = peer.first("tools/call").at - peer.first("notifications/initialized").at;
    assert!(waited >= Duration::from_millis(100), "the call came after {waited:?}");
}

/// The time by which a call is delayed by a server that handles `notifications/initialized` like this.
async fn held_up(concluded: fn() -> Reply) -> Duration {
    let peer = Peer::start(move |request| match request.kind().as_str() {
        "notifications/initialized" => concluded(),
        _ => legacy(request, "s", |request| json_reply(tool_result(request, "hello"))),
    })
    .await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    let begun = tokio::time::Instant::now();
    assert_eq!(call(&session).await.unwrap(), "hello");
    begun.elapsed()
}

#[tokio::test(start_paused = true)]
async fn unanswered_initialized_notification_delays_calls_briefly() {
    use peer::Step;
    let at_once = Duration::from_millis(100);
    // It has taken the notice, and never ends its response to it.
    const HEAD: &[u8] = b"HTTP/1.1 202 X\r\nContent-Length: 9\r\n\r\n";
    assert!(held_up(|| vec![Step::Write(HEAD.to_vec()), Step::WaitForClose]).await < at_once);
    assert!(held_up(|| peer::stream(&[": hi\n\n"], vec![Step::WaitForClose])).await < at_once);
    assert!(held_up(|| vec![Step::Close]).await < at_once);
    assert!(held_up(|| reply(400, "", "no")).await < at_once);
    // It sends no response: the call continues without one.
    let waited = held_up(|| vec![Step::WaitForClose]).await;
    assert!((Duration::from_secs(2)..Duration::from_millis(2500)).contains(&waited), "{waited:?}");
}

#[tokio::test]
async fn hd_126_session_is_kept_if_configured() {
    let peer =
        Peer::start(|request| legacy(request, "s", |request| json_reply(tool_result(request, "hello"))))
            .await;
    let session = TestClient { keep_session: true, ..TestClient::legacy() }.connect(&peer.url).await.unwrap();
    session.close(Duration::from_secs(1)).await;
    assert_eq!(peer.count("DELETE"), 0);
}

#[tokio::test]
async fn close_does_not_wait_for_an_unresponsive_server() {
    let peer = Peer::start(|request| match request.kind().as_str() {
        "DELETE" | "tools/call" => vec![peer::Step::WaitForClose],
        _ => legacy(request, "s", |_| vec![]),
    })
    .await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    let close = async {
        wait_until(|| peer.count("tools/call") == 1).await;
        session.close(Duration::from_millis(50)).await
    };
    let (called, ended) = tokio::join!(call(&session), close);
    assert!(matches!(called, Err(CallError::Closed(_))), "{called:?}");
    assert_eq!(ended.to_string(), "it was stopped");
    wait_until(|| peer.closed_by_client() == 2).await;
}

#[tokio::test]
async fn hd_121_configured_headers_are_sent_with_every_message() {
    let peer =
        Peer::start(|request| legacy(request, "s", |request| json_reply(tool_result(request, "hello"))))
            .await;
    let headers = vec![
        ("Authorization".to_owned(), Secret::from("Bearer token-1")),
        ("Accept".to_owned(), Secret::from("text/html")),
        ("Mcp-Session-Id".to_owned(), Secret::from("mine")),
    ];
    let session = TestClient { headers, ..TestClient::legacy() }.connect(&peer.url).await.unwrap();
    call(&session).await.unwrap();
    wait_until(|| peer.count("GET") == 1).await;
    session.close(Duration::from_secs(1)).await;
    for received in peer.received() {
        assert_eq!(received.header("authorization"), "Bearer token-1", "{}", received.kind());
        assert_ne!(received.header("mcp-session-id"), "mine", "{}", received.kind());
        assert_ne!(received.header("accept"), "text/html", "{}", received.kind());
    }
}

#[tokio::test]
async fn url_credentials_are_sent_as_a_header() {
    let peer =
        Peer::start(|request| modern(request, |request| json_reply(tool_result(request, "hello")))).await;
    let url = peer.url.replace("http://", "http://user:p%40ss@");
    let session = TestClient::default().connect(&url).await.unwrap();
    call(&session).await.unwrap();
    assert_eq!(peer.first("tools/call").header("authorization"), "Basic dXNlcjpwQHNz");
}

#[tokio::test]
async fn response_to_a_server_request_is_a_separate_post() {
    let peer = Peer::start(|request| match request.kind().as_str() {
        "tools/call" => {
            let ping = "data: {\"jsonrpc\":\"2.0\",\"id\":\"p-1\",\"method\":\"ping\"}\n\n";
            let answer = format!("data: {}\n\n", tool_result(request, "hello"));
            peer::stream(&[ping, &answer], peer::end())
        }
        _ => legacy(request, "s", |_| reply(202, "", "")),
    })
    .await;
    let session = TestClient::legacy().connect(&peer.url).await.unwrap();
    assert_eq!(call(&session).await.unwrap(), "hello");
    wait_until(|| peer.received().iter().any(|request| request.rpc()["id"] == "p-1")).await;
    let pong = peer.received().into_iter().find(|request| request.rpc()["id"] == "p-1").unwrap();
    assert_eq!(
        (pong.rpc()["result"].clone(), pong.header("mcp-session-id")),
        (Value::Object(Default::default()), "s")
    );
}

/// A legacy server that speaks 2025-03-26 only, and refuses other versions with this status and these members of an
/// error.
async fn speaking_one_version(status: u16, members: Value) -> Peer {
    Peer::start(move |request| {
        if request.kind() == "initialize" && request.rpc()["params"]["protocolVersion"] != "2025-03-26" {
            let mut error = json!({"code": -32602, "message": "Unsupported protocol version"});
            error.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            let body = json!({"jsonrpc": "2.0", "id": request.rpc()["id"], "error": error});
            return reply(status, "Content-Type: application/json\r\n", body.to_string());
        }
        legacy(request, "s", |request| json_reply(tool_result(request, "hello")))
    })
    .await
}

// RPT-061
#[tokio::test]
async fn version_that_a_refusal_names_is_used() {
    for status in [200, 400] {
        let supported =
            json!({"data": {"supported": ["2024-10-07", "2025-03-26"], "requested": "2025-11-25"}});
        for members in
            [supported, json!({"data": {"expected": "2025-03-26"}}), json!({"message": "use 2025-03-26"})]
        {
            let peer = speaking_one_version(status, members).await;
            let session = TestClient::legacy().connect(&peer.url).await.unwrap();
            assert_eq!(call(&session).await.unwrap(), "hello");
            assert_eq!(peer.count("initialize"), 2);
        }
    }
}

// RPT-061
#[tokio::test]
async fn refusal_without_a_known_version_shows_what_it_supports() {
    let check = async |members, want: &str| {
        let peer = speaking_one_version(200, members).await;
        let error = TestClient::legacy().connect(&peer.url).await.err().unwrap().to_string();
        assert!(error.contains(want), "{error}");
        assert_eq!(peer.count("initialize"), 1);
    };
    let supported = json!({"data": {"supported": ["2099-01-01"]}});
    check(supported, "the server supports protocol version 2099-01-01").await;
    check(json!({}), "Unsupported protocol version").await;
}
