//! The floor: what the same calls cost by hand, without anything that a client of MCP has to do besides.
//!
//! `floor --by hand|hyper|reqwest …`. Over stdio it is blocking pipes; over HTTP it is a hand-written exchange, or an
//! HTTP library alone. No deadline, no cancellation, no notifications: it is a measure, and no product.

#![expect(clippy::print_stdout, reason = "its one line of output is what it is for")]

mod exchange;
mod pipe;

use mcp_benches::options::Options;
use mcp_benches::{Failure, scenario};
use serde::Deserialize;
use serde_json::value::RawValue;

fn main() -> Result<(), Failure> {
    let options = Options::read();
    let mut line = match options.transport() {
        "stdio" => pipe::run(&options)?,
        // One thread: all that it does is to move bytes.
        "http" => tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?
            .block_on(exchange::run(&options))?,
        other => return Err(format!("it has no transport {other:?}").into()),
    };
    scenario::finish(&mut line);
    println!("{line}");
    Ok(())
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"floor","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

fn call_message(id: usize, ask: scenario::Ask) -> String {
    let (tool, arguments) = (ask.tool(), ask.arguments());
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

fn list_message(cursor: Option<&str>) -> String {
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

/// What has to be kept of a tool.
#[derive(Deserialize)]
struct Tool {
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "description")]
    _description: Option<String>,
    #[serde(rename = "inputSchema")]
    _schema: Box<RawValue>,
}

#[derive(Deserialize)]
struct Page {
    tools: Vec<Tool>,
    #[serde(rename = "nextCursor")]
    next: Option<String>,
}

/// The id of an answer, and how many bytes of text it has.
fn text_of(frame: &[u8]) -> Result<(usize, usize), Failure> {
    let Message { id, result } = serde_json::from_slice(frame)?;
    let CallResult { content } = serde_json::from_str(result.get())?;
    Ok((id, content.iter().map(|it| it.text.len()).sum()))
}

fn page_of(frame: &[u8]) -> Result<Page, Failure> {
    let Message { id: _, result } = serde_json::from_slice(frame)?;
    Ok(serde_json::from_str(result.get())?)
}
