//! A small ACP agent, version 1, on plain JSON lines: `cargo run -p mcp-host-acp-agent --example acp_agent`.
//!
//! It connects the MCP servers of each session and has its user as the model: the prompt `files__list {"path": "/"}` calls
//! a tool. It handles one request at a time. With the SDK, prompts and cancellation run beside each other:
//! see the example of the crate's documentation.

use std::collections::HashMap;

use mcp_acp::{AcpVersion, AgentProfile, Capabilities, SessionRequest, validate};
use mcp_acp_agent::{ConnectOptions, SessionMcp, SessionSetupError, ToolCall};
use mcp_model::{RawJson, RpcError};
use serde_json::{Value, json};
use tokio::io::{self, AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};

/// What `initialize` declares and what requests are checked against.
const CAPABILITIES: Capabilities = {
    let mut capabilities = Capabilities::STDIO;
    capabilities.http = true;
    capabilities
};

/// The sessions and the servers of each.
#[derive(Default)]
struct Agent(HashMap<String, SessionMcp>);

impl Agent {
    /// Responds to a request. The second value is a notification to send before the response.
    async fn respond(&mut self, line: &str) -> (Result<Value, Value>, Option<Value>) {
        let message: Value = serde_json::from_str(line).unwrap_or_default();
        let params = &message["params"];
        match message["method"].as_str() {
            Some("initialize") => {
                let mcp = json!({"http": CAPABILITIES.http, "sse": CAPABILITIES.sse});
                (Ok(json!({"protocolVersion": 1, "agentCapabilities": {"mcpCapabilities": mcp}})), None)
            }
            Some("session/new") => (self.new_session(line).await, None),
            Some("session/prompt") => match self.0.get(params["sessionId"].as_str().unwrap_or_default()) {
                Some(servers) => {
                    let answer =
                        turn(servers, params["prompt"][0]["text"].as_str().unwrap_or_default()).await;
                    let content = json!({"type": "text", "text": answer});
                    let update = json!({"sessionUpdate": "agent_message_chunk", "content": content});
                    let params = json!({"sessionId": params["sessionId"], "update": update});
                    let update = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
                    (Ok(json!({"stopReason": "end_turn"})), Some(update))
                }
                None => (Err(json!({"code": -32602, "message": "no such session"})), None),
            },
            _ => (Err(json!({"code": -32601, "message": "method not found"})), None),
        }
    }

    /// Connects the servers of a session. An error lists everything that is wrong with the request, as the client expects it.
    async fn new_session(&mut self, line: &str) -> Result<Value, Value> {
        let id = format!("session-{}", self.0.len() + 1);
        let servers = connect(line).await.map_err(|error| json!(RpcError::from(&error)))?;
        let response = json!({"sessionId": id, "_meta": servers.to_meta()});
        self.0.insert(id, servers);
        Ok(response)
    }
}

async fn connect(line: &str) -> Result<SessionMcp, SessionSetupError> {
    // The request is passed on as it was sent, because its defects are reported with their positions.
    let request = RawJson::parse(line.to_owned().into()).expect("it was read as JSON");
    let request = SessionRequest::read(&request)?;
    let validated = validate(&request, &AgentProfile::new(AcpVersion::V1, &CAPABILITIES))?;
    // Servers that need longer than 30 s join later; a failed one is a status, not an error.
    SessionMcp::connect(validated, ConnectOptions::default()).await
}

/// One turn: calls the tool that the prompt names, or lists the tools.
async fn turn(servers: &SessionMcp, prompt: &str) -> String {
    let (tool, arguments) = prompt.split_once(' ').unwrap_or((prompt, "{}"));
    match RawJson::parse(arguments.to_owned().into()) {
        Ok(arguments) if !tool.is_empty() => {
            let result = servers.call(ToolCall::new(tool, arguments)).await;
            result.error.as_ref().map_or_else(|| result.text(), |error| error.message.clone())
        }
        _ => servers.tools().iter().map(|tool| tool.name.to_string()).collect::<Vec<_>>().join("\n"),
    }
}

/// Serves a client until it closes its end. Then all servers of all sessions have ended.
pub(crate) async fn serve(
    input: impl AsyncBufRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let (mut agent, mut lines) = (Agent::default(), input.lines());
    while let Some(line) = lines.next_line().await? {
        let Some(id) = serde_json::from_str::<Value>(&line).ok().and_then(|it| it.get("id").cloned()) else {
            continue;
        };
        let (result, update) = agent.respond(&line).await;
        let response = match result {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
        };
        for message in update.into_iter().chain([response]) {
            output.write_all(format!("{message}\n").as_bytes()).await?;
        }
        output.flush().await?;
    }
    for servers in agent.0.into_values() {
        servers.close().await;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> io::Result<()> {
    serve(io::BufReader::new(io::stdin()), io::stdout()).await
}
