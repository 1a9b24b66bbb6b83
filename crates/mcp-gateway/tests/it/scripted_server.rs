//! Scripted servers that return what a test tells them, including invalid results.

use std::sync::{Arc, Mutex};

use mcp_host_transport::Dial;
use mcp_testkit::servers::{forward_lines, in_memory};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, split};

/// The parameters of all calls to scripted servers.
pub(crate) type ReceivedCalls = Arc<Mutex<Vec<Value>>>;

/// The number of polls until the task `t slow` is complete.
pub(crate) const SLOW_POLLS: usize = 3;

/// A dial of the scripted server with this name; `None` for other names.
///
/// `new` speaks 2026-07-28, the others 2025-06-18. Each has one tool, `say`: it sends the server requests in the
/// argument `ask` and the notifications about tasks in `notify`, and then returns the JSON text in the
/// argument `result` or `error`. After that it logs at the levels in
/// `log`. The resource `x:1` of `old` and `new` fails with a protocol error. Their
/// tool `work` does the same as `say` and must run as a task. Their task `t 1` is complete, and `t slow` is
/// complete after some polls. `mute` sends nothing. `one` and `two` list the same resource and have others that they do
/// not list.
pub(crate) fn dial(name: &str, calls: &ReceivedCalls) -> Option<Arc<dyn Dial>> {
    if name == "mute" {
        let silent = |stream: DuplexStream| async move {
            let _open = stream;
            std::future::pending::<()>().await;
        };
        return Some(in_memory(name, move |link| forward_lines(link, silent)));
    }
    if name == "gone" {
        // It ends at once.
        return Some(in_memory(name, |link| forward_lines(link, |stream| async move { drop(stream) })));
    }
    if !["old", "new", "one", "two"].contains(&name) {
        return None;
    }
    let server = ScriptedServer { name: name.to_owned(), is_old: name != "new", calls: Arc::clone(calls) };
    Some(in_memory(name, move |link| {
        forward_lines(link, {
            let server = server.clone();
            |stream| server.serve(stream)
        })
    }))
}

#[derive(Clone)]
struct ScriptedServer {
    name: String,
    is_old: bool,
    calls: ReceivedCalls,
}

