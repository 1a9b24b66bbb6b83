//! The way to a session: the GET, the place for messages, and what each request carries.

use mcp_testkit::wait::wait_until;

use super::*;

#[tokio::test]
async fn hd_120_hd_fr005_server_is_connected_and_called() {
    let peer = Peer::start(greeting).await;
    let session = TestClient::default().connect(&peer.url).await.unwrap();
    assert_eq!((session.version().as_str(), session.server().name.as_str()), ("2024-11-05", "older"));
    assert_eq!(call(&session).await.unwrap(), "hello");
    session.close(Duration::from_secs(1)).await;
    assert_eq!(peer.summary(), "GET server/discover initialize notifications/initialized tools/call");
    let get = peer.first("GET");
    assert_eq!(
        (get.path.as_str(), get.header("accept"), get.header("content-type")),
        ("/sse", "text/event-stream", "")
    );
    for received in &peer.received()[1..] {
        assert_eq!((received.verb.as_str(), received.path.as_str()), ("POST", "/messages?session=1"));
        assert_eq!(received.header("content-type"), "application/json");
    }
    assert_eq!(peer.first("initialize").header("mcp-protocol-version"), "");
    assert_eq!(peer.first("tools/call").header("mcp-protocol-version"), "2024-11-05");
}

#[tokio::test]
async fn hd_121_headers_are_sent_with_every_request_and_ours_win() {
    let peer = Peer::start(greeting).await;
    let headers = [
        ("Authorization", "Bearer token-1"),
        ("Accept", "text/html"),
        ("Content-Type", "text/plain"),
        ("Last-Event-ID", "7"),
        ("Mcp-Session-Id", "mine"),
        ("Mcp-Protocol-Version", "mine"),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), Secret::from(value))).to_vec();
    let session = TestClient { headers, ..TestClient::default() }.connect(&peer.url).await.unwrap();
    call(&session).await.unwrap();
    let received = peer.received();
    assert_eq!(received.len(), 5);
    for received in received {
        let what = received.kind();
        assert_eq!(received.header("authorization"), "Bearer token-1", "{what}");
        assert!(received.header("accept").contains("text/event-stream"), "{what}");
        assert_ne!(received.header("content-type"), "text/plain", "{what}");
        assert_eq!((received.header("last-event-id"), received.header("mcp-session-id")), ("", ""), "{what}");
        assert_ne!(received.header("mcp-protocol-version"), "mine", "{what}");
    }
}

#[tokio::test]
async fn url_credentials_are_sent_with_every_request() {
    let peer = Peer::start(greeting).await;
    let url = peer.url.replace("http://", "http://user:p%40ss@");
    let session = TestClient::default().connect(&url).await.unwrap();
    call(&session).await.unwrap();
    for received in peer.received() {
        assert_eq!(received.header("authorization"), "Basic dXNlcjpwQHNz", "{}", received.kind());
    }
}

/// What a stream begins with, and the path that is posted to, or the error.
async fn posted_to(begin: &'static str) -> String {
    posted_within(begin, Limits::default().connect).await
}

async fn posted_within(begin: &'static str, connect: Duration) -> String {
    let peer = Peer::start(move |request| match request.kind().as_str() {
        "GET" => stream_of(begin),
        _ => greeting(request),
    })
    .await;
    let mut limits = Limits::default();
    limits.connect = connect;
    match (TestClient { limits: Some(limits), ..TestClient::legacy() }).connect(&peer.url).await {
        Ok(_session) => peer.first("initialize").path,
        Err(error) => {
            assert_eq!(peer.summary(), "GET", "nothing is posted");
            error.to_string().replace(peer.url.trim_end_matches("/sse"), "ORIGIN")
        }
    }
}

#[tokio::test]
async fn message_endpoint_is_resolved_within_the_origin() {
    assert_eq!(posted_to("event: endpoint\ndata: messages\n\n").await, "/messages");
    assert_eq!(posted_to("event: endpoint\r\ndata: /a/b?c=d\r\n\r\n").await, "/a/b?c=d");
    assert_eq!(
        posted_to("\u{feff}: hello\n\nevent: ping\ndata: x\n\ndata: /a\nevent: endpoint\n\n").await,
        "/a"
    );
    assert_eq!(
        posted_to("event: endpoint\ndata: /a\n\nevent: endpoint\ndata: /b\n\n").await,
        "/a",
        "the place stays"
    );
    let foreign = |named: &str| {
        format!("the server's URL for messages is at {named}, but messages are only sent to ORIGIN")
    };
    assert_eq!(
        posted_to("event: endpoint\ndata: http://evil.example/m?secret\n\n").await,
        foreign("http://evil.example")
    );
    assert_eq!(posted_to("event: endpoint\ndata: //127.0.0.1:1/m\n\n").await, foreign("http://127.0.0.1:1"));
    assert_eq!(
        posted_to("event: endpoint\ndata: http://\n\n").await,
        "the server's URL for messages is invalid"
    );
}

#[tokio::test]
async fn hd_122_connect_timeout_covers_the_whole_opening() {
    let late = "ORIGIN/sse opened its stream without an endpoint event within 0.5 s";
    let limit = Duration::from_millis(500);
    assert_eq!(posted_within(": hello\n\n", limit).await, late);
    assert_eq!(posted_within("data: /messages\n\n", limit).await, late, "a message is no endpoint");
    assert_eq!(posted_within("event: endpoint\ndata: /messages\n", limit).await, late, "half an event");
    let peer = Peer::start(|_| stream().never()).await;
    let mut limits = Limits::default();
    limits.connect = Duration::from_millis(100);
    let error =
        TestClient { limits: Some(limits), ..TestClient::default() }.connect(&peer.url).await.err().unwrap();
    assert_eq!(error.to_string(), format!("{} did not answer within 0.1 s", peer.url));
}

