//! A client that sends and compares plain JSON over stdio, in either era.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout};

use serde_json::{Map, Value, json};

/// What the client can do.
const CAPABILITIES: &str = r#"{"sampling":{"tools":{},"context":{}},"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true}}"#;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ClientEra {
    Legacy,
    Modern,
}

pub(super) struct Client {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    era: ClientEra,
    last_id: u64,
    /// The result of `initialize` or `server/discover`.
    pub(super) handshake: Value,
    /// The log messages, progress and server requests since they were last taken: method and parameters.
    pub(super) received: Vec<Value>,
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Client {
    pub(super) fn connect(mut child: Child, era: ClientEra) -> Client {
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut client =
            Client { child, lines, era, last_id: 0, handshake: Value::Null, received: Vec::new() };
        client.handshake = match era {
            ClientEra::Legacy => {
                let capabilities: Value = serde_json::from_str(CAPABILITIES).unwrap();
                let client_info = json!({"name": "t", "version": "1"});
                client.request(
                    "initialize",
                    json!({"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client_info}),
                )
            }
            ClientEra::Modern => client.request("server/discover", json!({})),
        };
        if era == ClientEra::Legacy {
            client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
            // Without a level, a server decides what it sends.
            client.request("logging/setLevel", json!({"level": "debug"}));
            client.received.clear();
        }
        client
    }

    fn send(&mut self, message: &Value) {
        let input = self.child.stdin.as_mut().unwrap();
        writeln!(input, "{message}").unwrap();
        input.flush().unwrap();
    }

    /// The result of a request, or its error's code and message.
    pub(super) fn request(&mut self, method: &str, mut params: Value) -> Value {
        params["_meta"]["progressToken"] = "progress".into();
        if self.era == ClientEra::Modern {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28".into();
            params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "t", "version": "1"});
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
                serde_json::from_str(CAPABILITIES).unwrap();
            params["_meta"]["io.modelcontextprotocol/logLevel"] = "debug".into();
        }
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let line = self.lines.next().unwrap_or_else(|| panic!("{method}: the server has ended")).unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if let Some(method) = message["method"].as_str() {
                if message.get("id").is_some() {
                    let result = self.answer(&message);
                    self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
                } else if ["notifications/message", "notifications/progress"].contains(&method) {
                    self.received.push(json!([method, message["params"]]));
                }
                continue;
            }
            if message["id"] != id {
                continue;
            }
            let Some(result) = message.get("result") else { return message["error"].clone() };
            if result["resultType"] != "input_required" {
                return result.clone();
            }
            let requests = result["inputRequests"].as_object().unwrap();
            let responses: Map<String, Value> =
                requests.iter().map(|(key, request)| (key.clone(), self.answer(request))).collect();
            params["inputResponses"] = responses.into();
            params["requestState"] = result["requestState"].clone();
            if params["requestState"].is_null() {
                params.as_object_mut().unwrap().remove("requestState");
            }
            return self.request(method, params);
        }
    }

    /// Answers a server request.
    fn answer(&mut self, request: &Value) -> Value {
        // Parameters may be left out if there are none.
        let params = request.get("params").cloned().unwrap_or_else(|| json!({}));
        self.received.push(json!([request["method"], params]));
        let meta = json!({"example.org/answer": {"list": [1.5, null, "\u{2028}"]}});
        match request["method"].as_str().unwrap() {
            "sampling/createMessage" if params.get("tools").is_some() => json!({
                "role": "assistant", "model": "m", "stopReason": "toolUse", "_meta": meta,
                "content": [
                    {"type": "text", "text": "I ask", "annotations": {"priority": 0.5}, "_meta": meta},
                    {"type": "tool_use", "id": "call-2", "name": "weather", "input": {"topic": "x"}, "_meta": meta},
                ],
            }),
            "sampling/createMessage" => json!({
                "role": "assistant", "model": "m", "stopReason": "endTurn",
                "content": {"type": "text", "text": "sampled"}
            }),
            "elicitation/create" if params["mode"] == "url" => json!({"action": "accept", "_meta": meta}),
            "elicitation/create" if params["requestedSchema"]["properties"].get("agree").is_some() => json!({
                "action": "accept", "_meta": meta,
                "content": {"name": "Bob \u{1f600}", "agree": true, "count": 4, "ratio": 0.5, "tags": ["y", "x"]},
            }),
            "elicitation/create" => json!({"action": "decline"}),
            "roots/list" => json!({"roots": [{"uri": "file:///work", "name": "work"}]}),
            _ => json!({}),
        }
    }

    /// All items of a list.
    pub(super) fn list(&mut self, method: &str, member: &str) -> Vec<Value> {
        let (mut items, mut params) = (Vec::new(), json!({}));
        loop {
            let page = self.request(method, params);
            items.extend(page[member].as_array().cloned().unwrap_or_default());
            match page.get("nextCursor") {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return items,
            }
        }
    }
}