impl ScriptedServer {
    async fn serve(self, stream: DuplexStream) {
        let (read, mut write) = split(stream);
        let mut lines = BufReader::new(read).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap();
            let (id, params) = (&message["id"], &message["params"]);
            if id.is_null() {
                continue;
            }
            let answer = match message["method"].as_str().unwrap() {
                "initialize" if self.is_old => format!(
                    r#""result":{{"protocolVersion":"2025-06-18","capabilities":{{"tools":{{}},"resources":{{}},"logging":{{}},"tasks":{{"cancel":{{}},"requests":{{"tools":{{"call":{{}}}}}}}}}},"serverInfo":{}}}"#,
                    json!({"name": "old", "version": "1"})
                ),
                "server/discover" if !self.is_old => format!(
                    r#""result":{{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{{"tools":{{}},"resources":{{}},"extensions":{{"io.modelcontextprotocol/tasks":{{}}}}}},"ttlMs":0,"cacheScope":"private","_meta":{{"io.modelcontextprotocol/serverInfo":{}}}}}"#,
                    json!({"name": "new", "version": "1"})
                ),
                "tools/list" if ["one", "two"].contains(&&*self.name) => {
                    r#""result":{"tools":[{"name":"say","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://app/view.html"}}}]}"#.to_owned()
                }
                "resources/list" if ["one", "two"].contains(&&*self.name) => {
                    r#""result":{"resources":[{"uri":"ui://app/view.html","name":"view"}]}"#.to_owned()
                }
                "tools/list" => {
                    r#""result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"say","inputSchema":{"type":"object"}},{"name":"work","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}]}"#.to_owned()
                }
                "resources/list" => {
                    r#""result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","resources":[{"uri":"x:1","name":"x"}]}"#.to_owned()
                }
                "resources/read" | "resources/subscribe" if ["one", "two"].contains(&&*self.name) => {
                    let uri = params["uri"].as_str().unwrap();
                    let own = format!("u:{}", self.name);
                    match ["ui://app/view.html", "file:///x", &own].contains(&uri) {
                        true => format!(
                            r#""result":{{"ttlMs":7,"contents":[{}]}}"#,
                            json!({"uri": uri, "text": self.name})
                        ),
                        false => r#""error":{"code":-32002,"message":"no such resource"}"#.to_owned(),
                    }
                }
                "resources/read" => format!(
                    r#""error":{{"code":{},"message":"no","data":{{"supported":["1999-01-01"]}}}}"#,
                    mcp_host_model::code::UNSUPPORTED_PROTOCOL_VERSION
                ),
                "tools/call" => {
                    self.calls.lock().unwrap().push(params.clone());
                    let arguments = &params["arguments"];
                    let mut responses = Vec::new();
                    for (index, request) in arguments["ask"].as_array().into_iter().flatten().enumerate() {
                        let (method, params) = (&request["method"], &request["params"]);
                        let message = format!(r#"{{"jsonrpc":"2.0","id":"q{index}","method":{method},"params":{params}}}"#);
                        write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
                        let reply: Value =
                            serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
                        responses.push(reply["error"]["message"].as_str().unwrap_or("answered").to_owned());
                    }
                    for params in arguments["notify"].as_array().into_iter().flatten() {
                        let method = if self.is_old { "notifications/tasks/status" } else { "notifications/tasks" };
                        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
                        write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
                    }
                    match (arguments["result"].as_str(), arguments["error"].as_str()) {
                        (Some(result), _) => format!(r#""result":{result}"#),
                        (None, Some(error)) => format!(r#""error":{error}"#),
                        (None, None) => {
                            let content = json!([{"type": "text", "text": responses.join("; ")}]);
                            format!(r#""result":{{"content":{content}}}"#)
                        }
                    }
                }
                "tasks/get" if params["taskId"] == "t slow" => {
                    let mut calls = self.calls.lock().unwrap();
                    calls.push(params.clone());
                    let polls = calls.iter().filter(|it| it["taskId"] == "t slow").count();
                    let mut task = json!({"taskId": "t slow", "status": "working", "pollIntervalMs": 1});
                    if polls > SLOW_POLLS {
                        task["status"] = json!("completed");
                        task["result"] = json!({"content": [{"type": "text", "text": "late"}]});
                    }
                    task["resultType"] = json!("complete");
                    format!(r#""result":{task}"#)
                }
                method @ ("tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/update")
                    if params["taskId"] == "t 1" =>
                {
                    self.calls.lock().unwrap().push(params.clone());
                    let late = json!({"content": [{"type": "text", "text": "late"}]});
                    let result = match (method, self.is_old) {
                        ("tasks/result", true) => {
                            let mut result = late;
                            result["_meta"] = json!({"io.modelcontextprotocol/related-task": {"taskId": "t 1"}});
                            result
                        }
                        ("tasks/get", false) => {
                            json!({"resultType": "complete", "taskId": "t 1", "status": "completed", "result": late})
                        }
                        (_, true) => json!({"taskId": "t 1", "status": "completed"}),
                        (_, false) => json!({"resultType": "complete"}),
                    };
                    format!(r#""result":{result}"#)
                }
                "logging/setLevel" => r#""result":{}"#.to_owned(),
                _ => r#""error":{"code":-32601,"message":"no"}"#.to_owned(),
            };
            let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#);
            if write.write_all(format!("{answer}\n").as_bytes()).await.is_err() {
                return;
            }
            // Messages outside of the call.
            for level in params["arguments"]["log"].as_array().into_iter().flatten() {
                let params = json!({"level": level, "data": "later"});
                let message = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params});
                write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
            }
        }
    }
}
