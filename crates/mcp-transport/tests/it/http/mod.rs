//! Streamable HTTP against a peer that misbehaves.

mod caller_tasks;
mod cancel;
mod encodings;
mod eras;
mod faults;
mod header_params;
pub(crate) mod peer;
mod sessions;
mod streams;

use std::time::Duration;

use mcp_host_model::{Endpoint, Limits, RawJson, Secret, UrlEndpoint};
use mcp_host_transport::{
    CallError, CallOptions, ConnectError, DialOptions, Eras, RetryPolicy, Session, SessionOptions, dialer,
};
use serde_json::json;

use peer::{Peer, ReceivedRequest, Reply, json_reply, reply};

/// The settings of a connection.
#[derive(Default)]
struct TestClient {
    eras: Option<Eras>,
    limits: Option<Limits>,
    headers: Vec<(String, Secret)>,
    session_id: Option<Secret>,
    keep_session: bool,
    handlers: mcp_host_transport::Handlers,
}

impl TestClient {
    fn legacy() -> TestClient {
        TestClient { eras: Some(Eras::Legacy), ..TestClient::default() }
    }

    async fn connect(self, url: &str) -> Result<Session, ConnectError> {
        let TestClient { eras, limits, headers, session_id, keep_session, handlers } = self;
        let mut endpoint = UrlEndpoint::new(url.parse().unwrap());
        endpoint.headers = headers;
        endpoint.session_id = session_id;
        endpoint.terminate_on_close = !keep_session;
        let limits = limits.unwrap_or_default();
        #[cfg_attr(
            not(any(feature = "stdio", feature = "sse")),
            expect(clippy::needless_update, reason = "with other wires there are more options")
        )]
        let mut options = DialOptions::default();
        options.limits = limits.clone();
        let dial = dialer(&Endpoint::Http(endpoint), &options)?;
        let mut options = SessionOptions::default();
        options.limits = limits;
        options.eras = eras.unwrap_or(Eras::Both);
        options.handlers = handlers;
        Session::connect(dial, options).await
    }
}

/// A modern server. `rest` handles all messages except `server/discover`.
fn modern(received: &ReceivedRequest, rest: impl Fn(&ReceivedRequest) -> Reply) -> Reply {
    match received.kind().as_str() {
        "server/discover" => json_reply(received.result(json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "modern", "version": "1"}},
        }))),
        _ => rest(received),
    }
}

/// A legacy server with the session id `session` and without a listening stream. `rest` handles all other messages.
pub(crate) fn legacy(
    received: &ReceivedRequest,
    session: &str,
    rest: impl Fn(&ReceivedRequest) -> Reply,
) -> Reply {
    match received.kind().as_str() {
        "server/discover" => not_initialized(),
        "initialize" => {
            let result = json!({
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": true}},
                "serverInfo": {"name": "legacy", "version": "1"},
            });
            reply(
                200,
                &format!("Content-Type: application/json\r\nMcp-Session-Id: {session}\r\n"),
                received.result(result),
            )
        }
        "notifications/initialized" | "notifications/cancelled" => reply(202, "", ""),
        "GET" => reply(405, "", ""),
        "DELETE" => reply(200, "", ""),
        _ => rest(received),
    }
}

/// The response of server-everything to a request without a session.
fn not_initialized() -> Reply {
    let body = r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}"#;
    reply(400, "Content-Type: application/json\r\n", body)
}

/// The response to a tool call.
pub(crate) fn tool_result(received: &ReceivedRequest, text: &str) -> String {
    received.result(json!({"content": [{"type": "text", "text": text}]}))
}

/// Calls the tool `echo`; the text of the result, or the error.
async fn call(session: &Session) -> Result<String, CallError> {
    call_with(session, CallOptions::default()).await
}

async fn call_again_if_lost(session: &Session) -> Result<String, CallError> {
    call_with(session, {
        let mut options = CallOptions::default();
        options.retry = RetryPolicy::Once;
        options
    })
    .await
}

async fn call_with(session: &Session, options: CallOptions) -> Result<String, CallError> {
    let answer = session.call_tool("echo", &RawJson::empty_object(), options).await?;
    Ok(answer.value.text())
}
