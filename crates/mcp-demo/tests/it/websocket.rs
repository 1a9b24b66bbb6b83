//! WebSocket: both eras, rejected requests, and the end of either side.

use futures_util::{SinkExt, StreamExt};
use mcp_host_demo::{DemoError, HttpServer, ServeOutcome};
use serde_json::{Value, json};
use tokio::{net::TcpStream, sync::oneshot, task::JoinHandle};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{self, Message, client::IntoClientRequest, http::HeaderValue},
};

use crate::client::{Era, describe};

struct Server {
    url: String,
    stop: oneshot::Sender<()>,
    running: JoinHandle<Result<ServeOutcome, DemoError>>,
}

type Socket = WebSocketStream<TcpStream>;

impl Server {
    async fn start() -> Server {
        let server = HttpServer::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let url = server.websocket_url();
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(server.serve(async { drop(stopped.await) }));
        Server { url, stop, running }
    }

    /// Opens a socket with an additional header.
    async fn open_with_header(&self, name: &'static str, value: &str) -> Result<Socket, tungstenite::Error> {
        let address = self.url.strip_prefix("ws://").unwrap().strip_suffix("/ws").unwrap();
        let mut request = self.url.as_str().into_client_request().unwrap();
        request.headers_mut().insert("sec-websocket-protocol", HeaderValue::from_static("mcp"));
        request.headers_mut().insert(name, value.parse().unwrap());
        client_async(request, TcpStream::connect(address).await.unwrap()).await.map(|it| it.0)
    }

    async fn open(&self) -> Socket {
        self.open_with_header("user-agent", "test").await.unwrap()
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        assert_eq!(self.running.await.unwrap().unwrap(), ServeOutcome::Closed);
    }
}

async fn send(socket: &mut Socket, message: &Value) {
    // Line breaks between tokens are allowed.
    let text = serde_json::to_string_pretty(message).unwrap();
    socket.send(Message::Text(text.into())).await.unwrap();
}

/// Calls a tool and returns all messages up to the response as text.
async fn call(socket: &mut Socket, era: Era, tool: &str, arguments: Value) -> String {
    let params = era.add_meta(json!({"name": tool, "arguments": arguments}), &json!({}));
    send(socket, &json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params})).await;
    let mut res = Vec::new();
    loop {
        let Message::Text(text) = socket.next().await.unwrap().unwrap() else { panic!("no text") };
        let message: Value = serde_json::from_str(&text).unwrap();
        res.push(describe(&message));
        if message["id"] == 5 {
            return res.join(", ");
        }
    }
}

async fn initialize(socket: &mut Socket) {
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    });
    send(socket, &json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})).await;
    let answer = socket.next().await.unwrap().unwrap().into_text().unwrap();
    assert!(answer.contains("2025-11-25"), "{answer}");
    send(socket, &json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
}

/// The end of a socket as text.
async fn end(mut socket: Socket) -> String {
    loop {
        match socket.next().await {
            Some(Ok(Message::Close(Some(frame)))) => return format!("close {}", u16::from(frame.code)),
            Some(Ok(_)) => {}
            Some(Err(error)) => return error.to_string(),
            None => return "end".to_owned(),
        }
    }
}

#[tokio::test]
async fn each_socket_has_its_own_session() {
    let server = Server::start().await;
    let (mut first, mut second) = (server.open().await, server.open().await);
    for socket in [&mut first, &mut second] {
        initialize(socket).await;
    }
    let text = call(&mut first, Era::Legacy, "change_tools", json!({"name": "mine"})).await;
    assert!(text.contains("added mine"), "{text}");
    let text = call(&mut first, Era::Legacy, "mine", json!({})).await;
    assert_eq!(text, "I am mine, added at run time");
    let text = call(&mut second, Era::Legacy, "mine", json!({})).await;
    assert_eq!(text, "-32602: there is no tool `mine`");

    let mut sessionless = server.open().await;
    let text = call(&mut sessionless, Era::Sessionless, "echo", json!({"text": "hello"})).await;
    assert!(text.starts_with("hello"), "{text}");
    server.stop().await;
}

#[tokio::test]
async fn foreign_origins_and_too_many_sockets_are_rejected() {
    let server = Server::start().await;
    for (name, value) in [("host", "example.com"), ("origin", "http://example.com")] {
        let refused = server.open_with_header(name, value).await.unwrap_err();
        assert!(matches!(&refused, tungstenite::Error::Http(it) if it.status() == 403), "{refused}");
    }
    server.open_with_header("origin", "http://localhost:8080").await.unwrap();
    let mut sockets = Vec::new();
    let refused = loop {
        assert!(sockets.len() < 1000, "the number of sockets is not bounded");
        match server.open_with_header("user-agent", "test").await {
            Ok(socket) => sockets.push(socket),
            Err(refused) => break refused,
        }
    };
    assert!(matches!(&refused, tungstenite::Error::Http(it) if it.status() == 503), "{refused}");
    drop(sockets);
    server.stop().await;
}

#[tokio::test]
async fn shutdown_closes_sockets() {
    let server = Server::start().await;
    let mut socket = server.open().await;
    initialize(&mut socket).await;
    let ended = tokio::spawn(end(socket));
    server.stop().await;
    assert_eq!(ended.await.unwrap(), "close 1001");
}

#[tokio::test]
async fn exit_drops_the_socket() {
    let server = Server::start().await;
    let mut socket = server.open().await;
    let params = Era::Sessionless.add_meta(json!({"name": "exit", "arguments": {"code": 3}}), &json!({}));
    send(&mut socket, &json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params})).await;
    assert_eq!(server.running.await.unwrap().unwrap(), ServeOutcome::Exited(3));
    assert_eq!(end(socket).await, "WebSocket protocol error: Connection reset without closing handshake");
}

#[tokio::test]
async fn oversized_or_binary_message_closes_the_socket() {
    let server = Server::start().await;
    let mut socket = server.open().await;
    // The server closes the connection during this write.
    let _ = socket.send(Message::Text(" ".repeat(5 << 20).into())).await;
    assert_ne!(end(socket).await, "close 1000");
    let mut socket = server.open().await;
    socket.send(Message::Binary(vec![0; 4].into())).await.unwrap();
    assert_eq!(end(socket).await, "close 1003");
    server.stop().await;
}
