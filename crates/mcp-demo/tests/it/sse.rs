//! HTTP with server-sent events: sessions, bounds and rejected requests.

use mcp_host_demo::{HttpServer, ServeOutcome};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    sync::oneshot,
    task::JoinHandle,
};

use crate::client::{BOTH, Era, describe};

struct Server {
    address: String,
    stop: oneshot::Sender<()>,
    running: JoinHandle<Result<ServeOutcome, mcp_host_demo::DemoError>>,
}

/// A client with its event stream.
struct Client {
    era: Era,
    address: String,
    stream: BufReader<TcpStream>,
    endpoint: String,
}

impl Server {
    async fn start() -> Server {
        let server = HttpServer::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = server.address().to_string();
        assert_eq!(server.sse_url(), format!("http://{address}/sse"));
        let (stop, stopped) = oneshot::channel::<()>();
        let running = tokio::spawn(server.serve(async { drop(stopped.await) }));
        Server { address, stop, running }
    }
}

/// Sends one request on a new connection; returns the status. `headers` are complete lines.
async fn status(address: &str, request: &str, headers: &str, body: &str) -> u16 {
    let host = if headers.starts_with("host:") { String::new() } else { format!("host: {address}\r\n") };
    let length = body.len();
    let text = format!(
        "{request} HTTP/1.1\r\n{host}connection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.unwrap();
    std::str::from_utf8(&head[9..]).unwrap().parse().unwrap()
}

impl Client {
    async fn open(server: &Server, era: Era) -> Client {
        let address = server.address.clone();
        let mut stream = BufReader::new(TcpStream::connect(&address).await.unwrap());
        stream.write_all(format!("GET /sse HTTP/1.1\r\nhost: {address}\r\n\r\n").as_bytes()).await.unwrap();
        let mut res = Client { era, address, stream, endpoint: String::new() };
        res.endpoint = res.event("endpoint").await.expect("a place for messages");
        if era == Era::Legacy {
            let params = json!({
                "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"},
            });
            assert_eq!(res.request("initialize", params).await["result"]["protocolVersion"], "2024-11-05");
            assert_eq!(
                res.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await,
                202
            );
        }
        res
    }

    /// The data of the next event, which has this type; `None` at the end of the stream.
    async fn event(&mut self, want: &str) -> Option<String> {
        let mut kind = String::new();
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).await.unwrap() == 0 {
                return None;
            }
            if let Some(text) = line.strip_prefix("event: ") {
                kind = text.trim().to_owned();
            }
            if let Some(text) = line.strip_prefix("data: ") {
                assert_eq!(kind, want);
                return Some(text.trim_end().to_owned());
            }
        }
    }

    async fn post(&self, message: &Value) -> u16 {
        let headers = "x-colour: green\r\n";
        status(&self.address, &format!("POST {}", self.endpoint), headers, &message.to_string()).await
    }

    async fn request(&mut self, method: &str, params: Value) -> Value {
        let params = self.era.add_meta(params, &json!({}));
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        assert_eq!(self.post(&message).await, 202);
        loop {
            let answer: Value = serde_json::from_str(&self.event("message").await.unwrap()).unwrap();
            if answer["id"] == 1 {
                return answer;
            }
        }
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> String {
        describe(&self.request("tools/call", json!({"name": tool, "arguments": arguments})).await)
    }
}

#[tokio::test]
async fn each_client_has_its_own_list() {
    let server = Server::start().await;
    for era in BOTH {
        let mut first = Client::open(&server, era).await;
        let mut second = Client::open(&server, era).await;
        assert_ne!(first.endpoint, second.endpoint);
        assert_eq!(first.call("change_tools", json!({"name": "mine"})).await, "added mine");
        assert_eq!(first.call("mine", json!({})).await, "I am mine, added at run time");
        assert_eq!(second.call("mine", json!({})).await, "-32602: there is no tool `mine`");
        assert_eq!(second.call("header", json!({"name": "X-Colour"})).await, "green");
    }
    server.stop.send(()).unwrap();
    assert_eq!(server.running.await.unwrap().unwrap(), ServeOutcome::Closed);
}

#[tokio::test]
async fn shutdown_ends_streams_and_closed_stream_ends_the_session() {
    let server = Server::start().await;
    let mut client = Client::open(&server, Era::Legacy).await;
    let gone = Client::open(&server, Era::Legacy).await;
    let (address, endpoint) = (gone.address.clone(), gone.endpoint.clone());
    drop(gone);
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    while status(&address, &format!("POST {endpoint}"), "", ping).await != 404 {
        tokio::task::yield_now().await;
    }
    server.stop.send(()).unwrap();
    assert_eq!(client.event("message").await, None);
    assert_eq!(server.running.await.unwrap().unwrap(), ServeOutcome::Closed);
}

#[tokio::test]
async fn foreign_origins_and_invalid_messages_are_rejected() {
    let server = Server::start().await;
    let client = Client::open(&server, Era::Legacy).await;
    let post = format!("POST {}", client.endpoint);
    for (request, headers, body, want) in [
        ("GET /sse", "host: example.com\r\n", "", 403),
        ("GET /sse", "origin: http://example.com\r\n", "", 403),
        ("GET /sse", "origin: null\r\n", "", 403),
        ("GET /sse", "origin: http://localhost:8080\r\n", "", 200),
        ("POST /sse", "", "{}", 405),
        ("POST /messages", "", "{}", 404),
        ("POST /messages?session=1", "", "{}", 404),
        (&post, "", "{", 400),
        (&post, "host: example.com\r\n", "{}", 403),
        (&post, "origin: http://127.0.0.1.evil.example\r\n", "{}", 403),
    ] {
        assert_eq!(status(&server.address, request, headers, body).await, want, "{request} {headers}{body}");
    }
}

#[tokio::test]
async fn number_of_clients_is_bounded() {
    let server = Server::start().await;
    let mut clients = Vec::new();
    for _ in 0..64 {
        clients.push(Client::open(&server, Era::Sessionless).await);
    }
    assert_eq!(status(&server.address, "GET /sse", "", "").await, 503);
}

#[tokio::test]
async fn exit_returns_the_code() {
    let mut server = Server::start().await;
    let mut client = Client::open(&server, Era::Legacy).await;
    let ended = tokio::select! {
        answer = client.call("exit", json!({"code": 3})) => panic!("`exit` was answered: {answer}"),
        ended = &mut server.running => ended,
    };
    assert_eq!(ended.unwrap().unwrap(), ServeOutcome::Exited(3));
}
