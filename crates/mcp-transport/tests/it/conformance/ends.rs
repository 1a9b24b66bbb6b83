//! Outcomes that differ between the transports: how a lost connection is reported, and a message over the limit.
//!
//! Over Streamable HTTP, each request has its own response, whose failure ends only its request. A line or
//! event that is too long is discarded as it arrives. A WebSocket message that is too large ends the
//! connection with close code 1009, which tells the server the reason.

use std::sync::Arc;
use std::time::Duration;

use mcp_host_model::{Endpoint, Limits, RawJson, Secret, StdioEndpoint};
use mcp_host_transport::testing::{Script, ServerAction, Value, json, scripted_server};
use mcp_host_transport::{CallError, CallOptions, ConnectError, Disconnect, DisconnectReason, Eras, Session};
use tokio::net::TcpSocket;

use super::peers::{PLAIN, Peer, TransportKind, UNUSUAL, connect};

/// The time limit of an outcome.
const BOUND: Duration = Duration::from_secs(30);

/// Checks the outcome on each transport, in both eras.
async fn check(run: impl AsyncFn(TransportKind, Eras) -> String, want: [(TransportKind, &str); 5]) {
    for (transport, want) in want {
        for eras in [Eras::Legacy, Eras::Modern] {
            let outcome = tokio::time::timeout(BOUND, run(transport, eras)).await;
            assert_eq!(outcome.as_deref(), Ok(want), "{transport:?}, {eras:?}");
        }
    }
}

/// The outcomes over stdio, SSE, WebSocket and Streamable HTTP.
fn on_each<'a>(
    stdio: &'a str,
    sse: &'a str,
    websocket: &'a str,
    http: &'a str,
) -> [(TransportKind, &'a str); 5] {
    use TransportKind::{Http, HttpJson, Sse, Stdio, WebSocket};
    [(Stdio, stdio), (Sse, sse), (WebSocket, websocket), (Http, http), (HttpJson, http)]
}

#[tokio::test]
async fn hd_117_lost_connection_in_a_call_is_reported() {
    let want = on_each(
        "closed: peer closed | not sent: peer closed",
        "closed: peer closed | not sent: peer closed",
        "closed: peer closed | not sent: peer closed",
        "outcome unknown | hello",
    );
    check(async |transport, eras| twice(transport, eras, &Limits::default(), &disconnecting()).await, want)
        .await;
    check(async |transport, eras| twice(transport, eras, &Limits::default(), &breaking()).await, want).await;
}

#[tokio::test]
async fn lost_connection_in_the_handshake_is_reported() {
    let script: Script = Arc::new(|_| vec![ServerAction::Disconnect]);
    check(
        async |transport, eras| twice(transport, eras, &Limits::default(), &script).await,
        on_each("peer closed", "peer closed", "peer closed", "refused"),
    )
    .await;
}

/// The endpoint is a program that exits at once, or a port without a listener as long as the socket is kept.
#[tokio::test]
async fn endpoint_without_a_server_is_reported() {
    let run = async |transport: TransportKind, eras| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let endpoint = if transport == TransportKind::Stdio {
            let mut endpoint = StdioEndpoint::new("sh");
            endpoint.args = vec![Secret::new("-c"), Secret::new("exit 3")];
            Endpoint::Stdio(endpoint)
        } else {
            transport.endpoint(socket.local_addr().unwrap().port())
        };
        unconnected(&connect(&endpoint, eras, &Limits::default()).await.err().unwrap())
    };
    check(run, on_each("peer closed", "refused", "refused", "refused")).await;
}

#[tokio::test]
async fn hd_117_call_to_a_server_that_ended_is_refused() {
    let run = async |transport: TransportKind, eras| {
        // The relay of this style ends the connections with the peer.
        let peer = Peer::start(transport, UNUSUAL, disconnecting()).await;
        let session = connect(&transport.endpoint(peer.port), eras, &Limits::default()).await.unwrap();
        drop(peer);
        let is_http = matches!(transport, TransportKind::Http | TransportKind::HttpJson);
        if !is_http {
            session.closed().await;
        }
        // Over HTTP, a call may detect that a pooled connection was closed; then it is not known whether it ran.
        // There are at most as many such calls as connections. The next call finds no peer.
        loop {
            let outcome = call(&session, "other").await;
            if !(is_http && outcome == "outcome unknown") {
                return outcome;
            }
        }
    };
    let want = on_each("not sent: peer closed", "not sent: peer closed", "not sent: peer closed", "refused");
    check(run, want).await;
}

#[tokio::test]
async fn message_over_the_limit_fails_its_call() {
    let script = calls(|message| vec![ServerAction::result(message, &text(&"x".repeat(200_000)))]);
    let mut limits = Limits::default();
    limits.message_bytes = 100_000;
    check(
        async |transport, eras| twice(transport, eras, &limits, &script).await,
        on_each(
            "too large | hello",
            "too large | hello",
            "closed: broken | not sent: broken",
            "too large | hello",
        ),
    )
    .await;
}

/// A server that disconnects in a call of `first`.
fn disconnecting() -> Script {
    calls(|_| vec![ServerAction::Disconnect])
}

/// A server that sends half of a response before it disconnects.
fn breaking() -> Script {
    calls(|message| {
        let ServerAction::Send(response) = ServerAction::result(message, &text("hello")) else {
            unreachable!("a result is sent");
        };
        vec![ServerAction::SendFirstHalf(response), ServerAction::Disconnect]
    })
}

/// A server that handles a call of `first` with `handle` and responds to others with `hello`.
fn calls(handle: fn(&Value) -> Vec<ServerAction>) -> Script {
    scripted_server(Vec::new(), move |message| match message["params"]["name"].as_str() {
        Some("first") => handle(message),
        Some(_) => vec![ServerAction::result(message, &text("hello"))],
        None => Vec::new(),
    })
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// Two calls in sequence: `outcome of the first | outcome of the second`, or the outcome of the handshake.
async fn twice(transport: TransportKind, eras: Eras, limits: &Limits, script: &Script) -> String {
    let peer = Peer::start(transport, PLAIN, Arc::clone(script)).await;
    match connect(&transport.endpoint(peer.port), eras, limits).await {
        Ok(session) => format!("{} | {}", call(&session, "first").await, call(&session, "other").await),
        Err(error) => unconnected(&error),
    }
}

async fn call(session: &Session, name: &str) -> String {
    match session.call_tool(name, &RawJson::empty_object(), CallOptions::default()).await {
        Ok(response) => response.value.text(),
        Err(CallError::Closed(end)) => format!("closed: {}", reason(&end)),
        Err(CallError::NotSent(end)) => format!("not sent: {}", reason(&end)),
        Err(CallError::OutcomeUnknown(_)) => "outcome unknown".to_owned(),
        Err(CallError::Unreachable(_) | CallError::Refused(_)) => "refused".to_owned(),
        Err(CallError::ResponseTooLarge(_)) => "too large".to_owned(),
        Err(other) => format!("{other:?}"),
    }
}

fn unconnected(error: &ConnectError) -> String {
    match error {
        ConnectError::Disconnected(end) => reason(end),
        ConnectError::Refused(_) => "refused".to_owned(),
        other => format!("{other:?}"),
    }
}

fn reason(end: &Disconnect) -> String {
    match &end.reason {
        DisconnectReason::PeerClosed => "peer closed".to_owned(),
        DisconnectReason::Broken(_) => "broken".to_owned(),
        other => format!("{other:?}"),
    }
}
