//! Hand-written MCP messages, and a client on hyper alone.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::net::TcpStream;

use crate::Failure;
use crate::scenario::Ask;

/// The content type of requests.
pub const JSON: &str = "application/json";
/// The accepted content types.
pub const BOTH: &str = "application/json, text/event-stream";

/// The `initialize` request.
pub const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"floor","version":"1"}}}"#;
/// The `initialized` notification.
pub const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A tool call.
pub fn call_message(id: usize, ask: Ask) -> String {
    let (tool, arguments) = (ask.tool(), ask.arguments());
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

/// A request for a page of tools.
pub fn list_message(cursor: Option<&str>) -> String {
    let params = cursor.map(|it| format!(r#""cursor":"{it}""#)).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{params}}}}}"#)
}

#[derive(Deserialize)]
struct Message<'a> {
    id: usize,
    #[serde(borrow)]
    result: &'a RawValue,
}

#[derive(Deserialize)]
struct CallResult<'a> {
    #[serde(borrow)]
    content: Vec<Block<'a>>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow)]
    text: std::borrow::Cow<'a, str>,
}

/// A tool as it is kept.
#[derive(Deserialize)]
pub struct Tool {
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "description")]
    _description: Option<String>,
    #[serde(rename = "inputSchema")]
    _schema: Box<RawValue>,
}

/// A page of tools.
#[derive(Deserialize)]
pub struct Page {
    /// The tools.
    pub tools: Vec<Tool>,
    /// The cursor of the next page.
    #[serde(rename = "nextCursor")]
    pub next: Option<String>,
}

/// The id of a response and the length of its text.
pub fn text_of(frame: &[u8]) -> Result<(usize, usize), Failure> {
    let Message { id, result } = serde_json::from_slice(frame)?;
    let CallResult { content } = serde_json::from_str(result.get())?;
    Ok((id, content.iter().map(|it| it.text.len()).sum()))
}

/// Parses a list response.
pub fn page_of(frame: &[u8]) -> Result<Page, Failure> {
    let Message { id: _, result } = serde_json::from_slice(frame)?;
    Ok(serde_json::from_str(result.get())?)
}

/// A connection of hyper with its driver task.
pub struct Hyper(SendRequest<Full<Bytes>>);

impl Hyper {
    /// Connects to `host:port`.
    pub async fn connect(authority: &str) -> Result<Hyper, Failure> {
        let stream = TcpStream::connect(authority).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Hyper(sender))
    }

    /// Posts a message and returns the body of the response.
    pub async fn post(&mut self, authority: &str, message: String) -> Result<Bytes, Failure> {
        let Hyper(sender) = self;
        sender.ready().await?;
        let request = hyper::Request::post("/mcp")
            .header(HOST, authority)
            .header(CONTENT_TYPE, JSON)
            .header(ACCEPT, BOTH)
            .body(Full::new(Bytes::from(message)))?;
        Ok(sender.send_request(request).await?.into_body().collect().await?.to_bytes())
    }
}

/// The message in a body: the body itself or its one event.
pub fn payload(body: &Bytes) -> Result<Bytes, Failure> {
    // With one event per response, no other rule of event streams is needed.
    let start = if body.starts_with(b"event:") {
        body.windows(6).position(|it| it == b"data: ").ok_or("an event without data")? + 6
    } else {
        0
    };
    Ok(body.slice(start..))
}
