//! HTTP connections: pipelining, request smuggling, limits, slow clients, and the end of a connection.

use std::time::Duration;

use mcp_host_gateway::Bounds;
use mcp_testkit::wait::wait_until;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{TestGateway, initialize};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// A request with a message and these additional headers.
fn post(headers: &str, body: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json\r\n\
         {headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A call that takes `ms` milliseconds.
fn sleep_call(ms: u32) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"demo__sleep","arguments":{{"ms":{ms}}}}}}}"#
    )
}

/// Sends `text` on one connection. Returns the statuses of the responses until the connection ends.
async fn read_statuses(fixture: &TestGateway, text: &str) -> Vec<String> {
    let mut stream = TcpStream::connect(fixture.address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut received = String::new();
    stream.read_to_string(&mut received).await.unwrap();
    let responses = received.split("HTTP/1.").skip(1);
    responses.map(|response| response[2..5].to_owned()).collect()
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let fixture = TestGateway::new().await;
    let session = fixture.initialize(&[]).await;
    let own = format!("mcp-session-id: {session}\r\n");
    let text = [
        post(&own, PING),
        post(&own, &sleep_call(50)),
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
        post("", PING),
        format!("GET /nowhere HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{PING}", PING.len()),
        post(&format!("connection: close\r\n{own}"), PING),
        post(&own, PING),
    ];
    assert_eq!(read_statuses(&fixture, &text.concat()).await, ["200", "200", "200", "400", "404", "200"]);
    fixture.end().await;
}

// RPT-262
#[tokio::test]
async fn request_hidden_in_a_body_is_not_read() {
    let fixture = TestGateway::new().await;
    let hidden = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    for (headers, status) in [
        ("content-length: 5\r\ntransfer-encoding: chunked", "400"),
        ("transfer-encoding: chunked\r\ncontent-length: 5", "400"),
        ("transfer-encoding: chunked\r\ntransfer-encoding: chunked", "400"),
        ("content-length: 5\r\ncontent-length: 5", "400"),
        ("x: y\ncontent-length: 5", "400"),
        ("transfer-encoding: chunked\r\ntransfer-encoding: identity", "400"),
        ("transfer-encoding: xchunked", "400"),
        ("content-length: 0\r\ncontent-length: 52", "400"),
        ("content-length: 0, 52", "400"),
        ("content-length: +0", "400"),
        ("content-length: x", "400"),
        ("content-length: 99999999999999999999", "400"),
        ("content-length : 0", "400"),
        ("x: y\r\n content-length: 0", "400"),
        ("x\u{1}: y", "400"),
        ("x: y\u{1}", "400"),
    ] {
        let text = format!("POST /mcp HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n\r\n0\r\n\r\n{hidden}");
        assert_eq!(read_statuses(&fixture, &text).await, [status], "{headers}");
    }
    // HTTP/1.0 has no chunked bodies.
    let text = format!("POST /mcp HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{hidden}");
    assert_eq!(read_statuses(&fixture, &text).await, ["400"]);
    // Also behind other requests of the connection, and with a body that could hide a request.
    let twice = post(&format!("content-length: {}\r\n", PING.len()), PING);
    let first = post("", PING);
    let mut stream = TcpStream::connect(fixture.address).await.unwrap();
    stream.write_all(first.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.unwrap();
    stream.write_all(format!("{twice}{hidden}").as_bytes()).await.unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest.matches("HTTP/1.1 400").count(), 1, "{rest}");
    assert!(!rest.contains("HTTP/1.1 200"), "{rest}");
    // The body is not read, so its end is unknown and the connection is closed.
    let text = format!("POST /nowhere HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n{hidden}");
    assert_eq!(read_statuses(&fixture, &text).await, ["404"]);
    let text = format!(
        "{}{hidden}",
        post("transfer-encoding: chunked\r\n", "zz").replace("content-length: 2\r\n", "")
    );
    assert_eq!(read_statuses(&fixture, &text).await, ["400"]);
    fixture.end().await;
}

#[tokio::test]
async fn repeated_host_origin_and_authorization_are_refused() {
    let fixture = TestGateway::new().await;
    for header in
        ["host: localhost", "origin: http://localhost", "authorization: Bearer x", "mcp-session-id: x"]
    {
        let headers = format!("{header}\r\n{header}\r\nconnection: close\r\n");
        assert_eq!(read_statuses(&fixture, &post(&headers, PING)).await, ["400"], "{header}");
    }
    fixture.end().await;
}

#[tokio::test]
async fn repeated_selections_and_unsupported_codings_are_refused() {
    let fixture = TestGateway::new().await;
    for name in ["mcp-host-servers", "mcp-host-tools", "mcp-host-prompts", "mcp-host-resources"] {
        for (headers, status) in
            [(format!("{name}: a\r\n"), "200"), (format!("{name}: a\r\n{name}: b\r\n"), "400")]
        {
            let text =
                format!("GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n");
            assert_eq!(read_statuses(&fixture, &text).await, [status], "{headers}");
        }
    }
    for (headers, status) in [
        ("content-type: application/json\r\ncontent-type: application/json", "415"),
        ("content-type: application/json\r\ncontent-encoding: gzip", "415"),
        ("content-type: application/json\r\ntransfer-encoding: gzip, chunked", "501"),
    ] {
        let text = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\r\n\r\n0\r\n\r\n"
        );
        assert_eq!(read_statuses(&fixture, &text).await, [status], "{headers}");
    }
    fixture.end().await;
}

