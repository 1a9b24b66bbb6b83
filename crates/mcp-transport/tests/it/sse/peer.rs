//! A server of 2024-11-05 whose responses to a GET and to each POST are set by the test.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::Response;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::broadcast;
use tokio::task::JoinSet;

/// A request as it was received.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) verb: String,
    /// The path, with the query.
    pub(crate) path: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
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

    /// The event that answers with this result.
    pub(crate) fn result(&self, result: Value) -> String {
        message(&json!({"jsonrpc": "2.0", "id": self.rpc()["id"], "result": result}))
    }
}

/// A message as an event.
pub(crate) fn message(message: &Value) -> String {
    format!("event: message\ndata: {message}\n\n")
}

/// What the peer does about a request.
#[derive(Clone)]
pub(crate) struct Reply {
    wait: Wait,
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Content,
    /// What goes onto all streams first, in order.
    push: Vec<Push>,
}

#[derive(Clone)]
enum Wait {
    Not,
    For(Duration),
    Ever,
}

#[derive(Clone)]
enum Content {
    Text(String),
    /// These, and whatever is pushed.
    Stream(Vec<String>),
}

/// What is done to the streams.
#[derive(Clone)]
enum Push {
    Text(String),
    End,
    Break,
}

/// A response without a stream.
pub(crate) fn reply(status: u16, body: impl Into<String>) -> Reply {
    Reply { wait: Wait::Not, status, headers: Vec::new(), body: Content::Text(body.into()), push: Vec::new() }
}

/// A message was taken.
pub(crate) fn taken() -> Reply {
    reply(202, "Accepted")
}

/// A stream that begins with this text, and brings what is pushed.
pub(crate) fn stream_of(text: &str) -> Reply {
    let body = Content::Stream(vec![text.to_owned()]);
    Reply { body, ..reply(200, "").header("content-type", "text/event-stream; charset=utf-8") }
}

/// A stream that names the place for messages.
pub(crate) fn stream() -> Reply {
    stream_of("event: endpoint\ndata: /messages?session=1\n\n")
}

impl Reply {
    pub(crate) fn header(mut self, name: &'static str, value: impl Into<String>) -> Reply {
        self.headers.push((name, value.into()));
        self
    }

    /// First says this on all streams.
    pub(crate) fn push(mut self, text: impl Into<String>) -> Reply {
        self.push.push(Push::Text(text.into()));
        self
    }

    /// First ends all streams.
    pub(crate) fn ending(mut self) -> Reply {
        self.push.push(Push::End);
        self
    }

    /// First breaks all streams off.
    pub(crate) fn breaking(mut self) -> Reply {
        self.push.push(Push::Break);
        self
    }

    /// Answers so much later. What is pushed is pushed at once.
    pub(crate) fn after(self, wait: Duration) -> Reply {
        Reply { wait: Wait::For(wait), ..self }
    }

    /// Never answers. What is pushed is pushed.
    pub(crate) fn never(self) -> Reply {
        Reply { wait: Wait::Ever, ..self }
    }
}

#[derive(Default)]
struct Log {
    received: Mutex<Vec<ReceivedRequest>>,
    /// POSTs that are being answered, and the most there ever were.
    posting: AtomicUsize,
    most_posting: AtomicUsize,
    streams: AtomicUsize,
}

