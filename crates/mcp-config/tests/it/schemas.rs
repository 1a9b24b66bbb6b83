//! Snapshots of the schemas, and a check of HoloDeck's public types against the reader.

use std::collections::BTreeMap;

use mcp_host_config::holodeck::{CommandType, McpToolConfig, TransportType};
use mcp_host_config::{Profile, schema};

use crate::{diagnostic_lines, read_text};

#[test]
fn schemas_match_their_snapshots() {
    for &profile in Profile::ALL {
        insta::assert_snapshot!(
            format!("schema-{}", profile.as_str()),
            serde_json::to_string_pretty(&schema(profile)).unwrap()
        );
    }
}

#[test]
fn schemas_are_valid_and_have_no_internal_marks() {
    for &profile in Profile::ALL {
        let schema = schema(profile);
        assert!(jsonschema::meta::is_valid(&schema), "{}", profile.as_str());
        assert!(!schema.to_string().contains("x-optional"));
    }
}

#[test]
fn serialized_tool_configs_are_read_without_diagnostics() {
    let mut local = McpToolConfig::new("local", "d", "s");
    local.command = Some(CommandType::Uvx);
    local.args = Some(vec!["s".into()]);
    local.env = Some(BTreeMap::from([("A".into(), "${A}".into())]));
    local.env_file = Some(".env".into());
    local.encoding = Some("utf-8".into());
    local.load_prompts = false;
    let mut remote = McpToolConfig::new("remote", "d", "s");
    remote.transport = TransportType::WebSocket;
    remote.url = Some("wss://acme.example/".into());
    let text = serde_json::to_string(&serde_json::json!({ "tools": [local, remote] })).unwrap();
    let reading = read_text(Profile::HoloDeck, &text);
    assert_eq!(diagnostic_lines(&reading), "");
    assert_eq!(reading.servers.len(), 2);
    let back: serde_json::Value = serde_json::from_str(&text).unwrap();
    let back: McpToolConfig = serde_json::from_value(back["tools"][0].clone()).unwrap();
    assert_eq!(back, local);
}

#[test]
fn hd_010_hd_060_public_enums_serialize_as_in_the_contract() {
    let words = serde_json::json!([
        TransportType::Stdio,
        TransportType::Sse,
        TransportType::WebSocket,
        TransportType::Http,
        CommandType::Npx,
        CommandType::Uvx,
        CommandType::Docker
    ]);
    assert_eq!(words.to_string(), r#"["stdio","sse","websocket","http","npx","uvx","docker"]"#);
}
