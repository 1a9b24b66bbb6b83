//! An HTTP server whose responses are set by the test byte by byte, and that records the requests.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) verb: String,
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
    pub(crate) at: Instant,
}

impl ReceivedRequest {
    pub(crate) fn rpc(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// The JSON-RPC method, or the HTTP verb of a request without one.
    pub(crate) fn kind(&self) -> String {
        self.rpc()["method"].as_str().map_or_else(|| self.verb.clone(), Into::into)
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// The response with this result, as text.
    pub(crate) fn result(&self, result: Value) -> String {
        json!({"result": result, "jsonrpc": "2.0", "id": self.rpc()["id"]}).to_string()
    }
}

/// One action of the peer in response to a request.
#[derive(Clone)]
pub(crate) enum Step {
    Write(Vec<u8>),
    Wait(Duration),
    /// Closes the connection.
    Close,
    /// Waits until the client closes the connection.
    WaitForClose,
    /// Runs the steps of this channel until it is closed.
    Follow(Arc<tokio::sync::Mutex<UnboundedReceiver<Step>>>),
}

pub(crate) type Reply = Vec<Step>;

/// A whole response.
pub(crate) fn reply(status: u16, headers: &str, body: impl Into<Vec<u8>>) -> Reply {
    let body = body.into();
    let mut bytes =
        format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n{headers}\r\n", body.len()).into_bytes();
    bytes.extend(body);
    vec![Step::Write(bytes)]
}

pub(crate) fn json_reply(body: impl Into<Vec<u8>>) -> Reply {
    reply(200, "Content-Type: application/json\r\n", body)
}

/// The head of an event stream and these chunks, then the steps of `end`.
pub(crate) fn stream(chunks: &[&str], end: Reply) -> Reply {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut res = vec![Step::Write(head.into())];
    res.extend(chunks.iter().map(|it| Step::Write(format!("{:x}\r\n{it}\r\n", it.len()).into())));
    res.extend(end);
    res
}

/// The regular end of a stream.
pub(crate) fn end() -> Reply {
    vec![Step::Write(b"0\r\n\r\n".to_vec())]
}

/// The requests and connections of a peer.
#[derive(Default)]
pub(crate) struct Log {
    received: Mutex<Vec<ReceivedRequest>>,
    closed_by_client: AtomicUsize,
    open: AtomicUsize,
}

/// A running peer; it ends when dropped.
pub(crate) struct Peer {
    pub(crate) url: String,
    pub(crate) log: Arc<Log>,
    _serving: JoinSet<()>,
}

impl Log {
    pub(crate) fn count(&self, what: &str) -> usize {
        self.received.lock().unwrap().iter().filter(|request| request.kind() == what).count()
    }
}

impl Peer {
    pub(crate) async fn start(answer: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let log = Arc::new(Log::default());
        let mut serving = JoinSet::new();
        let seen = Arc::clone(&log);
        serving.spawn(async move {
            let answer = Arc::new(answer);
            let mut connections = JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                seen.open.fetch_add(1, Ordering::SeqCst);
                connections.spawn(async move {
                    serve(socket, &seen, answer.as_ref()).await;
                    seen.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Peer { url, log, _serving: serving }
    }

    pub(crate) fn received(&self) -> Vec<ReceivedRequest> {
        self.log.received.lock().unwrap().clone()
    }

    /// The kinds of the received requests, in order.
    pub(crate) fn summary(&self) -> String {
        self.received().iter().map(ReceivedRequest::kind).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn count(&self, what: &str) -> usize {
        self.log.count(what)
    }

    /// The first request of a kind.
    #[track_caller]
    pub(crate) fn first(&self, what: &str) -> ReceivedRequest {
        self.received()
            .into_iter()
            .find(|request| request.kind() == what)
            .unwrap_or_else(|| panic!("no {what} in {}", self.summary()))
    }

    /// The number of open connections.
    pub(crate) fn open(&self) -> usize {
        self.log.open.load(Ordering::SeqCst)
    }

    /// The number of connections that the client closed while the peer waited.
    pub(crate) fn closed_by_client(&self) -> usize {
        self.log.closed_by_client.load(Ordering::SeqCst)
    }
}

async fn serve(socket: TcpStream, log: &Log, answer: &(impl Fn(&ReceivedRequest) -> Reply + Sync)) {
    socket.set_nodelay(true).unwrap();
    let (reader, mut writer) = socket.into_split();
    let mut reader = BufReader::new(reader);
    while let Some(received) = read_request(&mut reader).await {
        log.received.lock().unwrap().push(received.clone());
        for step in answer(&received) {
            let is_open = match step {
                Step::Follow(steps) => {
                    let mut steps = steps.lock().await;
                    let mut is_open = true;
                    while is_open && let Some(step) = steps.recv().await {
                        is_open = run_step(step, &mut reader, &mut writer, log).await;
                    }
                    is_open
                }
                step => run_step(step, &mut reader, &mut writer, log).await,
            };
            if !is_open {
                return;
            }
        }
    }
}

/// Runs one step. Returns whether the connection stays open.
async fn run_step(
    step: Step,
    reader: &mut (impl AsyncReadExt + Unpin),
    writer: &mut (impl AsyncWriteExt + Unpin),
    log: &Log,
) -> bool {
    match step {
        Step::Write(bytes) => writer.write_all(&bytes).await.is_ok(),
        Step::Wait(time) => {
            tokio::time::sleep(time).await;
            true
        }
        Step::Close => false,
        Step::WaitForClose => {
            let mut rest = [0; 64];
            while reader.read(&mut rest).await.is_ok_and(|it| it > 0) {}
            log.closed_by_client.fetch_add(1, Ordering::SeqCst);
            false
        }
        Step::Follow(_) => panic!("what is followed leads nowhere else"),
    }
}

async fn read_request(reader: &mut (impl AsyncBufReadExt + Unpin)) -> Option<ReceivedRequest> {
    let mut line = String::new();
    reader.read_line(&mut line).await.ok().filter(|it| *it > 0)?;
    let mut words = line.split(' ');
    let (verb, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await.ok()?;
    Some(ReceivedRequest { verb, path, headers, body: String::from_utf8(body).unwrap(), at: Instant::now() })
}
