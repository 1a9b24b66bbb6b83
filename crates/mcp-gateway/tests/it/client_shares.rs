//! Shares of the limits: what one client holds makes no call of another client fail.

use mcp_host_gateway::{Bounds, GatewayOptions, HttpOptions, Tokens};
use mcp_host_model::Secret;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpSocket, TcpStream};

use crate::support::TestGateway;

const ANN: (&str, &str) = ("authorization", "Bearer ann-0123456789abcdef");
const BOB: (&str, &str) = ("authorization", "Bearer bob-0123456789abcdef");
const PING: &str = r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#;

async fn gateway_with_two_tokens(bounds: Bounds) -> TestGateway {
    let tokens =
        Tokens::read(&Secret::new("ann-0123456789abcdef name=ann\nbob-0123456789abcdef name=bob")).unwrap();
    let mut options = GatewayOptions::default();
    options.bounds = bounds;
    TestGateway::with(options, {
        let mut options = HttpOptions::default();
        options.tokens = tokens;
        options
    })
    .await
}

/// A call of a tool.
fn call(tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

/// A call that runs until its session ends.
fn slow_call(id: usize) -> String {
    call("demo__sleep", r#"{"ms":60000}"#).replace("\"id\":1", &format!("\"id\":{id}"))
}

/// Sends a request of a client on a connection that is not read.
async fn send_unread(fixture: &TestGateway, client: (&str, &str), session: &str, body: &str) -> TcpStream {
    let text = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json\r\n\
         {}: {}\r\nmcp-session-id: {session}\r\ncontent-length: {}\r\n\r\n{body}",
        client.0,
        client.1,
        body.len()
    );
    // The buffers of the system are small, so that a response remains in the gateway.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 * 1024).unwrap();
    let mut stream = socket.connect(fixture.address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

async fn held_bytes(fixture: &TestGateway, client: (&str, &str)) -> usize {
    let page = fixture.http("GET", "/metrics", &[client], "").await;
    assert_eq!(page.status, 200);
    let line = page.body.lines().find_map(|line| line.strip_prefix("mcp_gateway_held_bytes ")).unwrap();
    line.parse().unwrap()
}

async fn wait_for_held_bytes(fixture: &TestGateway, is_reached: impl Fn(usize) -> bool) {
    while !is_reached(held_bytes(fixture, BOB).await) {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn unread_responses_of_a_client_make_no_call_of_another_fail() {
    const LIMIT: usize = 32_000_000;
    let fixture = gateway_with_two_tokens({
        let mut bounds = Bounds::default();
        bounds.held_bytes = LIMIT;
        bounds
    })
    .await;
    let (ann, bob) = (fixture.initialize(&[ANN]).await, fixture.initialize(&[BOB]).await);
    let mut unread = Vec::new();
    for number in 0..10 {
        let large =
            call("demo__grow", r#"{"bytes":8000000}"#).replace("\"id\":1", &format!("\"id\":{number}"));
        unread.push(send_unread(&fixture, ANN, &ann, &large).await);
    }
    wait_for_held_bytes(&fixture, |held| held > LIMIT / 2 + 1_000_000).await;

    let echo = call("demo__echo", &format!(r#"{{"text":"{}"}}"#, "x".repeat(100_000)));
    for _ in 0..50 {
        let reply = fixture.post(&[BOB, ("mcp-session-id", &bob)], &echo).await;
        assert_eq!(reply.status, 200);
        let reply = reply.json();
        assert!(reply["result"]["content"][0]["text"].as_str().is_some_and(|text| text.len() >= 100_000));
    }
    assert_eq!(fixture.http("GET", "/readyz", &[], "").await.status, 200);
    assert_eq!(fixture.http("GET", "/healthz", &[], "").await.status, 200);
    assert!(held_bytes(&fixture, BOB).await <= 2 * LIMIT);

    // The client that does not read receives the limit.
    let refused = fixture.post(&[ANN, ("mcp-session-id", &ann)], PING).await.json();
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("its share of the limit of 32000000 bytes"), "{refused}");
    drop(unread);
    wait_for_held_bytes(&fixture, |held| held == 0).await;
    assert!(fixture.post(&[ANN, ("mcp-session-id", &ann)], PING).await.json()["result"].is_object());
    fixture.end().await;
}

#[tokio::test]
async fn requests_in_memory_are_bounded_for_each_client() {
    let fixture = gateway_with_two_tokens({
        let mut bounds = Bounds::default();
        bounds.held_bytes = 100_000;
        bounds
    })
    .await;
    let (ann, bob) = (fixture.initialize(&[ANN]).await, fixture.initialize(&[BOB]).await);
    let text = "x".repeat(80_000);
    let slow = call("demo__sleep", r#"{"ms":60000}"#)
        .replace("\"params\":{", &format!(r#""params":{{"x":"{text}","#));
    let holding = send_unread(&fixture, ANN, &ann, &slow).await;
    wait_for_held_bytes(&fixture, |held| held > 0).await;
    let large = PING.replace("\"id\":9", &format!(r#""id":9,"params":{{"x":"{text}"}}"#));
    let refused = fixture.post(&[ANN, ("mcp-session-id", &ann)], &large).await;
    assert_eq!((refused.status, refused.header("retry-after").as_deref()), (503, Some("1")), "{refused:?}");
    assert_eq!(fixture.post(&[BOB, ("mcp-session-id", &bob)], &large).await.status, 200);
    // The session's end cancels the call and releases its bytes.
    assert_eq!(fixture.http("DELETE", "/mcp", &[ANN, ("mcp-session-id", &ann)], "").await.status, 204);
    wait_for_held_bytes(&fixture, |held| held == 0).await;
    drop(holding);
    fixture.end().await;
}

#[tokio::test]
async fn idle_connections_make_room_for_others() {
    let fixture = gateway_with_two_tokens({
        let mut bounds = Bounds::default();
        bounds.connections = 20;
        bounds
    })
    .await;
    let ann = fixture.initialize(&[ANN]).await;
    let bob = fixture.initialize(&[BOB]).await;
    // Some never send a request, the others wait for the next one.
    let mut idle = Vec::new();
    for number in 0..60 {
        idle.push(match number % 2 {
            0 => TcpStream::connect(fixture.address).await.unwrap(),
            _ => send_unread(&fixture, ANN, &ann, PING).await,
        });
    }
    for _ in 0..10 {
        let reply = fixture.post(&[BOB, ("mcp-session-id", &bob)], PING).await;
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    assert_eq!(fixture.http("GET", "/readyz", &[], "").await.status, 200);
    drop(idle);
    fixture.end().await;
}

#[tokio::test]
async fn busy_connections_of_a_client_leave_room_for_others() {
    let fixture = gateway_with_two_tokens({
        let mut bounds = Bounds::default();
        bounds.connections = 20;
        bounds
    })
    .await;
    let (ann, bob) = (fixture.initialize(&[ANN]).await, fixture.initialize(&[BOB]).await);
    let mut busy = Vec::new();
    let refused = loop {
        let reply = fixture.post(&[ANN, ("mcp-session-id", &ann)], PING).await;
        if reply.status != 200 {
            break reply;
        }
        busy.push(send_unread(&fixture, ANN, &ann, &slow_call(busy.len())).await);
    };
    assert_eq!((refused.status, refused.header("retry-after").as_deref()), (503, Some("1")), "{refused:?}");
    assert!(refused.body.contains("its share of the 20 connections"), "{refused:?}");
    for _ in 0..10 {
        assert_eq!(fixture.post(&[BOB, ("mcp-session-id", &bob)], PING).await.status, 200);
    }
    assert_eq!(fixture.http("DELETE", "/mcp", &[ANN, ("mcp-session-id", &ann)], "").await.status, 204);
    drop(busy);
    fixture.end().await;
}

#[tokio::test]
async fn health_and_metrics_answer_when_all_connections_are_busy() {
    // Without tokens all clients count as one, which may use all connections.
    let fixture = TestGateway::bounded({
        let mut bounds = Bounds::default();
        bounds.connections = 4;
        bounds
    })
    .await;
    let session = fixture.initialize(&[]).await;
    let mut busy = Vec::new();
    while fixture.post(&[("mcp-session-id", &session)], PING).await.status == 200 {
        busy.push(send_unread(&fixture, ("x-test", "1"), &session, &slow_call(busy.len())).await);
        // Until its request has been read, the next connection may replace it.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    // Connections without requests do not keep the places of health and metrics.
    let mut idle = Vec::new();
    for _ in 0..40 {
        idle.push(TcpStream::connect(fixture.address).await.unwrap());
    }
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(fixture.http("GET", path, &[], "").await.status, 200, "{path}");
    }
    let refused = fixture.post(&[("mcp-session-id", &session)], PING).await;
    assert_eq!(refused.status, 503, "{refused:?}");
    assert_eq!(fixture.http("DELETE", "/mcp", &[("mcp-session-id", &session)], "").await.status, 204);
    drop((busy, idle));
    fixture.end().await;
}
