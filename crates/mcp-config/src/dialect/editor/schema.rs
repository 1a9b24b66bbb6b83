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
    let mut reached = given(&["settings", "source"]);
    reached.extend(["McpCommandGiven", "McpUrlGiven"].map(|it| json!({ "$ref": format!("#/$defs/{it}") })));
    members.insert("anyOf".to_owned(), reached.into());
    members.insert("allOf".to_owned(), conditions());
    definitions.insert("McpCommandGiven".to_owned(), json!({ "anyOf": given(&COMMAND_KEYS) }));
    definitions.insert("McpUrlGiven".to_owned(), json!({ "anyOf": given(&URL_KEYS) }));
    definitions.insert("McpServer".to_owned(), server);
    definitions.insert(
        "McpServerOrOff".to_owned(),
        server_or_disabled_schema(json!({ "$ref": "#/$defs/McpServer" })),
    );
    definitions.insert("McpServers".to_owned(), servers_schema());
    let is_server_map = server_map_schema(json!({}));
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
                "mcp": {
                    "if": { "type": "object", "required": ["servers"] },
                    "then": { "properties": { "servers": list } },
                    "else": { "if": is_server_map, "then": list }
                }
            },
            "anyOf": keys.map(|it| json!({ "required": [it] })).into_iter().chain([server_map_schema(json!({ "$ref": "#/$defs/McpServerOrOff" }))]).collect::<Vec<_>>()
        },
        "$defs": definitions
    })
}

/// The keys of the program to start.
const COMMAND_KEYS: [&str; 2] = ["command", "cmd"];

/// The keys of the URL.
const URL_KEYS: [&str; 4] = ["url", "serverUrl", "httpUrl", "uri"];

/// For each key, the schema of an object that has it with a value.
fn given(keys: &[&str]) -> Vec<Value> {
    let value =
        |key: &&str| json!({ "required": [key], "properties": { *key: { "not": { "type": "null" } } } });
    keys.iter().map(value).collect()
}

/// The schema of a map of servers that is recognized by its content.
fn server_map_schema(server: Value) -> Value {
    let reached = ["command", "url", "serverUrl", "httpUrl"].map(|it| json!({ "required": [it] }));
    json!({
        "type": "object",
        "minProperties": 1,
        "additionalProperties": { "type": "object", "anyOf": reached, "allOf": [server] }
    })
}

/// The schema of a disabled server, which may have any content, or of another one.
fn server_or_disabled_schema(server: Value) -> Value {
    let off = |key: &str, value: bool| json!({ "type": "object", "required": [key], "properties": { key: { "const": value } } });
    json!({ "anyOf": [off("disabled", true), off("enabled", false), server] })
}

fn servers_schema() -> Value {
    let server = json!({ "$ref": "#/$defs/McpServerOrOff" });
    let named = server_or_disabled_schema(
        json!({ "$ref": "#/$defs/McpServer", "properties": { "name": { "type": "string", "minLength": 1 } } }),
    );
    json!({
        "if": { "type": "array" },
        "then": { "items": { "type": "object", "required": ["name"], "allOf": [named] } },
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
        (vec!["stdio", "local"], json!({ "$ref": "#/$defs/McpCommandGiven" })),
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
            json!({ "$ref": "#/$defs/McpUrlGiven" }),
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
