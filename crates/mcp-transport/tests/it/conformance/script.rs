//! Scripts of peers, for the rows of the table.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::peers::{Action, Script};

/// A server that answers the handshake and list requests, and a call of `other` with `hello`. `rest` handles other
/// messages.
pub(super) fn server(rest: impl Fn(&Value) -> Vec<Action> + Send + Sync + 'static) -> Script {
    Arc::new(move |message| match (message["method"].as_str(), message["params"]["name"].as_str()) {
        (Some("initialize"), _) => vec![Action::Send(initialized(message))],
        (Some("server/discover"), _) => vec![Action::Send(discovered(message))],
        (Some("tools/list"), _) => vec![Action::Send(listed(message))],
        (Some("tools/call"), Some("other")) => vec![Action::Send(tool_result(message, "hello"))],
        _ => rest(message),
    })
}

/// A server that handles a call of `first` with `about`.
pub(super) fn first(about: fn(&Value) -> Vec<Action>) -> Script {
    server(move |message| match message["method"].as_str() {
        Some("tools/call") => about(message),
        _ => vec![],
    })
}

/// A server that responds to a call of `first` with these raw texts, then with a valid response.
pub(super) fn first_after(texts: fn(&Value) -> Vec<String>) -> Script {
    server(move |message| match message["method"].as_str() {
        Some("tools/call") => {
            texts(message).into_iter().chain([tool_result(message, "hello")]).map(Action::Send).collect()
        }
        _ => vec![],
    })
}

/// A server that waits for `number` calls and responds in reverse order, to each with the name of its tool.
pub(super) fn reversed(number: usize) -> Script {
    let held = Mutex::new(Vec::<Value>::new());
    server(move |message| {
        if message["method"] != "tools/call" {
            return vec![];
        }
        let mut held = held.lock().unwrap();
        held.push(message.clone());
        if held.len() < number {
            return vec![Action::KeepOpen];
        }
        let answer = |message: &Value| {
            Action::Respond(
                message["id"].clone(),
                tool_result(message, message["params"]["name"].as_str().unwrap()),
            )
        };
        held.iter().rev().map(answer).collect()
    })
}

/// A server that responds to `first` with `size` bytes when `echo` is called, and then to `echo`.
pub(super) fn large_then_small(size: usize) -> Script {
    let held = Mutex::new(Value::Null);
    server(move |message| match message["params"]["name"].as_str() {
        Some("first") => {
            *held.lock().unwrap() = message.clone();
            vec![Action::KeepOpen]
        }
        Some("echo") => {
            let first = held.lock().unwrap();
            let large = Action::Respond(first["id"].clone(), tool_result(&first, &"x".repeat(size)));
            vec![large, Action::Send(tool_result(message, "hello"))]
        }
        _ => vec![],
    })
}

/// A server that sends half of the response to `first`, and the rest when the call was cancelled.
pub(super) fn in_two() -> Script {
    let begun = Mutex::new(None);
    server(move |message| match message["method"].as_str() {
        Some("tools/call") => {
            let text = tool_result(message, "too late");
            *begun.lock().unwrap() = Some(text.clone());
            vec![Action::SendFirstHalf(text), Action::KeepOpen]
        }
        Some("notifications/cancelled") => {
            begun.lock().unwrap().take().map(Action::SendSecondHalf).into_iter().collect()
        }
        _ => vec![],
    })
}

/// A server that does this in the handshake, and otherwise works.
pub(super) fn opening(acts: Vec<Action>) -> Script {
    let usual = server(|_| vec![]);
    Arc::new(move |message| match message["method"].as_str() {
        Some("initialize" | "server/discover") => acts.clone(),
        _ => usual(message),
    })
}

fn initialized(message: &Value) -> String {
    result(
        message,
        &json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": true}},
            "serverInfo": {"name": "rude", "version": "1"},
        }),
    )
}

fn discovered(message: &Value) -> String {
    result(
        message,
        &json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {"listChanged": true}},
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "rude", "version": "1"}},
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

pub(super) fn result(message: &Value, result: &Value) -> String {
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

pub(super) fn error(id: &Value, code: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no"}}).to_string()
}

pub(super) fn notice(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}
