//! The upgrade request, and errors if it fails.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use mcp_host_model::Era;
use mcp_testkit::wait::wait_until;
use serde_json::json;
use tracing::field::{Field, Visit};

use super::*;

#[tokio::test]
async fn hd_123_upgrade_requests_the_mcp_subprotocol() {
    let peer = Peer::start(|message| modern(message, |message| vec![tool_result(message, "hello")])).await;
    let headers = vec![("Authorization".to_owned(), Secret::from("Bearer token-1"))];
    let session = TestClient { headers, ..TestClient::default() }.connect(&peer.url).await.unwrap();
    assert_eq!((session.era(), session.server().name.as_str()), (Era::Modern, "modern"));
    assert_eq!(call(&session).await.unwrap(), "hello");
    let head = &peer.heads()[0];
    for line in ["GET /ws HTTP/1.1", "Sec-Websocket-Protocol: mcp", "Authorization: Bearer token-1"] {
        assert!(head.lines().any(|it| it == line), "{line} in {head}");
    }
}

#[tokio::test]
async fn hd_124_calls_share_one_connection() {
    // Answers come in the reverse order, when all questions are there.
    let waiting = Mutex::new(Vec::new());
    let peer = Peer::start(move |message| {
        modern(message, |message| {
            let mut waiting = waiting.lock().unwrap();
            waiting.push(message.clone());
            match waiting.len() {
                10 => waiting
                    .iter()
                    .rev()
                    .map(|message| tool_result(message, &message["id"].to_string()))
                    .collect(),
                _ => vec![],
            }
        })
    })
    .await;
    let session = connect(&peer).await.unwrap();
    let calls: Vec<_> = (0..10).map(|_| call(&session)).collect();
    let mut answers = std::collections::HashSet::new();
    for answer in futures_util::future::join_all(calls).await {
        answers.insert(answer.unwrap());
    }
    assert_eq!((answers.len(), peer.heads().len(), peer.count("tools/call")), (10, 1, 10));
}

#[tokio::test]
async fn legacy_server_is_initialized() {
    let peer = Peer::start(|message| legacy(message, |message| vec![tool_result(message, "hello")])).await;
    let session = connect(&peer).await.unwrap();
    assert_eq!(session.era(), Era::Legacy);
    assert_eq!(call(&session).await.unwrap(), "hello");
    assert_eq!(peer.summary(), "server/discover initialize notifications/initialized tools/call");
    assert_eq!(peer.heads().len(), 1);
}

#[tokio::test]
async fn connection_closed_by_the_probe_is_opened_without_one() {
    for end in [|| Step::Close(1003, "what?"), || Step::Drop] {
        let peer = Peer::start(move |message| match message["method"].as_str() {
            Some("server/discover") => vec![end()],
            _ => legacy(message, |message| vec![tool_result(message, "hello")]),
        })
        .await;
        let session = connect(&peer).await.unwrap();
        assert_eq!(call(&session).await.unwrap(), "hello");
        assert_eq!(peer.heads().len(), 2);
    }
}

/// Collects what is told at warning level and above.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<String>>);

