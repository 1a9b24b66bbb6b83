//! A WebSocket server whose actions are set by the test, over TCP or TLS.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};

/// The response to an upgrade request.
#[derive(Clone)]
pub(crate) enum Opening {
    /// Opens a WebSocket, with these additional header lines.
    Open(&'static str),
    /// Writes this and closes the connection.
    Refuse(String),
    /// Does not respond.
    Silent,
}

/// One action of the peer in response to a message.
pub(crate) enum Step {
    /// Sends a text.
    Text(String),
    /// Sends this frame.
    Frame(Message),
    /// Writes bytes without framing.
    Raw(Vec<u8>),
    /// Closes with a code and a reason, and waits for the close frame of the client.
    Close(u16, &'static str),
    /// Drops the connection without a close frame.
    Drop,
    /// Stops reading and writing.
    Stall,
}

pub(crate) type Steps = Vec<Step>;

#[derive(Default)]
struct Log {
    heads: Mutex<Vec<String>>,
    messages: Mutex<Vec<Value>>,
    /// How the other side ended each connection.
    ends: Mutex<Vec<String>>,
    pongs: AtomicUsize,
    open: AtomicUsize,
}

/// A running peer; it ends when dropped.
pub(crate) struct Peer {
    pub(crate) url: String,
    log: Arc<Log>,
    _serving: JoinSet<()>,
}

/// The settings of a peer.
pub(crate) struct Plan {
    pub(crate) opening: Opening,
    pub(crate) tls: Option<TlsAcceptor>,
}

impl Peer {
    /// A peer that opens a WebSocket correctly and reacts to each message with the steps of `answer`.
    pub(crate) async fn start(answer: impl Fn(&Value) -> Steps + Send + Sync + 'static) -> Peer {
        let opening = Opening::Open("Sec-WebSocket-Protocol: mcp\r\n");
        Peer::planned(Plan { opening, tls: None }, answer).await
    }

    /// A peer that does not open one.
    pub(crate) async fn refusing(opening: Opening) -> Peer {
        Peer::planned(Plan { opening, tls: None }, |_| vec![]).await
    }

    pub(crate) async fn planned(
        plan: Plan,
        answer: impl Fn(&Value) -> Steps + Send + Sync + 'static,
    ) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let scheme = if plan.tls.is_some() { "wss" } else { "ws" };
        let url = format!("{scheme}://127.0.0.1:{}/ws", listener.local_addr().unwrap().port());
        let log = Arc::new(Log::default());
        let seen = Arc::clone(&log);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let (plan, answer) = (Arc::new(plan), Arc::new(answer));
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let (plan, answer, seen) = (Arc::clone(&plan), Arc::clone(&answer), Arc::clone(&seen));
                socket.set_nodelay(true).unwrap();
                connections.spawn(async move {
                    seen.open.fetch_add(1, Ordering::SeqCst);
                    match &plan.tls {
                        None => serve(socket, &plan.opening, &seen, &*answer).await,
                        // A client that does not trust us leaves here.
                        Some(tls) => {
                            if let Ok(secured) = tls.accept(socket).await {
                                serve(secured, &plan.opening, &seen, &*answer).await;
                            }
                        }
                    }
                    seen.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Peer { url, log, _serving: serving }
    }

    /// The heads of all requests for an upgrade.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.log.heads.lock().unwrap().clone()
    }