/// What is said where the GET brings this.
async fn refused(get: impl Fn() -> Reply + Send + Sync + 'static) -> String {
    let peer = Peer::start(move |_| get()).await;
    let headers = vec![("X-Key".to_owned(), Secret::from("hunter22"))];
    let error = TestClient { headers, ..TestClient::default() }.connect(&peer.url).await.err().unwrap();
    // Streamable HTTP is probed for the message.
    assert!(peer.summary().starts_with("GET"), "{}", peer.summary());
    let help = error.help().unwrap_or_default();
    format!("{error} [{help}]").replace(&peer.url, "URL")
}

#[tokio::test]
async fn response_without_a_stream_is_reported_with_its_message() {
    let path = "check the path of the URL: Streamable HTTP servers usually use /mcp, servers with server-sent events \
        /sse, WebSocket servers /ws";
    assert_eq!(
        refused(|| reply(404, "<h1>no such\npage</h1>")).await,
        format!("the server answered HTTP 404 Not Found: <h1>no such page</h1> [{path}]")
    );
    assert_eq!(
        refused(|| reply(401, "no hunter22").header("www-authenticate", "Bearer realm=\"r\"")).await,
        "the server answered HTTP 401 Unauthorized: it requires authorization (Bearer): no *** [the server requires \
        authorization: check the `Authorization` header]"
    );
    assert_eq!(
        refused(|| reply(403, "")).await,
        "the server answered HTTP 403 Forbidden: it requires authorization [the server requires authorization: check \
        the `Authorization` header]"
    );
    assert_eq!(
        refused(|| reply(500, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"oops"}}"#))
            .await,
        "the server answered HTTP 500 Internal Server Error: oops (code -32603) [the server, or a gateway in front \
        of it, fails: check its log, and try again later]"
    );
    assert_eq!(
        refused(|| reply(200, "<html>").header("content-type", "text/html")).await,
        "the server answered HTTP 200 OK: <html> (this is not an event stream) [there is no MCP server at this URL: \
        check its host, port and path]"
    );
    assert_eq!(
        refused(|| reply(200, ": hello").header("content-type", "text/event-stream")).await,
        "the server ended the stream before the endpoint event [there is no MCP server at this URL: check its host, \
        port and path]"
    );
}

#[tokio::test]
async fn redirect_is_followed_within_its_origin_only() {
    for status in [301, 302, 303, 307, 308] {
        let peer = Peer::start(move |request| match request.path.as_str() {
            "/sse" => reply(status, "").header("location", "/sse/"),
            _ => greeting(request),
        })
        .await;
        let session = TestClient::default().connect(&peer.url).await.unwrap();
        assert_eq!(call(&session).await.unwrap(), "hello", "{status}");
        assert_eq!(peer.received()[1].path, "/sse/");
    }
    let elsewhere = refused(|| reply(302, "").header("location", "http://evil.example/x?secret")).await;
    let want = "the server redirects to http://evil.example (HTTP 302), which is not followed [if you trust the new \
        location, put its URL into the configuration]";
    assert_eq!(elsewhere, want);
    let peer = Peer::start(|request| match request.path.as_str() {
        "/messages?session=1" => reply(307, "").header("location", "http://evil.example/x?secret"),
        _ => greeting(request),
    })
    .await;
    let error = TestClient::default().connect(&peer.url).await.err().unwrap().to_string();
    assert_eq!(error, "the server redirects to http://evil.example (HTTP 307), which is not followed");
}

#[tokio::test]
async fn refused_connection_is_reported() {
    let url = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://user:hunter2@{}/sse?key=hunter3", listener.local_addr().unwrap())
    };
    let error = TestClient::default().connect(&url).await.err().unwrap();
    let plain = url.replace("user:hunter2@", "").replace("?key=hunter3", "");
    assert_eq!(error.to_string(), format!("cannot connect to {plain}: connection refused"));
    assert_eq!(error.help().unwrap(), "check that the server is running, and that host and port are correct");
}

#[tokio::test]
async fn hd_022_invalid_endpoint_is_refused_before_anything_is_sent() {
    let headers = vec![("Host".to_owned(), Secret::from("evil.example"))];
    let error = TestClient { headers, ..TestClient::default() }
        .connect("http://127.0.0.1:1/sse")
        .await
        .err()
        .unwrap();
    assert_eq!(error.to_string(), "the header Host cannot be configured");
    let error = TestClient::default().connect("wss://127.0.0.1/sse").await.err().unwrap();
    assert_eq!(error.to_string(), "wss://127.0.0.1/sse is not an http or https URL");
}

#[tokio::test]
async fn abandoned_connection_leaves_no_socket() {
    let peer = Peer::start(|_| stream_of(": wait\n\n")).await;
    let connecting = TestClient::default().connect(&peer.url);
    assert!(tokio::time::timeout(Duration::from_millis(100), connecting).await.is_err());
    wait_until(|| peer.streams() == 0).await;
    assert_eq!(peer.summary(), "GET");
}
