//! Limits: vanished clients, clients that do not read, oversized and slow requests.

use std::time::Duration;

use mcp_host_gateway::{Bounds, GatewayOptions, HttpOptions, Tokens};
use mcp_host_model::Secret;
use mcp_testkit::wait::wait_until;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Reply, TestGateway, initialize};

#[tokio::test]
async fn vanished_clients_leave_no_sessions_or_leases() {
    let mut bounds = Bounds::default();
    bounds.idle_timeout = Duration::from_millis(300);
    let fixture = TestGateway::bounded(bounds).await;
    let before = fixture.servers.demo.open();
    let mut streams = Vec::new();
    for number in 0..200 {
        let session = fixture.initialize(&[]).await;
        // Some clients disconnect during a call of a leased server, some while they listen.
        let name = if number % 20 == 0 { "own__sleep" } else { "demo__sleep" };
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","arguments":{{"ms":100}}}}}}"#
        );
        let call = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json, \
             text/event-stream\r\nmcp-session-id: {session}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let listen = format!(
            "GET /mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\nmcp-session-id: {session}\r\n\r\n"
        );
        let mut stream = TcpStream::connect(fixture.address).await.unwrap();
        stream.write_all(if number % 3 == 0 { listen } else { call }.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    drop(streams);
    wait_until(|| fixture.gateway.client_counts().sessions == 0).await;
    wait_until(|| fixture.servers.demo.open() == before).await;
    fixture.end().await;
}

#[tokio::test]
async fn client_that_does_not_read_blocks_no_other_client() {
    let mut bounds = Bounds::default();
    bounds.send_timeout = Duration::from_millis(500);
    let fixture = TestGateway::bounded(bounds).await;
    let mut unread_streams = Vec::new();
    for _ in 0..8 {
        let session = fixture.initialize(&[]).await;
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"demo__grow","arguments":{"bytes":8000000}}}"#;
        let mut stream = TcpStream::connect(fixture.address).await.unwrap();
        let call = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json\r\n\
             mcp-session-id: {session}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(call.as_bytes()).await.unwrap();
        unread_streams.push(stream);
    }
    let session = fixture.initialize(&[]).await;
    let echo = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"demo__echo","arguments":{"text":"a"}}}"#;
    for _ in 0..20 {
        assert_eq!(fixture.post(&[("mcp-session-id", &session)], echo).await.status, 200);
    }
    // The gateway disconnects them before they have received everything.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    for mut stream in unread_streams {
        let mut read = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut read)).await;
        assert!(ended.is_ok() && read.len() < 8_000_000, "{}", read.len());
    }
    fixture.end().await;
}

#[tokio::test]
async fn oversized_and_slow_requests_are_refused() {
    let mut bounds = Bounds::default();
    bounds.message_bytes = 2000;
    bounds.requests_per_client = 1;
    bounds.receive_timeout = Duration::from_millis(300);
    let fixture = TestGateway::bounded(bounds).await;
    let large =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":"{}"}}}}"#, "x".repeat(3000));
    // RPT-154
    let refused = fixture.post(&[], &large).await;
    assert_eq!(refused.status, 413);
    let message = refused.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
    assert!(refused.json()["id"] == 1 && message.contains("`--max-message-bytes`"), "{refused:?}");

    // The limit applies with and without a declared length. A broken body has another status.
    let head =
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n";
    let chunked = |body: &str| format!("{head}transfer-encoding: chunked\r\n\r\n{body}");
    let long = format!("{:x}\r\n{large}\r\n0\r\n\r\n", large.len());
    for (text, status) in [
        (chunked(&long), 413),
        (chunked("zz\r\n{}\r\n0\r\n\r\n"), 400),
        (chunked("5\r\n{}"), 400),
        (format!("{head}content-length: 3000\r\n\r\n{{"), 413),
    ] {
        assert_eq!(fixture.send_raw_and_close(&text).await.status, status, "{text}");
    }

    // Incomplete heads and bodies time out.
    for incomplete in [
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\n",
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{",
    ] {
        let mut stream = TcpStream::connect(fixture.address).await.unwrap();
        stream.write_all(incomplete.as_bytes()).await.unwrap();
        let mut read = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut read)).await;
        assert!(ended.is_ok());
    }
    fixture.end().await;
}

/// Sends this number of `initialize` requests.
async fn start_sessions(fixture: &TestGateway, headers: &[(&str, &str)], count: usize) -> Vec<Reply> {
    let mut replies = Vec::new();
    for _ in 0..count {
        replies.push(fixture.post(headers, &initialize("2025-11-25")).await);
    }
    replies
}

