//! Responses with a content coding, although none was requested.

use async_compression::tokio::write::{BrotliEncoder, DeflateEncoder, GzipEncoder, ZlibEncoder};
use futures_util::FutureExt as _;
use tokio::io::AsyncWriteExt as _;

use super::*;

/// Encodes a body. Nothing waits, because it is written to memory.
macro_rules! encode {
    ($encoder:ident, $text:expr) => {{
        let mut encoder = $encoder::new(Vec::new());
        encoder.write_all($text.as_ref()).now_or_never().unwrap().unwrap();
        encoder.shutdown().now_or_never().unwrap().unwrap();
        encoder.into_inner()
    }};
}

/// A response whose body is encoded as the headers say.
fn encoded_reply(status: u16, headers: &str, text: &str) -> Reply {
    let name = headers.split("Content-Encoding: ").nth(1).and_then(|rest| rest.lines().next());
    let body = match name {
        Some("gzip" | "x-gzip") => encode!(GzipEncoder, text),
        Some("deflate") => encode!(ZlibEncoder, text),
        Some("br") => encode!(BrotliEncoder, text),
        Some("Deflate") => encode!(DeflateEncoder, text),
        Some(_) | None => text.as_bytes().to_vec(),
    };
    reply(status, headers, body)
}

/// Calls a server that answers with these headers and a body of this text, encoded as the headers say.
async fn call_encoded(
    status: u16,
    headers: &'static str,
    text: fn(&ReceivedRequest) -> String,
) -> Result<String, CallError> {
    let peer = Peer::start(move |request| {
        assert_eq!(request.header("accept-encoding"), "identity");
        modern(request, |request| encoded_reply(status, headers, &text(request)))
    })
    .await;
    let mut limits = Limits::default();
    limits.message_bytes = 1 << 20;
    let session =
        TestClient { limits: Some(limits), ..TestClient::default() }.connect(&peer.url).await.unwrap();
    call(&session).await
}

// RPT-050
#[tokio::test]
async fn encoded_response_is_decoded() {
    let hello = |request: &ReceivedRequest| tool_result(request, "hello");
    for headers in [
        "Content-Type: application/json\r\nContent-Encoding: gzip\r\n",
        "Content-Type: application/json\r\nContent-Encoding: x-gzip\r\n",
        "Content-Type: application/json\r\nContent-Encoding: deflate\r\n",
        "Content-Type: application/json\r\nContent-Encoding: Deflate\r\n",
        "Content-Type: application/json\r\nContent-Encoding: br\r\n",
        "Content-Type: application/json\r\nContent-Encoding: identity\r\n",
    ] {
        assert_eq!(call_encoded(200, headers, hello).await.unwrap(), "hello", "{headers}");
    }
    let event = |request: &ReceivedRequest| format!("data: {}\n\n", tool_result(request, "hello"));
    let headers = "Content-Type: text/event-stream\r\nContent-Encoding: gzip\r\n";
    assert_eq!(call_encoded(200, headers, event).await.unwrap(), "hello");
}

// RPT-050
#[tokio::test]
async fn encoded_error_is_shown() {
    let error = call_encoded(502, "Content-Encoding: gzip\r\n", |_| "no worker".to_owned()).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("HTTP 502 Bad Gateway: no worker"), "{error}");
}

// RPT-051
#[tokio::test]
async fn limit_counts_decoded_bytes() {
    let long = |request: &ReceivedRequest| tool_result(request, &"x".repeat(2 << 20));
    let event =
        |request: &ReceivedRequest| format!("data: {}\n\n", tool_result(request, &"x".repeat(2 << 20)));
    let json = "Content-Type: application/json\r\nContent-Encoding: gzip\r\n";
    let stream = "Content-Type: text/event-stream\r\nContent-Encoding: br\r\n";
    for error in [call_encoded(200, json, long).await, call_encoded(200, stream, event).await] {
        let error = error.unwrap_err().to_string();
        assert!(error.contains("exceeds the message size limit of 1048576 bytes"), "{error}");
    }
}

// RPT-050, RPT-052
#[tokio::test]
async fn undecodable_response_names_its_coding() {
    let headers = "Content-Type: application/json\r\nContent-Encoding: zstd\r\n";
    let error = call_encoded(200, headers, |request| tool_result(request, "hello")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the response was lost (the response is incomplete: it has the content coding \"zstd\", which was not \
         requested and is not supported), and it is not known whether the call ran"
    );
}

// RPT-052
#[tokio::test]
async fn missing_server_is_suspected_only_if_nothing_is_mcp() {
    #[track_caller]
    fn check(error: ConnectError, want: bool) {
        let help = error.help().unwrap();
        assert_eq!(help.starts_with("there is no MCP server at this URL"), want, "{error}: {help}");
    }
    async fn refusal(body: &'static str) -> ConnectError {
        let peer = Peer::start(move |_| json_reply(body)).await;
        TestClient::legacy().connect(&peer.url).await.err().unwrap()
    }
    check(refusal("<html>").await, true);
    check(refusal(r#"{"jsonrpc":"2.0","id":99999999,"result":{}}"#).await, false);
    check(refusal(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#).await, false);
}
