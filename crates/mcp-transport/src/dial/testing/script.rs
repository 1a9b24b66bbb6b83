//! Scripts of servers, for the rows of the table.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::action::{Script, ServerAction};

/// A script that handles the handshake of both eras and the list of these tools. `rest` handles the other messages,
/// notifications included.
pub fn scripted_server(
    tools: Vec<Value>,
    rest: impl Fn(&Value) -> Vec<ServerAction> + Send + Sync + 'static,
) -> Script {
    let tools = json!({"tools": tools, "ttlMs": 600_000});
    Arc::new(move |message| match message["method"].as_str() {
        Some("initialize") => vec![ServerAction::result(message, &initialize_result())],
        Some("server/discover") => vec![ServerAction::result(message, &discover_result())],
        Some("tools/list") => vec![ServerAction::result(message, &tools)],
        _ => rest(message),
    })
}

/// The script of a server with two tools, one of which is invalid. It responds to a call of `other` with `hello`.
/// `rest` handles other messages.
pub(super) fn server(rest: impl Fn(&Value) -> Vec<ServerAction> + Send + Sync + 'static) -> Script {
    let tools = vec![
        json!({"name": "good", "inputSchema": {"type": "object"}}),
        json!({"name": "bad", "inputSchema": "anything"}),
    ];
    scripted_server(tools, move |message| match message["params"]["name"].as_str() {
        Some("other") => respond(message, "hello"),
        _ => rest(message),
    })
}

/// The script of a server that handles calls of tools other than `other` with `handle`.
pub(super) fn on_call(handle: impl Fn(&Value) -> Vec<ServerAction> + Send + Sync + 'static) -> Script {
    server(move |message| match message["method"].as_str() {
        Some("tools/call") => handle(message),
        _ => Vec::new(),
    })
}

/// The script of a server that responds to other calls with these raw texts, then with a valid response.
pub(super) fn after_texts(texts: fn(&Value) -> Vec<String>) -> Script {
    server(move |message| match message["method"].as_str() {
        Some("tools/call") => {
            let texts = texts(message).into_iter().chain([tool_response(message, "hello")]);
            texts.map(ServerAction::Send).collect()
        }
        _ => Vec::new(),
    })
}

/// The script of a server that waits for `number` calls and responds in reverse order, to each with the name of its
/// tool.
pub(super) fn in_reverse(number: usize) -> Script {
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
            ServerAction::Respond(message["id"].clone(), tool_response(message, name))
        };
        held.iter().rev().map(respond).collect()
    })
}

/// The script of a server that responds to `first` with `size` bytes when `echo` is called, and then to `echo`.
pub(super) fn large_then_small(size: usize) -> Script {
    let held = Mutex::new(Value::Null);
    server(move |message| match message["params"]["name"].as_str() {
        Some("first") => {
            *held.lock() = message.clone();
            vec![ServerAction::KeepOpen]
        }
        Some("echo") => {
            let first = held.lock();
            let large = tool_response(&first, &"x".repeat(size));
            let large = ServerAction::Respond(first["id"].clone(), large);
            vec![large, ServerAction::Send(tool_response(message, "hello"))]
        }
        _ => Vec::new(),
    })
}

/// The script of a server that sends half of the response to a call, and the rest when the call was cancelled.
pub(super) fn split_response() -> Script {
    let held = Mutex::new(None);
    server(move |message| match message["method"].as_str() {
        Some("tools/call") => {
            let text = tool_response(message, "too late");
            *held.lock() = Some(text.clone());
            vec![ServerAction::SendFirstHalf(text), ServerAction::KeepOpen]
        }
        Some("notifications/cancelled") => {
            held.lock().take().map(ServerAction::SendSecondHalf).into_iter().collect()
        }
        _ => Vec::new(),
    })
}

/// The script of a server that performs `action` in the handshake, and otherwise works.
pub(super) fn on_handshake(action: ServerAction) -> Script {
    let usual = server(|_| Vec::new());
    Arc::new(move |message| match message["method"].as_str() {
        Some("initialize" | "server/discover") => vec![action.clone()],
        _ => usual(message),
    })
}

fn initialize_result() -> Value {
    json!({
        "protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": true}},
        "serverInfo": {"name": "scripted", "version": "1"},
    })
}

fn discover_result() -> Value {
    json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"],
        "capabilities": {"tools": {"listChanged": true}},
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "scripted", "version": "1"}},
    })
}

/// The action that responds to a call with this text.
pub(super) fn respond(message: &Value, text: &str) -> Vec<ServerAction> {
    vec![ServerAction::Send(tool_response(message, text))]
}

/// The response to a call of a tool.
pub(super) fn tool_response(message: &Value, text: &str) -> String {
    let result = json!({"content": [{"type": "text", "text": text}]});
    json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string()
}

/// The same with another id.
pub(super) fn tool_response_for(id: &Value, text: &str) -> String {
    tool_response(&json!({"id": id}), text)
}

/// An error response.
pub(super) fn error_response(id: &Value, code: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no"}}).to_string()
}

/// A notification.
pub(super) fn notification(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}
