//! The example of a small agent.

#[path = "../../examples/acp_agent.rs"]
#[expect(dead_code, reason = "the example's `main`")]
mod acp_agent;

use mcp_testkit::servers::SHELL_SERVER;
use serde_json::{Value, json};

fn request(id: u32, method: &str, params: &Value) -> String {
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

#[tokio::test]
async fn example_agent_connects_servers_and_calls_a_tool() {
    let env = json!([{"name": "TOOL", "value": r#"text "$id" "called""#}]);
    let good = json!({"name": "sh", "command": "/bin/sh", "args": ["-c", SHELL_SERVER], "env": env});
    let bad = json!({"name": "files", "command": "npx", "args": [], "env": []});
    let input = [
        request(1, "initialize", &json!({"protocolVersion": 1})),
        request(2, "session/new", &json!({"cwd": "/tmp", "mcpServers": [bad]})),
        request(3, "session/new", &json!({"cwd": "/tmp", "mcpServers": [good]})),
        request(
            4,
            "session/prompt",
            &json!({"sessionId": "session-1", "prompt": [{"type": "text", "text": "sh__t {}"}]}),
        ),
    ];
    let mut output = Vec::new();
    acp_agent::serve(input.concat().as_bytes(), &mut output).await.unwrap();
    let output = String::from_utf8(output).unwrap();
    let lines: Vec<Value> = output.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        lines[0]["result"]["agentCapabilities"]["mcpCapabilities"],
        json!({"http": true, "sse": false})
    );
    assert_eq!(lines[1]["error"]["code"], -32602, "{output}");
    assert_eq!(lines[2]["result"]["_meta"]["mcpServers"][0]["status"], "connected", "{output}");
    assert_eq!(lines[3]["params"]["update"]["content"]["text"], "called", "{output}");
    assert_eq!(lines[4]["result"]["stopReason"], "end_turn");
}
