//! Servers of the agent's own configuration, shared by its sessions and started with their first prompts.

use mcp_host_acp::AcpVersion;
use mcp_testkit::program::binary;
use serde_json::{Value, json};

use super::raw_client::RawClient;
use super::{agent, servers};

#[test]
fn agents_own_servers_start_with_the_first_prompt_and_are_marked() {
    for version in [AcpVersion::V1, AcpVersion::V2] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mcp.json");
        let demo = json!({ "command": binary(), "args": ["demo-server"], "env": { "DEMO_COLOUR": "own" } });
        let config = json!({ "mcpServers": { "own": demo, "pipe": demo } });
        std::fs::write(&file, config.to_string()).unwrap();
        let arguments = ["--first-use", "--share", "--config", file.to_str().unwrap()];
        let mut client = RawClient::start(version, &agent(&arguments), folder.path());
        let list = json!([servers::stdio(version, "pipe", "green")]);
        let begun = client.asks("session/new", json!({ "cwd": "/", "mcpServers": list }))["result"].take();
        let states = |meta: &Value| -> Vec<String> {
            let servers = meta["mcpServers"].as_array().unwrap();
            servers.iter().map(|it| format!("{} {} {}", it["name"], it["source"], it["status"])).collect()
        };
        let before = states(&begun["_meta"]);
        assert_eq!(before, [r#""pipe" "client" "not_started""#, r#""own" "agent" "not_started""#]);
        let report = begun["_meta"]["mcpReports"][0]["message"].as_str().unwrap();
        assert_eq!(report, "it replaces the agent's own server of the same name");
        let (first, second) = (begun["sessionId"].clone(), client.session(list));
        for session in [&first, &second] {
            let tools = client.turn(session, "/tools");
            assert!(tools.contains("own__echo of own (agent)\n"), "{tools}");
            assert!(tools.contains("pipe__echo of pipe\n"), "{tools}");
            assert_eq!(client.turn(session, r#"/pipe__env {"name": "DEMO_COLOUR"}"#), "green");
            assert_eq!(client.turn(session, r#"/own__env {"name": "DEMO_COLOUR"}"#), "own");
        }
        client.end();
    }
}

#[test]
fn agent_with_an_unusable_configuration_does_not_start() {
    let command = agent(&["--config", "/no/such/mcp.json"]);
    let output = std::process::Command::new(&command[0]).args(&command[1..]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr.starts_with("error: cannot read /no/such/mcp.json: "), "{stderr}");
}