#[tokio::test]
async fn session_limit_evicts_only_own_sessions() {
    let mut bounds = Bounds::default();
    bounds.sessions_per_client = 4;
    let tokens = Tokens::read(&Secret::new("ann-0123456789abcdef name=ann")).unwrap();
    let mut options = GatewayOptions::default();
    options.bounds = bounds.clone();
    let fixture = TestGateway::with(options, {
        let mut options = HttpOptions::default();
        options.tokens = tokens;
        options
    })
    .await;
    let ann = ("authorization", "Bearer ann-0123456789abcdef");
    let started = start_sessions(&fixture, &[ann], 6).await;
    assert_eq!(fixture.gateway.client_counts().sessions, 4);
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (at, status) in [(0, 404), (5, 200)] {
        let session = started[at].header("mcp-session-id").unwrap();
        assert_eq!(fixture.post(&[ann, ("mcp-session-id", &session)], ping).await.status, status);
    }
    fixture.end().await;

    // Without tokens a session may belong to another client, so recently used ones that have called are protected.
    // Those that never called are evicted.
    let fixture = TestGateway::bounded(bounds).await;
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"demo__echo","arguments":{"text":"x"}}}"#;
    let first = fixture.initialize(&[]).await;
    assert_eq!(fixture.post(&[("mcp-session-id", &first)], call).await.status, 200);
    let started = start_sessions(&fixture, &[], 6).await;
    assert!(started.iter().all(|it| it.status == 200), "{started:?}");
    let [second, last] = [0, 5].map(|at| started[at].header("mcp-session-id").unwrap());
    for (session, status) in [(&first, 200), (&second, 404), (&last, 200)] {
        assert_eq!(fixture.post(&[("mcp-session-id", session)], ping).await.status, status);
    }
    for reply in start_sessions(&fixture, &[], 3).await {
        fixture.post(&[("mcp-session-id", &reply.header("mcp-session-id").unwrap())], call).await;
    }
    let refused = &start_sessions(&fixture, &[], 1).await[0];
    assert_eq!((refused.status, refused.header("retry-after").as_deref()), (503, Some("60")));

    let list = crate::support::modern("tools/list", None, "");
    let arguments = r#""name":"demo__echo","arguments":{"text":"x"}"#;
    let call = crate::support::modern("tools/call", Some("demo__echo"), arguments);
    for (number, (request, status)) in
        [(&call, 200), (&call, 200), (&list, 200), (&list, 200), (&call, 200), (&call, 200), (&list, 503)]
            .into_iter()
            .enumerate()
    {
        let (mut headers, body) = request.clone();
        headers.push(("mcp-host-dialog", number.to_string()));
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, it)| (*name, it.as_str())).collect();
        let reply = fixture.post(&headers, &body).await;
        assert_eq!(
            (reply.status, reply.header("retry-after").is_some()),
            (status, status == 503),
            "{number}"
        );
    }
    let clients = fixture.gateway.client_counts();
    assert_eq!((clients.sessions, clients.dialogs), (4, 4));
    fixture.end().await;
}

/// A slow call in a session, with an argument of `bytes` bytes.
fn large_call(session: &str, id: usize, bytes: usize) -> String {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"demo__sleep","arguments":{{"ms":60000}},"x":"{}"}}}}"#,
        "x".repeat(bytes)
    );
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json\r\n\
         mcp-session-id: {session}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test]
async fn sessions_of_a_token_share_permits() {
    let mut bounds = Bounds::default();
    bounds.requests_per_client = 1;
    let tokens =
        Tokens::read(&Secret::new("ann-0123456789abcdef name=ann\nbob-0123456789abcdef name=bob")).unwrap();
    let mut options = GatewayOptions::default();
    options.bounds = bounds;
    let fixture = TestGateway::with(options, {
        let mut options = HttpOptions::default();
        options.tokens = tokens;
        options
    })
    .await;
    let ann = ("authorization", "Bearer ann-0123456789abcdef");
    let bob = ("authorization", "Bearer bob-0123456789abcdef");
    let mut holding = Vec::new();
    for _ in 0..2 {
        let session = fixture.initialize(&[ann]).await;
        let call = large_call(&session, 1, 1).replacen("\r\n", &format!("\r\n{}: {}\r\n", ann.0, ann.1), 1);
        let mut stream = TcpStream::connect(fixture.address).await.unwrap();
        stream.write_all(call.as_bytes()).await.unwrap();
        holding.push((session, stream));
    }
    let running =
        async || fixture.http("GET", "/metrics", &[ann], "").await.body.contains("mcp_gateway_requests 2\n");
    while !running().await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let ping = r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#;
    for (who, fits) in [(ann, false), (bob, true)] {
        let session = fixture.initialize(&[who]).await;
        let reply = fixture.post(&[who, ("mcp-session-id", &session)], ping).await.json();
        assert_eq!(reply["result"].is_object(), fits, "{reply}");
    }
    for (session, _) in &holding {
        fixture.http("DELETE", "/mcp", &[ann, ("mcp-session-id", session)], "").await;
    }
    fixture.end().await;
}
