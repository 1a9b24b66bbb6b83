//! A minimal client for JSON lines.

use mcp_host_demo::{DemoError, ServeOutcome};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf},
    task::JoinHandle,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Sessionless,
}

pub(crate) const BOTH: [Era; 2] = [Era::Legacy, Era::Sessionless];

impl Era {
    /// Adds the `_meta` that requests of this era have, with the capabilities of the client.
    pub(crate) fn add_meta(self, mut params: Value, offers: &Value) -> Value {
        if self == Era::Sessionless {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = offers.clone();
        }
        params
    }
}

pub(crate) struct Client {
    era: Era,
    offers: Value,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
    server: JoinHandle<Result<ServeOutcome, DemoError>>,
    last: u64,
}

impl Client {
    pub(crate) async fn open(era: Era) -> Client {
        Client::with_capabilities(era, json!({})).await
    }

    pub(crate) async fn with_capabilities(era: Era, offers: Value) -> Client {
        let (here, there) = tokio::io::duplex(1 << 20);
        let (read, write) = tokio::io::split(there);
        let server = tokio::spawn(mcp_host_demo::serve_stream(read, write));
        let (read, write) = tokio::io::split(here);
        let mut res = Client {
            era,
            offers: offers.clone(),
            lines: BufReader::new(read).lines(),
            write,
            server,
            last: 0,
        };
        if era == Era::Legacy {
            let params = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": offers,
                "clientInfo": {"name": "test", "version": "0"},
            });
            let answer = res.request("initialize", params).await;
            assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
            res.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        }
        res
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// Sends a request. Returns its id.
    pub(crate) async fn send_request(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let params = self.era.add_meta(params, &self.offers);
        self.send(json!({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})).await;
        self.last
    }

    /// The next message, or `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let line = self.lines.next_line().await.unwrap()?;
        Some(serde_json::from_str(&line).unwrap())
    }

    /// Sends a request. Returns the next message, which must be its response.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send_request(method, params).await;
        let answer = self.next().await.unwrap();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool and returns all messages up to the response as text.
    pub(crate) async fn call(&mut self, params: Value) -> String {
        let id = self.send_request("tools/call", params).await;
        let mut res = Vec::new();
        loop {
            let message = self.next().await.expect("an answer");
            res.push(describe(&message));
            if message["id"] == id && message.get("method").is_none() {
                return res.join(", ");
            }
        }
    }

    /// Closes the connection. Returns how the server ended.
    pub(crate) async fn close(self) -> ServeOutcome {
        drop(self.write);
        drop(self.lines);
        self.server.await.unwrap().unwrap()
    }
}

/// A message of the server as text.
pub(crate) fn describe(message: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    let params = &message["params"];
    match message["method"].as_str() {
        Some("notifications/progress") => format!("{} of {}", params["progress"], params["total"]),
        Some("notifications/message") => text(&params["level"]),
        Some("notifications/tools/list_changed") => "list changed".to_owned(),
        Some("notifications/subscriptions/acknowledged") => format!("listening {}", params["notifications"]),
        Some(other) => other.to_owned(),
        None if message.get("error").is_some() => {
            format!("{}: {}", message["error"]["code"], text(&message["error"]["message"]))
        }
        None => describe_result(&message["result"]),
    }
}

fn describe_result(result: &Value) -> String {
    if result["resultType"] == "input_required" {
        let request = &result["inputRequests"]["answer"];
        return format!("{} needed, state {}", request["method"], result["requestState"]);
    }
    let blocks = result["content"].as_array().into_iter().flatten();
    let blocks: Vec<String> = blocks
        .map(|block| match block["type"].as_str() {
            Some("text") => block["text"].as_str().unwrap_or("?").to_owned(),
            Some("resource") => format!("resource {}", block["resource"]["uri"]),
            Some("resource_link") => format!("link {}", block["uri"]),
            other => format!("{} {}", other.unwrap_or("?"), block["mimeType"]),
        })
        .collect();
    let mut res = blocks.join("; ");
    if result["isError"] == true {
        res.insert_str(0, "failed: ");
    }
    if let Some(structured) = result.get("structuredContent") {
        res.push_str(&format!(" {structured}"));
    }
    res
}
