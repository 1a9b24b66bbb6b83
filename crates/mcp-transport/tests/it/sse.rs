//! HTTP with server-sent events against peers that are rude in the ways that servers are.

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

use mcp_model::{Endpoint, Limits, RawJson, Secret, UrlEndpoint};
use mcp_transport::{
    CallError, CallOptions, ConnectError, DialOptions, Eras, Session, SessionOptions, dialer,
};
use serde_json::json;

use peer::{Heard, Peer, Reply, message, reply, stream, stream_of, taken};

/// How a test connects; [`How::default`] is how everybody does.
#[derive(Default)]
struct How {
    eras: Option<Eras>,
    limits: Option<Limits>,
    headers: Vec<(String, Secret)>,
}

impl How {
    fn legacy() -> How {
        How { eras: Some(Eras::Legacy), ..How::default() }
    }

    async fn connect(self, url: &str) -> Result<Session, ConnectError> {
        let How { eras, limits, headers } = self;
        let mut endpoint = UrlEndpoint::new(url.parse().unwrap());
        endpoint.headers = headers;
        let limits = limits.unwrap_or_default();
        #[cfg_attr(
            not(any(feature = "stdio", feature = "http")),
            expect(clippy::needless_update, reason = "with other wires there are more options")
        )]
        let options = DialOptions { limits: limits.clone(), ..DialOptions::default() };
        let dial = dialer(&Endpoint::Sse(endpoint), &options)?;
        let eras = eras.unwrap_or(Eras::Both);
        Session::connect(dial, SessionOptions { limits, eras, ..SessionOptions::default() }).await
    }
}

/// A legacy server: answers on its stream, and leaves what is no matter of the opening to `rest`.
pub(crate) fn legacy(heard: &Heard, rest: impl Fn(&Heard) -> Reply) -> Reply {
    match heard.what().as_str() {
        "GET" => stream(),
        "server/discover" => taken().push(no_method(heard)),
        "initialize" => taken().push(initialized(heard)),
        "notifications/initialized" | "notifications/cancelled" => taken(),
        _ => rest(heard),
    }
}

fn initialized(heard: &Heard) -> String {
    heard.result(json!({
        "protocolVersion": "2024-11-05", "capabilities": {"tools": {"listChanged": true}},
        "serverInfo": {"name": "older", "version": "1"},
    }))
}

fn no_method(heard: &Heard) -> String {
    message(&json!({"jsonrpc": "2.0", "id": heard.rpc()["id"], "error": {"code": -32601, "message": "no"}}))
}

/// The event that answers a call of a tool.
fn said(heard: &Heard, text: &str) -> String {
    heard.result(json!({"content": [{"type": "text", "text": text}]}))
}

/// A legacy server whose calls are answered with `hello`.
fn greeting(heard: &Heard) -> Reply {
    legacy(heard, |it| taken().push(said(it, "hello")))
}

/// Calls the tool `echo`; the text of the result, or the error.
async fn call(session: &Session) -> Result<String, CallError> {
    let answer = session.call_tool("echo", &RawJson::empty_object(), CallOptions::default()).await?;
    Ok(answer.value.text())
}

/// Waits until something is so, for the other side needs a moment to notice.
async fn until(what: impl Fn() -> bool) {
    let patience = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), patience).await.expect("it does not come to be so");
}
