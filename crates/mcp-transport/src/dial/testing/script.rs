//! Scripts of servers, for the rows of the table.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Script, ServerAction};

/// A server that handles the handshake and lists, and responds to a call of `other` with `hello`. `rest` handles other
/// messages.
pub(super) fn server(rest: impl Fn(&Value) -> Vec<ServerAction> + Send + Sync + 'static) -> Script {
    let one = |text| vec![ServerAction::Send(text)];
    Arc::new(move |message| match (message["method"].as_str(), message["params"]["name"].as_str()) {
        (Some("initialize"), _) => one(initialized(message)),
        (Some("server/discover"), _) => one(discovered(message)),
        (Some("tools/list"), _) => one(listed(message)),
        (Some("tools/call"), Some("other")) => one(tool_result(message, "hello")),
        _ => rest(message),
    })
}

/// A server that handles calls of other tools with `handle`.
pub(super) fn first(handle: fn(&Value) -> Vec<ServerAction>) -> Script {
    server(move |message| match message["method"].as_str() {
        Some("tools/call") => handle(message),
        _ => Vec::new(),
    })
}

/// A server that responds to other calls with these raw texts, then with a valid response.
pub(super) fn first_after(texts: fn(&Value) -> Vec<String>) -> Script {
    server(move |message| match message["method"].as_str() {
        Some("tools/call") => {
            let texts = texts(message).into_iter().chain([tool_result(message, "hello")]);
            texts.map(ServerAction::Send).collect()
        }
        _ => Vec::new(),
    })
}

/// A server that waits for `number` calls and responds in reverse order, to each with the name of its tool.
pub(super) fn reversed(number: usize) -> Script {
    let held = Mutex::new(Vec::<Value>::new());
    server(move |message| {
        if message["method"] != "tools/call" {
            return Vec::new();
        }
        let mut held = held.lock();
        held.push(message.clone());
        if held.len() < number {
            return vec![ServerAction::KeepOpen];
        }
        let respond = |message: &Value| {
            let name = message["params"]["name"].as_str().unwrap_or_default();
            ServerAction::Respond(message["id"].clone(), tool_result(message, name))
        };
        held.iter().rev().map(respond).collect()
    })
}

/// A server that responds to `first` with `size` bytes when `echo` is called, and then to `echo`.
pub(super) fn large_then_small(size: usize) -> Script {
    let held = Mutex::new(Value::Null);
    server(move |message| match message["params"]["name"].as_str() {
        Some("first") => {
            *held.lock() = message.clone();
            vec![ServerAction::KeepOpen]
        }
        Some("echo") => {
            let first = held.lock();
            let large = tool_result(&first, &"x".repeat(size));
            let large = ServerAction::Respond(first["id"].clone(), large);
            vec![large, ServerAction::Send(tool_result(message, "hello"))]
        }
        _ => Vec::new(),
    })
}

fn initialized(message: &Value) -> String {
    result(
        message,
        &json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "scripted", "version": "1"},
        }),
    )
}

fn discovered(message: &Value) -> String {
    result(
        message,
        &json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {"listChanged": true}},
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "1"}},
        }),
    )
}

/// A list of two tools, one of which is invalid.
fn listed(message: &Value) -> String {
    let tools = json!([
        {"name": "good", "inputSchema": {"type": "object"}},
        {"name": "bad", "inputSchema": "anything"},
    ]);
    result(message, &json!({"tools": tools, "ttlMs": 600_000}))
}

fn result(message: &Value, result: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string()
}

/// The response to a call of a tool.
pub(super) fn tool_result(message: &Value, text: &str) -> String {
    result(message, &json!({"content": [{"type": "text", "text": text}]}))
}

/// The same with another id.
pub(super) fn tool_result_for(id: &Value, text: &str) -> String {
    tool_result(&json!({"id": id}), text)
}

/// A notification.
pub(super) fn notice(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}
