//! The example of a small agent.

#[path = "../../examples/acp_agent.rs"]
#[expect(dead_code, reason = "the example's `main`")]
mod acp_agent;

use agent_client_protocol::Channel;
use mcp_testkit::servers::SHELL_SERVER;
use serde_json::json;

use crate::raw_client::RawClient;

#[tokio::test]
async fn example_agent_connects_servers_and_calls_a_tool() {
    let (client, channel) = Channel::duplex();
    let agent = tokio::spawn(acp_agent::serve(channel));
    let mut client = RawClient::new(client);
    let env = json!([{"name": "TOOL", "value": r#"text "$id" "called""#}]);
    let good = json!({"name": "sh", "command": "/bin/sh", "args": ["-c", SHELL_SERVER], "env": env});
    let bad = json!({"name": "files", "command": "npx", "args": [], "env": []});

    let initialized = client.request("initialize", json!({"protocolVersion": 1})).await;
    let declared = &initialized["result"]["agentCapabilities"]["mcpCapabilities"];
    assert_eq!((&declared["http"], &declared["sse"]), (&json!(true), &json!(false)), "{initialized}");
    let refused = client.request("session/new", json!({"cwd": "/tmp", "mcpServers": [bad]})).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let created = client.request("session/new", json!({"cwd": "/tmp", "mcpServers": [good]})).await;
    assert_eq!(created["result"]["_meta"]["mcpServers"][0]["status"], "connected", "{created}");

    let session = &created["result"]["sessionId"];
    let prompt = |text: &str| json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    for (text, want) in [("sh__t {}", "called"), ("hello", "sh__t")] {
        client.send_request("session/prompt", prompt(text));
        let update = client.receive().await;
        assert_eq!(update["params"]["update"]["content"]["text"], want, "{update}");
        assert_eq!(client.receive().await["result"]["stopReason"], "end_turn");
    }
    let unknown = client.request("session/prompt", json!({"sessionId": "other", "prompt": []})).await;
    assert_eq!(unknown["error"]["code"], -32002, "{unknown}");

    drop(client);
    agent.await.unwrap().unwrap();
}