impl tracing::Subscriber for Warnings {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target().starts_with("mcp_host_transport") && *metadata.level() <= tracing::Level::WARN
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

impl Visit for Warnings {
    fn record_debug(&mut self, _: &Field, value: &dyn std::fmt::Debug) {
        writeln!(self.0.lock().unwrap(), "{value:?}").unwrap();
    }
}

#[tokio::test]
async fn missing_subprotocol_is_accepted_and_another_one_refused() {
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    let plan = |lines| Plan { opening: Opening::Open(lines), tls: None };
    let peer =
        Peer::planned(plan(""), |message| modern(message, |message| vec![tool_result(message, "hello")]))
            .await;
    assert_eq!(call(&connect(&peer).await.unwrap()).await.unwrap(), "hello");
    let want = format!("{} chose no subprotocol; assuming `mcp`\n", peer.url);
    assert_eq!(*warnings.0.lock().unwrap(), want);

    let peer = Peer::planned(plan("Sec-WebSocket-Protocol: graphql-ws\r\n"), |_| vec![]).await;
    let refused = connect(&peer).await.err().unwrap().to_string();
    let want = format!("{} did not open a WebSocket: it chose another subprotocol than `mcp`", peer.url);
    assert_eq!(refused, want);
    wait_until(|| peer.open() == 0).await;
}

/// What is said when a server answers the upgrade so; `URL` stands for its URL. Then the help that is given.
async fn check(opening: Opening, want: &str, help: &str) {
    check_within(Limits::default().connect, opening, want, help).await;
}

async fn check_within(connect: Duration, opening: Opening, want: &str, help: &str) {
    let peer = Peer::refusing(opening).await;
    let headers = vec![("X-Key".to_owned(), Secret::from("hunter22"))];
    let mut limits = Limits::default();
    limits.connect = connect;
    let error = TestClient { headers, limits: Some(limits), ..TestClient::default() }
        .connect(&peer.url)
        .await
        .err()
        .unwrap();
    assert!(matches!(error, ConnectError::Refused(_)), "{error:?}");
    assert_eq!(error.to_string().replace(&peer.url, "URL"), want);
    assert_eq!(error.help().unwrap_or_default(), help);
    wait_until(|| peer.open() == 0).await;
}

fn http(status: &str, body: &str) -> Opening {
    Opening::Refuse(format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
}

const AUTHORIZE: &str = "the server requires authorization: check the `Authorization` header";
const PATH: &str = "check the path of the URL: Streamable HTTP servers usually use /mcp, servers with server-sent \
    events /sse, WebSocket servers /ws";
const FAILS: &str = "the server, or a gateway in front of it, fails: check its log, and try again later";
const NO_SERVER: &str = "there is no MCP server at this URL: check its host, port and path";
const RUNNING: &str = "check that the server is running, and that host and port are correct";

#[tokio::test]
async fn hd_sc5_refused_upgrade_is_reported_without_secrets() {
    check(
        http("401 Unauthorized\r\nWWW-Authenticate: Bearer realm=\"secret\"", "no:\n hunter22\u{1b}[31m!"),
        "the server answered HTTP 401 Unauthorized: it requires authorization (Bearer): no: ***!",
        AUTHORIZE,
    )
    .await;
    check(
        http("403 Forbidden", ""),
        "the server answered HTTP 403 Forbidden: it requires authorization",
        AUTHORIZE,
    )
    .await;
    check(http("404 Not Found", "nope"), "the server answered HTTP 404 Not Found: nope", PATH).await;
    check(
        Opening::Refuse("HTTP/1.0 501 Unsupported method\r\n\r\nold".to_owned()),
        "the server answered HTTP 501 Not Implemented: old",
        FAILS,
    )
    .await;
    let error =
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "full"}}).to_string();
    let want = "the server answered HTTP 503 Service Unavailable: full (code -32000)";
    check(http("503 Service Unavailable", &error), want, FAILS).await;
    check(
        http("200 OK", "<html>"),
        "URL did not open a WebSocket: the server answered HTTP 200 OK: <html>",
        NO_SERVER,
    )
    .await;
    check(
        http("302 Found\r\nLocation: /login", ""),
        "URL did not open a WebSocket: the server answered HTTP 302 Found",
        "if you trust the new location, put its URL into the configuration",
    )
    .await;
}

#[tokio::test]
async fn invalid_upgrade_response_is_reported() {
    let none = |why: &str| format!("URL did not open a WebSocket: {why}");
    check(
        Opening::Refuse(String::new()),
        &none("the connection was closed before the end of the response"),
        RUNNING,
    )
    .await;
    check(
        Opening::Refuse("220 smtp\r\n".to_owned()),
        &none("its response is not valid HTTP (invalid HTTP version parsed)"),
        RUNNING,
    )
    .await;
    check(
        Opening::Refuse("HTTP/1.1 101".to_owned()),
        &none("the connection was closed before the end of the response"),
        RUNNING,
    )
    .await;
    check(
        http("101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade", ""),
        &none("its response switches to another protocol"),
        NO_SERVER,
    )
    .await;
    check(
        http("101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: no", ""),
        &none("its response does not match the request (Sec-WebSocket-Accept)"),
        NO_SERVER,
    )
    .await;
    let want = "cannot connect to URL: no response to the upgrade within 0.2 s";
    check_within(Duration::from_millis(200), Opening::Silent, want, RUNNING).await;
}

#[tokio::test]
async fn refused_connection_is_reported() {
    let address = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let url = format!("ws://user:hunter2@{address}/ws?key=hunter3");
    let error = TestClient::default().connect(&url).await.err().unwrap();
    assert_eq!(error.to_string(), format!("cannot connect to ws://{address}/ws: connection refused"));
    assert_eq!(error.help().unwrap(), RUNNING);
}

#[tokio::test]
async fn hd_042_only_ws_and_wss_are_accepted() {
    let error = TestClient::default().connect("http://127.0.0.1:1/ws").await.err().unwrap();
    assert_eq!(error.to_string(), "http://127.0.0.1:1/ws is not a ws or wss URL");
}

#[tokio::test]
async fn dropped_connect_closes_the_connection() {
    let peer = Peer::refusing(Opening::Silent).await;
    tokio::select! {
        _ = connect(&peer) => panic!("there is no answer"),
        () = wait_until(|| peer.heads().len() == 1) => {}
    }
    wait_until(|| peer.open() == 0).await;
}
