//! The JSON Schema of editor files: the positions of servers, and a server.

use serde_json::{Value, json};

use crate::dialect::editor::wire::EditorServer;
use crate::dialect::schema::wire_schema;

/// The schema.
pub(crate) fn schema() -> Value {
    let mut server = wire_schema::<EditorServer>();
    let members = server.as_object_mut().expect("the schema of a struct is an object");
    members.remove("$schema");
    let mut definitions = match members.remove("$defs") {
        Some(Value::Object(definitions)) => definitions,
        _ => serde_json::Map::new(),
    };
    let given =
        |key: &str| json!({ "required": [key], "properties": { key: { "not": { "type": "null" } } } });
    let reached: Vec<Value> =
        ["command", "url", "serverUrl", "httpUrl", "settings", "source"].map(given).into();
    members.insert("anyOf".to_owned(), reached.into());
    members.insert("allOf".to_owned(), conditions());
    definitions.insert("McpServer".to_owned(), server);
    definitions.insert("McpServerOrOff".to_owned(), server_or_disabled_schema());
    definitions.insert("McpServers".to_owned(), servers_schema());
    let keys = ["mcpServers", "servers", "mcp.servers", "context_servers", "mcp"];
    let list = json!({ "$ref": "#/$defs/McpServers" });
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "MCP servers of an editor or agent",
        "description": "An `mcp.json`, or settings that hold servers; the rest of the settings is not described here.",
        "if": { "type": "array" },
        "then": list,
        "else": {
            "type": "object",
            "properties": {
                "mcpServers": list,
                "servers": list,
                "mcp.servers": list,
                "context_servers": list,
                "mcp": { "type": "object", "properties": { "servers": list } },
                "inputs": { "type": "array" }
            },
            "anyOf": keys.map(|it| json!({ "required": [it] })).into_iter().chain([server_map_schema()]).collect::<Vec<_>>()
        },
        "$defs": definitions
    })
}

/// The schema of a file that is itself a map of servers.
fn server_map_schema() -> Value {
    let reached = ["command", "url", "serverUrl", "httpUrl"].map(|it| json!({ "required": [it] }));
    json!({
        "minProperties": 1,
        "additionalProperties": { "type": "object", "anyOf": reached, "$ref": "#/$defs/McpServerOrOff" }
    })
}

/// The schema of a server, or of a disabled server, which may have any content.
fn server_or_disabled_schema() -> Value {
    let off = |key: &str, value: bool| json!({ "type": "object", "required": [key], "properties": { key: { "const": value } } });
    json!({ "anyOf": [off("disabled", true), off("enabled", false), { "$ref": "#/$defs/McpServer" }] })
}

fn servers_schema() -> Value {
    let server = json!({ "$ref": "#/$defs/McpServerOrOff" });
    json!({
        "if": { "type": "array" },
        "then": { "items": { "allOf": [server, { "type": "object", "required": ["name"] }] } },
        "else": {
            "type": ["object", "null"],
            "patternProperties": { "^(//|\\$)": {} },
            "propertyNames": { "minLength": 1, "maxLength": 256 },
            "additionalProperties": server
        }
    })
}

/// The keys that each named transport requires.
fn conditions() -> Value {
    let words = [
        (vec!["stdio", "local"], json!({ "required": ["command"] })),
        (
            vec![
                "http",
                "streamable-http",
                "streamable_http",
                "streamableHttp",
                "streamableHTTP",
                "sse",
                "ws",
                "websocket",
                "remote",
            ],
            json!({ "anyOf": [{ "required": ["url"] }, { "required": ["serverUrl"] }, { "required": ["httpUrl"] }] }),
        ),
    ];
    let all: Vec<&str> = words.iter().flat_map(|it| it.0.iter().copied()).collect();
    let mut res = Vec::new();
    for key in ["type", "transport", "transportType"] {
        res.push(json!({
            "properties": { key: {
                "if": { "type": "string" },
                "then": { "enum": all },
                "else": { "properties": { "type": { "enum": all } } }
            } }
        }));
        for (words, needs) in &words {
            res.push(json!({
                "if": { "required": [key], "properties": { key: { "enum": words } } },
                "then": needs
            }));
        }
    }
    Value::Array(res)
}