#[tokio::test]
async fn malformed_and_oversized_heads_are_refused() {
    let fixture = TestGateway::new().await;
    let large = "x".repeat(64 * 1024);
    for (text, status) in [
        ("nonsense\r\n\r\n".to_owned(), "400"),
        ("\u{16}\u{3}\u{1}".to_owned(), "400"),
        ("GET /healthz HTTP/3.0\r\n\r\n".to_owned(), "400"),
        (format!("GET /healthz HTTP/1.1\r\nx: {large}\r\n\r\n"), "431"),
        (format!("GET /healthz HTTP/1.1\r\nx: {large}"), "431"),
        (format!("GET /healthz HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(101)), "431"),
        (
            format!(
                "GET /healthz HTTP/1.1\r\nconnection: close\r\nhost: localhost\r\n{}\r\n",
                "x: y\r\n".repeat(98)
            ),
            "200",
        ),
    ] {
        assert_eq!(read_statuses(&fixture, &text).await, [status], "{:.40}", text);
    }
    let metrics = fixture.http("GET", "/metrics", &[], "").await.body;
    assert!(metrics.contains(r#"mcp_gateway_responses_total{status="400"} 3"#), "{metrics}");
    fixture.end().await;
}

#[tokio::test]
async fn client_that_sends_too_much_receives_the_refusal() {
    let fixture = TestGateway::new().await;
    let mut stream = TcpStream::connect(fixture.address).await.unwrap();
    let head = post("", "").replace("content-length: 0", "content-length: 100000000");
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut reading, mut writing) = stream.into_split();
    let sending = tokio::spawn(async move { while writing.write_all(&[b' '; 4096]).await.is_ok() {} });
    let mut head = [0; 12];
    reading.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 413");
    drop(reading);
    sending.await.unwrap();
    fixture.end().await;
}

#[tokio::test]
async fn body_is_requested_with_100_continue() {
    let fixture = TestGateway::new().await;
    let body = initialize("2025-11-25");
    let request = post("expect: 100-continue\r\nconnection: close\r\n", &body);
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut stream = TcpStream::connect(fixture.address).await.unwrap();
    stream.write_all(format!("{head}\r\n\r\n").as_bytes()).await.unwrap();
    let mut interim = [0; 25];
    stream.read_exact(&mut interim).await.unwrap();
    assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();
    assert!(rest.starts_with("HTTP/1.1 200 OK\r\n"), "{rest}");
    // A body that is refused by its length is not requested.
    let refused = head.replace(&format!("content-length: {}", body.len()), "content-length: 100000000");
    assert_eq!(read_statuses(&fixture, &format!("{refused}\r\n\r\n")).await, ["413"]);
    fixture.end().await;
}

#[tokio::test]
async fn http_1_0_is_served() {
    let fixture = TestGateway::new().await;
    let body = initialize("2025-11-25");
    assert_eq!(read_statuses(&fixture, &post("", &body).replace("HTTP/1.1", "HTTP/1.0")).await, ["200"]);
    let text = post("connection: keep-alive\r\n", PING).replace("HTTP/1.1", "HTTP/1.0").repeat(2);
    let text = format!("{text}{}", post("", PING).replace("HTTP/1.1", "HTTP/1.0"));
    assert_eq!(read_statuses(&fixture, &text).await, ["400"; 3]);
    fixture.end().await;
}

#[tokio::test]
async fn idle_connection_is_closed_and_running_request_is_not() {
    let fixture = TestGateway::bounded({
        let mut bounds = Bounds::default();
        bounds.receive_timeout = Duration::from_millis(400);
        bounds
    })
    .await;
    let session = fixture.initialize(&[]).await;
    let own = format!("mcp-session-id: {session}\r\n");
    let mut stream = TcpStream::connect(fixture.address).await.unwrap();
    stream.write_all(post(&own, &sleep_call(1500)).as_bytes()).await.unwrap();
    let started = tokio::time::Instant::now();
    let mut received = String::new();
    stream.read_to_string(&mut received).await.unwrap();
    assert!(received.starts_with("HTTP/1.1 200"), "{received}");
    assert!(started.elapsed() > Duration::from_millis(1800), "{:?}", started.elapsed());
    // A head that arrives byte by byte does not extend the time.
    let mut stream = TcpStream::connect(fixture.address).await.unwrap();
    let started = tokio::time::Instant::now();
    while started.elapsed() < Duration::from_secs(20) && stream.write_all(b"x").await.is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(started.elapsed() < Duration::from_secs(20));
    fixture.end().await;
}

#[tokio::test]
async fn disconnect_cancels_only_stateless_requests() {
    let fixture = TestGateway::new().await;
    let session = fixture.initialize(&[]).await;
    let running = async || {
        let page = fixture.http("GET", "/metrics", &[], "").await.body;
        let line =
            page.lines().find_map(|line| line.strip_prefix("mcp_gateway_requests ")).unwrap().to_owned();
        line.parse::<usize>().unwrap()
    };
    let wait_for = async |count| {
        while running().await != count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let mut stream = TcpStream::connect(fixture.address).await.unwrap();
    let call = post(&format!("mcp-session-id: {session}\r\n"), &sleep_call(60_000));
    stream.write_all(call.as_bytes()).await.unwrap();
    wait_for(1).await;
    drop(stream);

    let (headers, body) = crate::support::modern(
        "tools/call",
        Some("demo__sleep"),
        r#""name":"demo__sleep","arguments":{"ms":60000}"#,
    );
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let mut stream = TcpStream::connect(fixture.address).await.unwrap();
    stream.write_all(post(&headers, &body).as_bytes()).await.unwrap();
    wait_for(2).await;
    drop(stream);
    wait_for(1).await;
    fixture.http("DELETE", "/mcp", &[("mcp-session-id", &session)], "").await;
    wait_for(0).await;
    wait_until(|| fixture.gateway.client_counts().sessions == 0).await;
    fixture.end().await;
}

#[tokio::test]
async fn shutdown_lets_running_calls_finish() {
    let fixture = TestGateway::new().await;
    let session = fixture.initialize(&[]).await;
    let address = fixture.address;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let call = post(&format!("mcp-session-id: {session}\r\n"), &sleep_call(1_000));
    stream.write_all(call.as_bytes()).await.unwrap();
    let page = async || fixture.http("GET", "/metrics", &[], "").await.body;
    while !page().await.contains("mcp_gateway_requests 1\n") {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // RPT-203
    // New connections serve health only, until the call has finished.
    let get = async |path: &str| {
        let Ok(mut stream) = TcpStream::connect(address).await else { return String::new() };
        let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = vec![0; 1000];
        let length = stream.read(&mut response).await.unwrap_or_default();
        String::from_utf8_lossy(&response[..length]).into_owned()
    };
    let watch_drain = async {
        loop {
            let ready = get("/readyz").await;
            if ready.starts_with("HTTP/1.1 503") {
                return (ready, get("/healthz").await, get("/mcp").await);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let mut reply = String::new();
    let (read, (ready, health, mcp), ()) =
        tokio::join!(stream.read_to_string(&mut reply), watch_drain, fixture.end());
    assert!(read.is_ok() && reply.contains("slept 1000 ms"), "{reply}");
    assert!(ready.ends_with("draining\n") && health.starts_with("HTTP/1.1 200"), "{ready}{health}");
    assert!(mcp.starts_with("HTTP/1.1 503") && mcp.contains("shutting down"), "{mcp}");
    assert!(TcpStream::connect(address).await.is_err());
}
