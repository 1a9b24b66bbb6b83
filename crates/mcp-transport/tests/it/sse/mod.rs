//! HTTP with server-sent events against a peer that misbehaves.

mod closing;
mod eras;
mod events;
#[cfg(feature = "http")]
mod fallback;
mod faults;
mod opening;
pub(crate) mod peer;
mod posts;

use std::time::Duration;

use mcp_host_model::{Endpoint, Limits, RawJson, Secret, UrlEndpoint};
use mcp_host_transport::{
    CallError, CallOptions, ConnectError, DialOptions, Eras, Session, SessionOptions, dialer,
};
use serde_json::json;

use peer::{Peer, ReceivedRequest, Reply, message, reply, stream, stream_of, taken};

/// The settings of a connection.
#[derive(Default)]
struct TestClient {
    eras: Option<Eras>,
    limits: Option<Limits>,
    headers: Vec<(String, Secret)>,
}

impl TestClient {
    fn legacy() -> TestClient {
        TestClient { eras: Some(Eras::Legacy), ..TestClient::default() }
    }

    async fn connect(self, url: &str) -> Result<Session, ConnectError> {
        let TestClient { eras, limits, headers } = self;
        let mut endpoint = UrlEndpoint::new(url.parse().unwrap());
        endpoint.headers = headers;
        let limits = limits.unwrap_or_default();
        #[cfg_attr(
            not(any(feature = "stdio", feature = "http")),
            expect(clippy::needless_update, reason = "with other wires there are more options")
        )]
        let mut options = DialOptions::default();
        options.limits = limits.clone();
        let dial = dialer(&Endpoint::Sse(endpoint), &options)?;
        let eras = eras.unwrap_or(Eras::Both);
        Session::connect(dial, {
            let mut options = SessionOptions::default();
            options.limits = limits;
            options.eras = eras;
            options
        })
        .await
    }
}

/// A legacy server that responds on its stream. `rest` handles all messages after the handshake.
pub(crate) fn legacy(received: &ReceivedRequest, rest: impl Fn(&ReceivedRequest) -> Reply) -> Reply {
    match received.kind().as_str() {
        "GET" => stream(),
        "server/discover" => taken().push(no_method(received)),
        "initialize" => taken().push(initialized(received)),
        "notifications/initialized" | "notifications/cancelled" => taken(),
        _ => rest(received),
    }
}

fn initialized(received: &ReceivedRequest) -> String {
    received.result(json!({
        "protocolVersion": "2024-11-05", "capabilities": {"tools": {"listChanged": true}},
        "serverInfo": {"name": "older", "version": "1"},
    }))
}

fn no_method(received: &ReceivedRequest) -> String {
    message(
        &json!({"jsonrpc": "2.0", "id": received.rpc()["id"], "error": {"code": -32601, "message": "no"}}),
    )
}

/// The event with the result of a tool call.
fn tool_result(received: &ReceivedRequest, text: &str) -> String {
    received.result(json!({"content": [{"type": "text", "text": text}]}))
}

/// A legacy server whose tools return `hello`.
fn greeting(received: &ReceivedRequest) -> Reply {
    legacy(received, |request| taken().push(tool_result(request, "hello")))
}

/// Calls the tool `echo`; the text of the result, or the error.
async fn call(session: &Session) -> Result<String, CallError> {
    let answer = session.call_tool("echo", &RawJson::empty_object(), CallOptions::default()).await?;
    Ok(answer.value.text())
}
