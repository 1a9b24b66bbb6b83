//! HTTP/2, which a server over TLS may choose: all requests share one connection, and each is a stream that ends
//! separately.

use std::collections::HashSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::future::join_all;
use h2::RecvStream;
use h2::server::SendResponse;
use http::{Request, Response};
use mcp_host_model::{Endpoint, RawJson, UrlEndpoint};
use mcp_host_transport::{Authorities, CallError, CallOptions, Session};
use mcp_testkit::wait::wait_until;
use rustls::ServerConfig;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::tls::{Company, Issuance, Valid, company, connect};

/// The size of a large response: more than the initial flow-control window of a stream.
const LARGE: usize = 4 << 20;

/// An HTTP/2 server over TLS, and the authorities of a client that trusts it.
struct Server {
    url: String,
    authorities: Authorities,
    seen: Arc<Seen>,
    _serving: JoinSet<()>,
}

/// The observed events.
#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    calls: AtomicUsize,
    given_up: AtomicUsize,
    /// Makes the server refuse further requests on the connection.
    leave: Notify,
    /// Completes waiting requests.
    go: Notify,
}

impl Server {
    async fn start() -> Server {
        let Company { authority, acceptor } = company(&["127.0.0.1"], Valid::Now, Issuance::Authority);
        let mut config = ServerConfig::clone(acceptor.config());
        config.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}/mcp", listener.local_addr().unwrap());
        let seen = Arc::new(Seen::default());
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, acceptor, Arc::clone(&seen)));
        let authorities = Authorities::from_pem(authority.as_bytes()).unwrap();
        Server { url, authorities, seen, _serving: serving }
    }

    async fn connect(&self) -> Session {
        let endpoint = Endpoint::Http(UrlEndpoint::new(self.url.parse().unwrap()));
        connect(endpoint, self.authorities.clone()).await.unwrap()
    }

    fn count(&self, what: impl Fn(&Seen) -> &AtomicUsize) -> usize {
        what(&self.seen).load(Ordering::SeqCst)
    }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, seen: Arc<Seen>) {
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        let (acceptor, seen) = (acceptor.clone(), Arc::clone(&seen));
        connections.spawn(async move {
            let mut connection = h2::server::handshake(acceptor.accept(socket).await.unwrap()).await.unwrap();
            seen.connections.fetch_add(1, Ordering::SeqCst);
            let mut answers = JoinSet::new();
            loop {
                tokio::select! {
                    request = connection.accept() => match request {
                        Some(Ok((request, respond))) => {
                            answers.spawn(answer(request, respond, Arc::clone(&seen)));
                        }
                        Some(Err(_)) | None => return,
                    },
                    () = seen.leave.notified() => connection.graceful_shutdown(),
                }
            }
        });
    }
}

/// Answers a call by the name of its tool.
async fn answer(request: Request<RecvStream>, mut respond: SendResponse<Bytes>, seen: Arc<Seen>) {
    let mut stream = request.into_body();
    let mut body = Vec::new();
    while let Some(part) = stream.data().await {
        let part = part.unwrap();
        stream.flow_control().release_capacity(part.len()).unwrap();
        body.extend_from_slice(&part);
    }
    let message: Value = serde_json::from_slice(&body).unwrap();
    let text = |it: &str| json!({"content": [{"type": "text", "text": it}]});
    let mut kind = "application/json";
    let result = match (message["method"].as_str().unwrap(), message["params"]["name"].as_str()) {
        ("server/discover", _) => json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {},
        }),
        (_, tool) => {
            seen.calls.fetch_add(1, Ordering::SeqCst);
            match tool.unwrap() {
                "echo" => text(message["params"]["arguments"]["text"].as_str().unwrap()),
                "events" => {
                    kind = "text/event-stream";
                    text("in an event")
                }
                "large" => text(&"x".repeat(LARGE)),
                "wait" => {
                    seen.go.notified().await;
                    text("gone on")
                }
                _ => {
                    let reason = poll_fn(|context| respond.poll_reset(context)).await.unwrap();
                    assert_eq!(reason, h2::Reason::CANCEL);
                    seen.given_up.fetch_add(1, Ordering::SeqCst);
                    return;
                }
            }
        }
    };
    let reply = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
    let reply = if kind == "application/json" { reply } else { format!("data: {reply}\n\n") };
    let head = Response::builder().header("content-type", kind).body(()).unwrap();
    respond.send_response(head, false).unwrap().send_data(reply.into(), true).unwrap();
}

async fn call(session: &Session, tool: &str, arguments: Value) -> Result<String, CallError> {
    let arguments = RawJson::from_value(&arguments).unwrap();
    let answer = session.call_tool(tool, &arguments, CallOptions::default()).await?;
    Ok(answer.value.text())
}

#[tokio::test]
async fn concurrent_calls_share_one_connection() {
    let server = Server::start().await;
    let session = server.connect().await;
    let calls = (0..64).map(|it| call(&session, "echo", json!({"text": it.to_string()})));
    let results: HashSet<String> = join_all(calls).await.into_iter().map(Result::unwrap).collect();
    assert_eq!(results, (0..64).map(|it| it.to_string()).collect());
    assert_eq!(call(&session, "events", json!({})).await.unwrap(), "in an event");
    assert_eq!(call(&session, "large", json!({})).await.unwrap().len(), LARGE);
    // The request is also larger than the flow-control window of a stream.
    let text = "y".repeat(LARGE);
    assert_eq!(call(&session, "echo", json!({"text": text})).await.unwrap(), text);
    assert_eq!(server.count(|it| &it.connections), 1);
}

#[tokio::test]
async fn dropped_call_resets_its_stream_only() {
    let server = Server::start().await;
    let session = server.connect().await;
    let waiting = call(&session, "wait", json!({}));
    let others = async {
        tokio::select! {
            called = call(&session, "hang", json!({})) => panic!("{called:?}"),
            () = wait_until(|| server.count(|it| &it.calls) == 2) => {}
        }
        wait_until(|| server.count(|it| &it.given_up) == 1).await;
        server.seen.go.notify_one();
    };
    let (waited, ()) = tokio::join!(waiting, others);
    assert_eq!(waited.unwrap(), "gone on");
    assert_eq!(server.count(|it| &it.connections), 1);
}

#[tokio::test]
async fn goaway_finishes_streams_and_opens_another_connection() {
    let server = Server::start().await;
    let session = server.connect().await;
    let waiting = call(&session, "wait", json!({}));
    let others = async {
        wait_until(|| server.count(|it| &it.calls) == 1).await;
        server.seen.leave.notify_one();
        // Until the client knows of the refusal, a call may still be sent on the old connection. It is sent again
        // if the server did not process it.
        while server.count(|it| &it.connections) == 1 {
            assert_eq!(call(&session, "echo", json!({"text": "here"})).await.unwrap(), "here");
        }
        server.seen.go.notify_one();
    };
    let (waited, ()) = tokio::join!(waiting, others);
    assert_eq!(waited.unwrap(), "gone on");
    assert_eq!(call(&session, "echo", json!({"text": "there"})).await.unwrap(), "there");
    assert_eq!(server.count(|it| &it.connections), 2);
}
