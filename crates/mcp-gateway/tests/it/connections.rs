//! What a connection carries: one request after the other, and nothing behind one whose end is not certain.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::world::{World, initialize};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// A message as it stands on the wire, with these fields besides.
fn post(fields: &str, body: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json\r\n\
         {fields}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// The statuses of what is answered on one connection to this text, until it ends.
async fn statuses(world: &World, text: &str) -> Vec<String> {
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut read = String::new();
    stream.read_to_string(&mut read).await.unwrap();
    read.split("HTTP/1.1 ").skip(1).map(|it| it[..3].to_owned()).collect()
}

#[tokio::test]
async fn requests_on_one_connection_are_answered_in_their_order() {
    let world = World::new().await;
    let session = world.initialize(&[]).await;
    let own = format!("mcp-session-id: {session}\r\n");
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"demo__sleep","arguments":{"ms":50}}}"#;
    // What comes behind a call that is still on its way waits for its turn.
    let text = [
        post(&own, PING),
        post(&own, call),
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
        post("", PING),
        format!("GET /nowhere HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{PING}", PING.len()),
        post(&format!("connection: close\r\n{own}"), PING),
        post(&own, PING),
    ];
    assert_eq!(statuses(&world, &text.concat()).await, ["200", "200", "200", "400", "404", "200"]);
    world.end().await;
}

#[tokio::test]
async fn a_request_that_hides_in_another_is_none() {
    let world = World::new().await;
    let hidden = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    for (fields, status) in [
        ("content-length: 5\r\ntransfer-encoding: chunked", "400"),
        ("transfer-encoding: chunked\r\ntransfer-encoding: identity", "501"),
        ("transfer-encoding: xchunked", "501"),
        ("content-length: 0\r\ncontent-length: 52", "400"),
        ("content-length: 0, 52", "400"),
        ("content-length : 0", "400"),
        ("x: y\r\n content-length: 0", "400"),
    ] {
        let text = format!("POST /mcp HTTP/1.1\r\nhost: localhost\r\n{fields}\r\n\r\n0\r\n\r\n{hidden}");
        assert_eq!(statuses(&world, &text).await, [status], "{fields}");
    }
    // What is not read is no request either: its end may be anywhere.
    let text = format!("POST /nowhere HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n{hidden}");
    assert_eq!(statuses(&world, &text).await, ["404"]);
    world.end().await;
}

#[tokio::test]
async fn who_sends_too_much_hears_it_while_he_sends() {
    let world = World::new().await;
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let head = post("", "").replace("content-length: 0", "content-length: 100000000");
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut reading, mut writing) = stream.into_split();
    let sending = tokio::spawn(async move { while writing.write_all(&[b' '; 4096]).await.is_ok() {} });
    let mut head = [0; 12];
    reading.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 413");
    drop(reading);
    sending.await.unwrap();
    world.end().await;
}

#[tokio::test]
async fn older_clients_are_served_as_well() {
    let world = World::new().await;
    let body = initialize("2025-11-25");
    let reply = world.raw(&post("", &body).replace("HTTP/1.1", "HTTP/1.0")).await;
    assert_eq!((reply.status, reply.header("connection").as_deref()), (200, Some("close")));
    let text = post("connection: keep-alive\r\n", PING).replace("HTTP/1.1", "HTTP/1.0").repeat(2);
    let text = format!("{text}{}", post("", PING).replace("HTTP/1.1", "HTTP/1.0"));
    assert_eq!(statuses(&world, &text).await, ["400"; 3]);
    assert_eq!(statuses(&world, "GET /healthz HTTP/3.0\r\n\r\n").await, ["505"]);
    world.end().await;
}
