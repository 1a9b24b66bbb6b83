//! What goes wrong, and in which words.

use super::peer::{Step, end, stream};
use super::*;

/// A modern server that answers a call with `rest`, and the error of that call in words.
async fn fault(rest: fn(&ReceivedRequest) -> Reply) -> String {
    let peer = Peer::start(move |request| modern(request, rest)).await;
    let session = TestClient::default().connect(&peer.url).await.unwrap();
    let error = call(&session).await.unwrap_err();
    let kind = match &error {
        CallError::Unreachable(_) | CallError::Refused(_) => "refused",
        CallError::OutcomeUnknown(_) => "unknown",
        CallError::Rpc(_) => "answered",
        _ => "other",
    };
    format!("{kind}: {error}").replace(&peer.url, "URL")
}

#[tokio::test]
async fn error_contains_the_servers_message() {
    assert_eq!(
        fault(|_| reply(400, "", r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"bad"},"id":null}"#))
            .await,
        "refused: the server answered HTTP 400 Bad Request: bad (code -32600)"
    );
    assert_eq!(
        fault(|_| reply(401, "WWW-Authenticate: Bearer realm=\"r\"\r\n", "")).await,
        "refused: the server answered HTTP 401 Unauthorized: it requires authorization (Bearer)"
    );
    assert_eq!(
        fault(|_| reply(404, "Content-Type: text/html\r\n", "<p>\n nothing</p>")).await,
        "refused: the server answered HTTP 404 Not Found: <p> nothing</p>"
    );
}

