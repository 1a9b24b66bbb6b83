//! Snapshots of the schemas, and a check of HoloDeck's public types against the reader.

use std::collections::BTreeMap;

use mcp_config::holodeck::{CommandType, McpToolConfig, ToolType, TransportType};
use mcp_config::{Profile, schema};

use crate::{found, reading};

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
    let local = McpToolConfig {
        name: "local".into(),
        description: "d".into(),
        tool_type: ToolType::Mcp,
        server: "s".into(),
        transport: TransportType::Stdio,
        command: Some(CommandType::Uvx),
        args: Some(vec!["s".into()]),
        env: Some(BTreeMap::from([("A".into(), "${A}".into())])),
        env_file: Some(".env".into()),
        encoding: Some("utf-8".into()),
        url: None,
        headers: None,
        timeout: None,
        sse_read_timeout: None,
        terminate_on_close: None,
        config: None,
        load_tools: true,
        load_prompts: false,
        request_timeout: 60,
    };
    let remote = McpToolConfig {
        name: "remote".into(),
        transport: TransportType::WebSocket,
        command: None,
        args: None,
        env: None,
        env_file: None,
        encoding: None,
        url: Some("wss://acme.example/".into()),
        ..local.clone()
    };
    let text = serde_json::to_string(&serde_json::json!({ "tools": [local, remote] })).unwrap();
    let reading = reading(Profile::HoloDeck, &text);
    assert_eq!(found(&reading), "");
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
