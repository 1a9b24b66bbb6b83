//! The JSON Schema of a session request, its `params`, the list of servers, or one of them.

use serde_json::{Map, Value, json};

use mcp_host_model::Profile;

use crate::dialect::acp::rules::{MethodRules, ProtocolRules, Requirement, UntypedEntry};
use crate::dialect::acp::wire::{AcpStdio, AcpTunnel, AcpUrl};
use crate::dialect::wire_schema::wire_schema;

/// The schema of the requests of a protocol version.
pub(crate) fn schema(profile: Profile) -> Value {
    let rules = ProtocolRules::for_profile(profile);
    let mut definitions = Map::new();
    for (name, mut it) in [
        ("Stdio", wire_schema::<AcpStdio>()),
        ("Url", wire_schema::<AcpUrl>()),
        ("OverAcp", wire_schema::<AcpTunnel>()),
    ] {
        let members = it.as_object_mut().expect("the schema of a struct is an object");
        members.remove("$schema");
        if let Some(Value::Object(own)) = members.remove("$defs") {
            definitions.extend(own);
        }
        if rules.list_requirement == Requirement::Required {
            require_lists(members);
        }
        definitions.insert(name.to_owned(), it);
    }
    definitions.insert("Server".to_owned(), server_schema(rules));
    definitions
        .insert("Servers".to_owned(), json!({ "type": "array", "items": { "$ref": "#/$defs/Server" } }));
    definitions.insert("Params".to_owned(), params_schema());
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": format!("MCP servers of an ACP session, protocol version {}", rules.version),
        "description": "A request that carries servers, its `params`, the list of servers, or one of them.",
        "if": { "type": "array" },
        "then": { "$ref": "#/$defs/Servers" },
        "else": {
            "type": "object",
            "if": { "anyOf": [{ "required": ["method"] }, { "required": ["params"] }] },
            "then": request_schema(rules),
            "else": {
                "if": { "required": ["mcpServers"] },
                "then": { "$ref": "#/$defs/Params" },
                "else": { "$ref": "#/$defs/Server" }
            }
        },
        "$defs": definitions
    })
}

/// Adds the lists to `required`, for version 1.
fn require_lists(members: &mut Map<String, Value>) {
    let stdio = members.get("title").is_some_and(|it| it == "AcpStdio");
    let lists: &[&str] = match (stdio, members.get("properties").and_then(|it| it.get("serverId"))) {
        (true, _) => &["args", "env"],
        (false, None) => &["headers"],
        (false, Some(_)) => &[],
    };
    if let Some(Value::Array(required)) = members.get_mut("required") {
        required.extend(lists.iter().map(|it| Value::from(*it)));
    }
}

/// The schema of an entry, selected by its type.
fn server_schema(rules: &ProtocolRules) -> Value {
    let is = |kind: &str| json!({ "required": ["type"], "properties": { "type": { "const": kind } } });
    let refer = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
    let mut types: Vec<Value> = rules.transport_types.iter().map(|it| json!({ "const": it })).collect();
    if rules.allows_extensions {
        types.push(json!({ "pattern": "^_" }));
    }
    let url = json!({
        "required": ["type"],
        "properties": { "type": { "enum": ["http", "sse"] } }
    });
    let (required, stdio) = match rules.untyped {
        UntypedEntry::Stdio => {
            (json!(["name"]), json!({ "anyOf": [{ "not": { "required": ["type"] } }, is("stdio")] }))
        }
        UntypedEntry::Error => (json!(["name", "type"]), is("stdio")),
    };
    json!({
        "type": "object",
        "required": required,
        "properties": { "type": { "type": "string", "anyOf": types }, "name": { "type": "string", "minLength": 1 } },
        "allOf": [
            { "if": stdio, "then": refer("Stdio") },
            { "if": url, "then": refer("Url") },
            { "if": is("acp"), "then": refer("OverAcp") }
        ]
    })
}

/// The schema of the `params` of a request.
fn params_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "cwd": { "type": "string", "pattern": r"^(/|[A-Za-z]:[\\/]|\\\\)" },
            "mcpServers": { "anyOf": [{ "$ref": "#/$defs/Servers" }, { "type": "null" }] }
        }
    })
}

/// The schema of a JSON-RPC request.
fn request_schema(rules: &ProtocolRules) -> Value {
    let names = |is_listed: &dyn Fn(&MethodRules) -> bool| -> Vec<&str> {
        rules.methods.iter().filter(|it| is_listed(it)).map(|it| it.name).collect()
    };
    let requires = |methods: Vec<&str>, key: &str, value: Value| {
        json!({
            "if": { "required": ["method"], "properties": { "method": { "enum": methods } } },
            "then": { "properties": { "params": { "required": [key], "properties": { key: value } } } }
        })
    };
    let session_id = json!({ "type": "string", "pattern": r"\S" });
    let with_servers = names(&|it| it.servers == Requirement::Required);
    let with_session = names(&|it| it.session_id == Requirement::Required);
    json!({
        "required": ["params"],
        "properties": {
            "method": { "enum": names(&|_| true) },
            "params": { "allOf": [{ "$ref": "#/$defs/Params" }, { "required": ["cwd"] }] }
        },
        "allOf": [
            requires(with_servers, "mcpServers", json!(true)),
            requires(with_session, "sessionId", session_id)
        ]
    })
}