#[tokio::test]
async fn response_is_accepted_with_any_status() {
    fn error(it: &ReceivedRequest) -> String {
        json!({"error": {"code": -32602, "message": "no"}, "id": it.rpc()["id"]}).to_string()
    }
    let want = "answered: the server responded with an error: no (code -32602)";
    assert_eq!(fault(|it| reply(400, "", error(it))).await, want);
    assert_eq!(fault(|it| reply(500, "", error(it))).await, want);
    assert_eq!(fault(|it| json_reply(error(it))).await, want);
    assert_eq!(
        fault(|_| json_reply(r#"{"error":{"code":-32600,"message":"bad"},"id":null}"#)).await,
        "answered: the server responded with an error: bad (code -32600)"
    );
}

#[tokio::test]
async fn lost_response_leaves_the_outcome_unknown() {
    let unknown = |why: &str| {
        format!("unknown: the response was lost ({why}), and it is not known whether the call ran")
    };
    assert_eq!(
        fault(|_| reply(502, "", "bad gateway")).await,
        unknown("the server answered HTTP 502 Bad Gateway: bad gateway")
    );
    assert_eq!(
        fault(|_| vec![Step::Close]).await,
        unknown("URL did not respond: the connection was closed before the end of the response")
    );
    assert_eq!(
        fault(|_| reply(202, "", "")).await,
        unknown("the server accepted the request (HTTP 202) without a response")
    );
    assert_eq!(
        fault(|_| reply(200, "Content-Type: text/html\r\n", "<html>")).await,
        unknown("the body (HTTP 200) does not contain the response: <html>")
    );
    assert_eq!(
        fault(|_| stream(&[": hello\n\n"], end())).await,
        unknown("the server ended the stream before the response")
    );
    let cut = fault(|_| stream(&["data: {\"id\""], vec![Step::Close])).await;
    assert!(
        cut.starts_with("unknown: the response was lost (the stream failed before the response: "),
        "{cut}"
    );
    let cut = fault(|_| {
        vec![
            Step::Write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{".to_vec(),
            ),
            Step::Close,
        ]
    })
    .await;
    assert!(cut.starts_with("unknown: the response was lost (the response is incomplete: "), "{cut}");
}

#[tokio::test]
async fn redirect_is_followed_within_its_origin_only() {
    let peer = Peer::start(|request| match request.path.as_str() {
        "/mcp" => reply(307, "Location: /mcp/\r\n", ""),
        _ => modern(request, |request| json_reply(tool_result(request, "hello"))),
    })
    .await;
    let session = TestClient::default().connect(&peer.url).await.unwrap();
    assert_eq!(call(&session).await.unwrap(), "hello");
    assert_eq!(
        fault(|_| reply(307, "Location: http://evil.example/x?secret\r\n", "")).await,
        "refused: the server redirects to http://evil.example (HTTP 307), which is not followed"
    );
    assert_eq!(
        fault(|_| reply(307, "Location: /mcp\r\n", "")).await,
        "refused: the server redirects too often"
    );
}

#[tokio::test]
async fn refused_connection_is_reported() {
    let url = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://user:hunter2@{}/mcp?key=hunter3", listener.local_addr().unwrap())
    };
    let error = TestClient::default().connect(&url).await.err().unwrap();
    let plain = url.replace("user:hunter2@", "").replace("?key=hunter3", "");
    assert_eq!(error.to_string(), format!("cannot connect to {plain}: connection refused"));
    assert_eq!(error.help().unwrap(), "check that the server is running, and that host and port are correct");
}

#[tokio::test]
async fn invalid_endpoint_is_refused_before_anything_is_sent() {
    let refused = |name: &str, value: &str| {
        let headers = vec![(name.to_owned(), Secret::from(value))];
        TestClient { headers, ..TestClient::default() }.connect("http://127.0.0.1:1/mcp")
    };
    let error = refused("Host", "evil.example").await.err().unwrap();
    assert_eq!(error.to_string(), "the header Host cannot be configured");
    let error = refused("X", "hunter2\r\nY: 1").await.err().unwrap();
    assert_eq!(error.to_string(), "the value of the header X contains characters that are not allowed");
    let error = TestClient::default().connect("ftp://127.0.0.1/mcp").await.err().unwrap();
    assert_eq!(error.to_string(), "ftp://127.0.0.1/mcp is not an http or https URL");
}

#[tokio::test]
async fn hd_sc5_secret_repeated_by_a_server_is_redacted() {
    let peer = Peer::start(|request| {
        reply(401, "", format!("no: {} {}", request.header("authorization"), request.header("x-key")))
    })
    .await;
    let headers = [("Authorization", "Bearer token-1"), ("X-Key", "hunter22")];
    let headers = headers.map(|(name, value)| (name.to_owned(), Secret::from(value))).to_vec();
    let error = TestClient { headers, ..TestClient::default() }.connect(&peer.url).await.err().unwrap();
    let want = "the server answered HTTP 401 Unauthorized: it requires authorization: no: *** ***";
    assert_eq!(error.to_string(), want);
}

#[tokio::test]
async fn large_response_is_delivered_and_a_too_large_one_refused() {
    let text = |size: usize| "x".repeat(size);
    let peer = Peer::start(move |request| {
        modern(request, |request| match request.rpc()["params"]["name"].as_str().unwrap() {
            "json" => json_reply(tool_result(request, &text(10 << 20))),
            "stream" => stream(&[&format!("data: {}\n\n", tool_result(request, &text(10 << 20)))], end()),
            "too long" => json_reply(tool_result(request, &text(12 << 20))),
            "too long, unsaid" => {
                let mut steps =
                    vec![Step::Write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n".to_vec())];
                steps.extend([Step::Write(tool_result(request, &text(12 << 20)).into()), Step::Close]);
                steps
            }
            _ => stream(&[&format!("data: {}\n\n", tool_result(request, &text(12 << 20)))], end()),
        })
    })
    .await;
    let mut limits = Limits::default();
    limits.message_bytes = 11 << 20;
    let session =
        TestClient { limits: Some(limits), ..TestClient::default() }.connect(&peer.url).await.unwrap();
    let empty = RawJson::empty_object();
    let call = |name: &'static str| session.call_tool(name, &empty, CallOptions::default());
    for name in ["json", "stream"] {
        assert_eq!(call(name).await.unwrap().value.text().len(), 10 << 20, "{name}");
    }
    for name in ["too long", "too long, unsaid", "too long stream"] {
        let error = call(name).await.unwrap_err().to_string();
        assert!(error.contains("exceeds the message size limit of 11534336 bytes"), "{name}: {error}");
    }
}

#[tokio::test]
async fn lost_response_is_retried_once_if_safe() {
    let lossy = |lost: usize| {
        let calls = std::sync::atomic::AtomicUsize::new(0);
        Peer::start(move |request| {
            modern(request, |request| match calls.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
                number if number < lost => stream(&[": working\n\n"], vec![Step::Close]),
                _ => json_reply(tool_result(request, "hello")),
            })
        })
    };
    let peer = lossy(1).await;
    let session = TestClient::default().connect(&peer.url).await.unwrap();
    assert_eq!(call_again_if_lost(&session).await.unwrap(), "hello");
    assert_eq!(peer.count("tools/call"), 2);
    let peer = lossy(2).await;
    let session = TestClient::default().connect(&peer.url).await.unwrap();
    assert!(matches!(call_again_if_lost(&session).await, Err(CallError::OutcomeUnknown(_))));
    let peer = lossy(1).await;
    let session = TestClient::default().connect(&peer.url).await.unwrap();
    assert!(matches!(call(&session).await, Err(CallError::OutcomeUnknown(_))));
    assert_eq!(peer.count("tools/call"), 1);
}

// RPT-063
#[tokio::test]
async fn handshake_is_repeated_when_the_server_allows_it() {
    let busy = async |seconds: &'static str, client: TestClient, method: &'static str| {
        let refused = std::sync::atomic::AtomicBool::new(false);
        let peer =
            Peer::start(move |request| match refused.swap(true, std::sync::atomic::Ordering::SeqCst) {
                true => legacy(request, "s", |request| json_reply(tool_result(request, "hello"))),
                false => reply(503, &format!("Retry-After: {seconds}\r\n"), ""),
            })
            .await;
        let connected = client.connect(&peer.url).await.map(|session| session.era());
        (connected.map_err(|error| error.to_string()), peer.count(method))
    };
    assert_eq!(
        busy("0", TestClient::default(), "server/discover").await,
        (Ok(mcp_host_model::Era::Legacy), 2)
    );
    assert_eq!(busy("0", TestClient::legacy(), "initialize").await, (Ok(mcp_host_model::Era::Legacy), 2));
    // The caller decides whether to wait that long.
    let error = "the server answered HTTP 503 Service Unavailable (try again in 30 s)";
    assert_eq!(busy("30", TestClient::default(), "server/discover").await, (Err(error.to_owned()), 1));
}

// RPT-063
#[tokio::test(start_paused = true)]
async fn refused_request_is_repeated_when_the_server_allows_it() {
    let busy = async |seconds: &'static str| {
        let refused = std::sync::atomic::AtomicBool::new(false);
        let peer = Peer::start(move |request| {
            legacy(request, "s", |request| {
                if refused.swap(true, std::sync::atomic::Ordering::SeqCst) {
                    return json_reply(tool_result(request, "hello"));
                }
                reply(429, &format!("Retry-After: {seconds}\r\n"), "")
            })
        })
        .await;
        let session = TestClient::legacy().connect(&peer.url).await.unwrap();
        let begun = tokio::time::Instant::now();
        let called = call(&session).await.map_err(|error| error.to_string());
        (called, begun.elapsed().as_secs(), peer.count("tools/call"))
    };
    assert_eq!(busy("7").await, (Ok("hello".to_owned()), 7, 2));
    // The caller decides whether to wait that long.
    let error = "the server answered HTTP 429 Too Many Requests (try again in 30 s)";
    assert_eq!(busy("30").await, (Err(error.to_owned()), 0, 1));
}
