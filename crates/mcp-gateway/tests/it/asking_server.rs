//! A legacy server that sends requests to its client: elicitation and sampling during calls, and roots.

use std::collections::HashMap;
use std::sync::Arc;

use mcp_host_transport::Dial;
use mcp_testkit::servers::{forward_lines, in_memory};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, WriteHalf, split};

/// Dials an asking server over one stream, like a child process, if the name begins with `auto`.
///
/// Its tools: `ask` elicits and returns the client's answer, `sample` samples, `wait` never returns, and `state`
/// returns the client's capabilities and roots as the server knows them. `auto-roots` requests the roots as soon as it
/// is initialized, the others never.
pub(crate) fn dial(name: &str) -> Option<Arc<dyn Dial>> {
    let requests_roots = name.starts_with("auto-roots");
    let serve = move |stream| AskingServer::serve(requests_roots, stream);
    name.starts_with("auto").then(|| in_memory(name, move |link| forward_lines(link, serve)))
}

struct AskingServer {
    requests_roots: bool,
    write: WriteHalf<DuplexStream>,
    capabilities: Value,
    roots: Value,
    /// The calls that wait for the client, by the id of the request to it.
    pending_calls: HashMap<String, Value>,
    /// The calls of `state` that wait for the roots.
    pending_state_calls: Vec<Value>,
}

impl AskingServer {
    async fn serve(requests_roots: bool, stream: DuplexStream) {
        let (read, write) = split(stream);
        let mut lines = BufReader::new(read).lines();
        let mut server = AskingServer {
            requests_roots,
            write,
            capabilities: Value::Null,
            roots: Value::Null,
            pending_calls: HashMap::new(),
            pending_state_calls: Vec::new(),
        };
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            if server.handle(&message).await.is_err() {
                return;
            }
        }
    }

    async fn handle(&mut self, message: &Value) -> std::io::Result<()> {
        let (id, params) = (&message["id"], &message["params"]);
        let requests_roots = self.requests_roots && self.capabilities["roots"].is_object();
        match message["method"].as_str() {
            Some("initialize") => {
                self.capabilities = params["capabilities"].clone();
                let server = json!({"name": "asking", "version": "1"});
                let capabilities = json!({"tools": {}, "extensions": {"example.org/ask": {}}});
                self.send_result(
                    id,
                    json!({"protocolVersion": "2025-06-18", "capabilities": capabilities,
                    "serverInfo": server}),
                )
                .await
            }
            Some("notifications/initialized" | "notifications/roots/list_changed") if requests_roots => {
                self.roots = Value::Null;
                self.send(json!({"id": "roots", "method": "roots/list"})).await
            }
            Some("tools/list") => {
                let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
                let tools = ["ask", "sample", "wait", "state"].map(tool);
                self.send_result(id, json!({ "tools": tools })).await
            }
            Some("tools/call") => match params["name"].as_str().unwrap() {
                "wait" => Ok(()),
                "state" if requests_roots && self.roots.is_null() => {
                    self.pending_state_calls.push(id.clone());
                    Ok(())
                }
                "state" => self.send_state(&id.clone()).await,
                tool => {
                    let (method, params) = match tool {
                        "ask" => (
                            "elicitation/create",
                            json!({"message": params["arguments"]["message"],
                                "requestedSchema": {"type": "object", "properties": {}}}),
                        ),
                        _ => ("sampling/createMessage", json!({"messages": [], "maxTokens": 1})),
                    };
                    let request = format!("of {id}");
                    self.pending_calls.insert(request.clone(), id.clone());
                    self.send(json!({"id": request, "method": method, "params": params})).await
                }
            },
            Some(_) if id.is_null() => Ok(()),
            Some(_) => self.send(json!({"id": id, "error": {"code": -32601, "message": "no"}})).await,
            None if id == "roots" => {
                self.roots =
                    json!({"roots": message["result"]["roots"], "error": message["error"]["message"]});
                for call in std::mem::take(&mut self.pending_state_calls) {
                    self.send_state(&call).await?;
                }
                Ok(())
            }
            None => {
                let Some(call) = id.as_str().and_then(|id| self.pending_calls.remove(id)) else {
                    return Ok(());
                };
                let answer = message.get("result").unwrap_or(&message["error"]["message"]).to_string();
                self.send_text(&call, &answer).await
            }
        }
    }

    async fn send_state(&mut self, call: &Value) -> std::io::Result<()> {
        let state = json!({"capabilities": self.capabilities, "roots": self.roots}).to_string();
        self.send_text(call, &state).await
    }

    async fn send_text(&mut self, id: &Value, text: &str) -> std::io::Result<()> {
        self.send_result(id, json!({"content": [{"type": "text", "text": text}]})).await
    }

    async fn send_result(&mut self, id: &Value, result: Value) -> std::io::Result<()> {
        self.send(json!({"id": id, "result": result})).await
    }

    async fn send(&mut self, mut message: Value) -> std::io::Result<()> {
        message["jsonrpc"] = "2.0".into();
        self.write.write_all(format!("{message}\n").as_bytes()).await
    }
}