/// Adds one to a count while it exists.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(count: &'a AtomicUsize) -> Counted<'a> {
        count.fetch_add(1, Ordering::SeqCst);
        Counted(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A stream that is open.
struct OpenStream(Arc<Log>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A running peer; it ends when dropped.
pub(crate) struct Peer {
    pub(crate) url: String,
    log: Arc<Log>,
    _serving: JoinSet<()>,
}

impl Peer {
    pub(crate) async fn start(answer: impl Fn(&ReceivedRequest) -> Reply + Send + Sync + 'static) -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/sse", listener.local_addr().unwrap());
        let log = Arc::new(Log::default());
        let (pushes, _) = broadcast::channel(1024);
        let (seen, answer) = (Arc::clone(&log), Arc::new(answer));
        let app = Router::new().fallback(move |request: Request| {
            let (seen, answer, pushes) = (Arc::clone(&seen), Arc::clone(&answer), pushes.clone());
            async move { respond(request, &seen, answer.as_ref(), pushes).await }
        });
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Peer { url, log, _serving: serving }
    }

    pub(crate) fn received(&self) -> Vec<ReceivedRequest> {
        self.log.received.lock().unwrap().clone()
    }

    /// What was received, in order, in words.
    pub(crate) fn summary(&self) -> String {
        self.received().iter().map(ReceivedRequest::kind).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn count(&self, what: &str) -> usize {
        self.received().iter().filter(|request| request.kind() == what).count()
    }

    /// The first request of a kind.
    #[track_caller]
    pub(crate) fn first(&self, what: &str) -> ReceivedRequest {
        let found = self.received().into_iter().find(|request| request.kind() == what);
        found.unwrap_or_else(|| panic!("no {what} in {}", self.summary()))
    }

    /// The number of POSTs that wait for their response.
    pub(crate) fn posting(&self) -> usize {
        self.log.posting.load(Ordering::SeqCst)
    }

    /// The largest number of POSTs that waited at once.
    pub(crate) fn most_posting(&self) -> usize {
        self.log.most_posting.load(Ordering::SeqCst)
    }

    /// The number of open streams.
    pub(crate) fn streams(&self) -> usize {
        self.log.streams.load(Ordering::SeqCst)
    }
}

async fn respond(
    request: Request,
    log: &Arc<Log>,
    answer: &(impl Fn(&ReceivedRequest) -> Reply + Sync),
    pushes: broadcast::Sender<Push>,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    // A message of which the client gave up the rest was never received.
    let Ok(body) = axum::body::to_bytes(body, usize::MAX).await else { return Response::new(Body::empty()) };
    let text = |it: &axum::http::HeaderValue| String::from_utf8_lossy(it.as_bytes()).into_owned();
    let received = ReceivedRequest {
        verb: head.method.to_string(),
        path: head.uri.to_string(),
        headers: head.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
        body: String::from_utf8(body.to_vec()).unwrap(),
    };
    let posting = (received.verb == "POST").then(|| Counted::new(&log.posting));
    log.most_posting.fetch_max(log.posting.load(Ordering::SeqCst), Ordering::SeqCst);
    let Reply { wait, status, headers, body, push } = answer(&received);
    // Who sees that a message came may rely on it that its stream is there.
    let body = match body {
        Content::Text(text) => Body::from(text),
        Content::Stream(texts) => streamed(texts, pushes.subscribe(), log),
    };
    log.received.lock().unwrap().push(received);
    for push in push {
        let _ = pushes.send(push);
    }
    match wait {
        Wait::Not => {}
        Wait::For(wait) => tokio::time::sleep(wait).await,
        Wait::Ever => std::future::pending().await,
    }
    drop(posting);
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(name, value);
    }
    response.body(body).unwrap()
}

fn streamed(texts: Vec<String>, pushes: broadcast::Receiver<Push>, log: &Arc<Log>) -> Body {
    log.streams.fetch_add(1, Ordering::SeqCst);
    let begin = stream::iter(texts).map(|it| Ok::<_, std::io::Error>(Bytes::from(it)));
    let rest = stream::unfold((pushes, OpenStream(Arc::clone(log))), |(mut pushes, open)| async move {
        match pushes.recv().await {
            Ok(Push::Text(text)) => Some((Ok(Bytes::from(text)), (pushes, open))),
            Ok(Push::Break) => Some((Err(std::io::Error::other("broken")), (pushes, open))),
            Ok(Push::End) | Err(_) => None,
        }
    });
    Body::from_stream(begin.chain(rest))
}