    /// The methods that were received, in order.
    pub(crate) fn summary(&self) -> String {
        let messages = self.log.messages.lock().unwrap();
        messages
            .iter()
            .map(|message| message["method"].as_str().unwrap_or("answer"))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// The first message of a method.
    #[track_caller]
    pub(crate) fn first(&self, method: &str) -> Value {
        let messages = self.log.messages.lock().unwrap();
        messages
            .iter()
            .find(|message| message["method"] == method)
            .unwrap_or_else(|| panic!("no {method}"))
            .clone()
    }

    pub(crate) fn count(&self, method: &str) -> usize {
        self.log.messages.lock().unwrap().iter().filter(|message| message["method"] == method).count()
    }

    /// How the other side ended the closed connections.
    pub(crate) fn ends(&self) -> String {
        self.log.ends.lock().unwrap().join(", ")
    }

    pub(crate) fn pongs(&self) -> usize {
        self.log.pongs.load(Ordering::SeqCst)
    }

    /// The number of open connections.
    pub(crate) fn open(&self) -> usize {
        self.log.open.load(Ordering::SeqCst)
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Send + Unpin,
    opening: &Opening,
    log: &Log,
    answer: &(impl Fn(&Value) -> Steps + Sync),
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8(head).unwrap();
    log.heads.lock().unwrap().push(head.clone());
    let key = head.lines().find_map(|it| it.strip_prefix("Sec-Websocket-Key: ")).unwrap();
    match opening {
        Opening::Open(more) => {
            let accept = derive_accept_key(key.as_bytes());
            let head = format!(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: keep-alive, \
                 Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n{more}\r\n"
            );
            if stream.write_all(head.as_bytes()).await.is_err() {
                return;
            }
        }
        Opening::Refuse(response) => {
            let _ = stream.write_all(response.as_bytes()).await;
            let _ = stream.shutdown().await;
            return;
        }
        Opening::Silent => {
            let _ = stream.read_u8().await;
            return;
        }
    }
    let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
    let end = talk(&mut socket, log, answer).await;
    log.ends.lock().unwrap().push(end);
}

async fn talk(
    socket: &mut WebSocketStream<impl AsyncRead + AsyncWrite + Unpin>,
    log: &Log,
    answer: &impl Fn(&Value) -> Steps,
) -> String {
    loop {
        let message = match socket.next().await {
            None => return "closed".to_owned(),
            Some(Err(error)) => return error.to_string(),
            Some(Ok(Message::Close(frame))) => {
                let _ = socket.flush().await;
                return format!("close {}", frame.map_or(0, |it| u16::from(it.code)));
            }
            Some(Ok(Message::Pong(_))) => {
                log.pongs.fetch_add(1, Ordering::SeqCst);
                continue;
            }
            Some(Ok(Message::Text(text))) => serde_json::from_str::<Value>(&text).unwrap(),
            Some(Ok(other)) => panic!("{other:?}"),
        };
        log.messages.lock().unwrap().push(message.clone());
        for step in answer(&message) {
            let done = match step {
                Step::Text(text) => socket.send(Message::Text(text.into())).await.is_ok(),
                Step::Frame(message) => socket.send(message).await.is_ok(),
                Step::Raw(bytes) => socket.get_mut().write_all(&bytes).await.is_ok(),
                Step::Close(code, reason) => {
                    let frame = CloseFrame { code: code.into(), reason: reason.into() };
                    socket.send(Message::Close(Some(frame))).await.is_ok()
                }
                Step::Drop => return "dropped".to_owned(),
                Step::Stall => std::future::pending().await,
            };
            if !done {
                return "gone".to_owned();
            }
        }
    }
}

/// The answer to a request.
fn result(message: &Value, result: Value) -> Step {
    Step::Text(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string())
}

/// The answer to a call of a tool.
pub(crate) fn tool_result(message: &Value, text: &str) -> Step {
    result(message, json!({"content": [{"type": "text", "text": text}]}))
}

/// A modern server: tells of itself, and leaves the rest to `rest`.
pub(crate) fn modern(message: &Value, rest: impl Fn(&Value) -> Steps) -> Steps {
    match message["method"].as_str() {
        Some("server/discover") => vec![result(
            message,
            json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "modern", "version": "1"}},
            }),
        )],
        _ => rest(message),
    }
}

/// A legacy server, likewise.
pub(crate) fn legacy(message: &Value, rest: impl Fn(&Value) -> Steps) -> Steps {
    match message["method"].as_str() {
        Some("server/discover") => {
            let error = json!({"code": -32602, "message": "Invalid request parameters"});
            vec![Step::Text(json!({"jsonrpc": "2.0", "id": message["id"], "error": error}).to_string())]
        }
        Some("initialize") => vec![result(
            message,
            json!({
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "legacy", "version": "1"},
            }),
        )],
        Some("notifications/initialized" | "notifications/cancelled") => vec![],
        _ => rest(message),
    }
}
