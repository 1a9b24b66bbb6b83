//! Streamable HTTP: legacy sessions, modern requests, and rejected requests.

use mcp_host_demo::{DemoError, HttpServer, ServeOutcome};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::oneshot,
    task::JoinHandle,
};

use crate::client::{Era, describe};

struct Server {
    url: String,
    stop: oneshot::Sender<()>,
    running: JoinHandle<Result<ServeOutcome, DemoError>>,
}

/// A response: its status, session id, and last message.
struct Reply {
    status: u16,
    session: Option<String>,
    message: Option<Value>,
}

impl Server {
    async fn start() -> Server {
        let server = HttpServer::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        assert_ne!(server.address().port(), 0);
        let url = server.url();
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(server.serve(async { drop(stopped.await) }));
        Server { url, stop, running }
    }

    async fn post(&self, headers: &str, message: &Value) -> Reply {
        post(&self.url, headers, message).await
    }

    async fn open(&self) -> String {
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"},
        });
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let session = self.post("", &message).await.session.expect("a session");
        format!("mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n")
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        assert_eq!(self.running.await.unwrap().unwrap(), ServeOutcome::Closed);
    }
}

/// Sends one POST on a new connection. `headers` are complete lines.
async fn post(url: &str, headers: &str, message: &Value) -> Reply {
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
    let host = if headers.contains("host:") { String::new() } else { format!("host: {address}\r\n") };
    let body = message.to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\n{host}content-type: application/json\r\naccept: application/json, \
         text/event-stream\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let session = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
    let message = body.lines().filter_map(|line| line.strip_prefix("data: ")).next_back();
    Reply {
        status: head[9..12].parse().unwrap(),
        session: session.map(str::to_owned),
        message: message.and_then(|it| serde_json::from_str(it).ok()),
    }
}

fn call(era: Era, tool: &str, arguments: Value) -> Value {
    let params = era.add_meta(json!({"name": tool, "arguments": arguments}), &json!({}));
    json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params})
}

fn modern(tool: &str) -> String {
    format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n")
}

#[tokio::test]
async fn each_legacy_session_has_its_own_list() {
    let server = Server::start().await;
    let (first, second) = (server.open().await, server.open().await);
    let change = call(Era::Legacy, "change_tools", json!({"name": "mine"}));
    assert_eq!(describe(&server.post(&first, &change).await.message.unwrap()), "added mine");
    let mine = call(Era::Legacy, "mine", json!({}));
    let text = describe(&server.post(&first, &mine).await.message.unwrap());
    assert_eq!(text, "I am mine, added at run time");
    let text = describe(&server.post(&second, &mine).await.message.unwrap());
    assert_eq!(text, "-32602: there is no tool `mine`");
    server.stop().await;
}

#[tokio::test]
async fn header_returns_a_header_of_the_request() {
    let server = Server::start().await;
    let session = server.open().await;
    for (era, headers) in [(Era::Legacy, session), (Era::Sessionless, modern("header"))] {
        let headers = format!("{headers}x-colour: green\r\nx-bytes: \u{fc}\r\n");
        for (name, want) in [
            ("X-Colour", "green"),
            ("x-none", "failed: the header is missing or not text"),
            ("x-bytes", "failed: the header is missing or not text"),
            ("no token", "failed: the header is missing or not text"),
        ] {
            let ask = call(era, "header", json!({"name": name}));
            assert_eq!(describe(&server.post(&headers, &ask).await.message.unwrap()), want, "{era:?}");
        }
    }
    server.stop().await;
}

#[tokio::test]
async fn modern_requests_share_one_list() {
    let server = Server::start().await;
    let change = call(Era::Sessionless, "change_tools", json!({"name": "ours"}));
    let reply = server.post(&modern("change_tools"), &change).await;
    assert_eq!((reply.status, reply.session), (200, None));
    assert_eq!(describe(&reply.message.unwrap()), "added ours");
    let ours = call(Era::Sessionless, "ours", json!({}));
    let text = describe(&server.post(&modern("ours"), &ours).await.message.unwrap());
    assert_eq!(text, "I am ours, added at run time");
    server.stop().await;
}

#[tokio::test]
async fn foreign_origins_are_rejected() {
    let server = Server::start().await;
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    for (headers, status) in [
        ("host: example.com\r\n", 403),
        ("origin: http://example.com\r\n", 403),
        // Accepted, and then refused because there is no session.
        ("origin: http://localhost:8080\r\n", 400),
        ("", 400),
    ] {
        assert_eq!(server.post(headers, &message).await.status, status, "{headers}");
    }
    server.stop().await;
    let refused = HttpServer::bind("0.0.0.0:0".parse().unwrap()).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "0.0.0.0:0 is not a loopback address: the demo server is for this machine only"
    );
}

#[tokio::test]
async fn exit_returns_the_code() {
    let mut server = Server::start().await;
    let message = call(Era::Sessionless, "exit", json!({"code": 3}));
    let (url, headers) = (server.url.clone(), modern("exit"));
    let ended = tokio::select! {
        _ = post(&url, &headers, &message) => panic!("`exit` was answered"),
        ended = &mut server.running => ended,
    };
    assert_eq!(ended.unwrap().unwrap(), ServeOutcome::Exited(3));
}
