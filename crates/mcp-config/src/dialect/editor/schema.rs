//! The JSON Schema of editor files: the positions of servers, and a server.

use mcp_host_model::TransportKind;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::de::{Field, Ignored, NullableField, OptionalField, OrderedMap};
use crate::dialect::call_rules::CallRuleText;
use crate::dialect::editor::conventions::{DISABLED, ENABLED, SwitchKey};
use crate::dialect::editor::keys::{self, EntryField, KEYS};
use crate::dialect::editor::transport::{DeclaredTransport, TRANSPORT_NAMES};
use crate::dialect::editor::wire::{
    CommandValue, ContinueOptions, Environment, Headers, Tools, TransportField,
};
use crate::dialect::lowering::SharingKey;
use crate::dialect::sandbox::SandboxValue;
use crate::dialect::wire_schema::resolve_optional_marks;

/// The JSON Schema of an editor file.
pub(crate) fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let properties = KEYS.iter().map(|key| {
        let mut schema = value_schema(key.field, &mut generator);
        schema.insert("description".to_owned(), key.description.into());
        if schema.get("format").is_some_and(|it| it == "double") {
            // Each number is a duration.
            schema.insert("exclusiveMinimum".to_owned(), 0.into());
        }
        (key.name.to_owned(), schema.to_value())
    });
    let properties: Map<String, Value> = properties.collect();
    let mut server = json!({
        "type": "object",
        "properties": properties,
        "title": "McpServer",
        "description": "An MCP server."
    });
    let mut definitions = Value::Object(generator.take_definitions(true));
    resolve_optional_marks(&mut server);
    resolve_optional_marks(&mut definitions);
    let mut starts = given_key_schemas(EntryField::Provided);
    starts.extend(["McpCommandGiven", "McpUrlGiven"].map(|it| json!({ "$ref": format!("#/$defs/{it}") })));
    server["anyOf"] = starts.into();
    server["allOf"] = transport_conditions();
    definitions["McpCommandGiven"] = json!({ "anyOf": given_key_schemas(EntryField::Command) });
    definitions["McpUrlGiven"] = json!({ "anyOf": given_key_schemas(EntryField::Url) });
    definitions["McpServer"] = server;
    definitions["McpServerOrOff"] = server_or_disabled_schema(json!({ "$ref": "#/$defs/McpServer" }));
    definitions["McpServers"] = servers_schema();
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
            "anyOf": keys
                .map(|it| json!({ "required": [it] }))
                .into_iter()
                .chain([server_map_schema(json!({ "$ref": "#/$defs/McpServerOrOff" }))])
                .collect::<Vec<_>>()
        },
        "$defs": definitions
    })
}

/// The schema of the values of a field.
fn value_schema(field: EntryField, generator: &mut SchemaGenerator) -> Schema {
    match field {
        EntryField::Name
        | EntryField::Description
        | EntryField::EnvFile
        | EntryField::Directory
        | EntryField::Url
        | EntryField::TokenVariable => NullableField::<String>::json_schema(generator),
        EntryField::Transport => NullableField::<TransportField>::json_schema(generator),
        EntryField::Command => NullableField::<CommandValue>::json_schema(generator),
        EntryField::Environment | EntryField::SecondEnvironment => {
            NullableField::<Environment>::json_schema(generator)
        }
        EntryField::Arguments
        | EntryField::RequiredVariables
        | EntryField::IncludedTools
        | EntryField::AvailableTools
        | EntryField::ExcludedTools => NullableField::<Vec<Field<String>>>::json_schema(generator),
        EntryField::Headers => NullableField::<Headers>::json_schema(generator),
        EntryField::HeaderVariables => NullableField::<OrderedMap<String>>::json_schema(generator),
        EntryField::ContinueOptions => NullableField::<ContinueOptions>::json_schema(generator),
        EntryField::Timeout
        | EntryField::RequestMilliseconds
        | EntryField::RequestSeconds
        | EntryField::ConnectMilliseconds
        | EntryField::StartSeconds
        | EntryField::StartMilliseconds => NullableField::<f64>::json_schema(generator),
        EntryField::Sharing => NullableField::<SharingKey>::json_schema(generator),
        EntryField::Sandbox => NullableField::<SandboxValue>::json_schema(generator),
        EntryField::SandboxEnabled | EntryField::Disabled | EntryField::Enabled => {
            NullableField::<bool>::json_schema(generator)
        }
        EntryField::Calls => NullableField::<Vec<Field<CallRuleText>>>::json_schema(generator),
        EntryField::Tools => NullableField::<Tools>::json_schema(generator),
        EntryField::Provided => NullableField::<Ignored>::json_schema(generator),
        EntryField::Kept => OptionalField::<Ignored>::json_schema(generator),
    }
}

/// For each key of a field, the schema of an object in which it has a value.
fn given_key_schemas(field: EntryField) -> Vec<Value> {
    let value = |key: &keys::EntryKey| {
        let name = key.name;
        json!({ "required": [name], "properties": { name: { "not": { "type": "null" } } } })
    };
    keys::of_field(field).map(value).collect()
}

/// The schema of a map of servers that is recognized by its content.
fn server_map_schema(server: Value) -> Value {
    let starts: Vec<Value> = keys::command_and_url_keys().map(|it| json!({ "required": [it] })).collect();
    json!({
        "type": "object",
        "minProperties": 1,
        "additionalProperties": { "type": "object", "anyOf": starts, "allOf": [server] }
    })
}

/// The schema of a disabled server, which may have any content, or of another one.
fn server_or_disabled_schema(server: Value) -> Value {
    let disabled = |SwitchKey { name, disabled_value }| {
        let properties = json!({ name: { "const": disabled_value } });
        json!({ "type": "object", "required": [name], "properties": properties })
    };
    json!({ "anyOf": [disabled(DISABLED), disabled(ENABLED), server] })
}

/// The schema of a list or a map of servers.
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
fn transport_conditions() -> Value {
    let (mut programs, mut urls) = (Vec::new(), Vec::new());
    for (word, transport) in TRANSPORT_NAMES {
        match transport {
            DeclaredTransport::Kind(TransportKind::Stdio) => programs.push(*word),
            DeclaredTransport::Kind(_) | DeclaredTransport::AnyUrl => urls.push(*word),
            DeclaredTransport::Undeclared | DeclaredTransport::BuiltIn | DeclaredTransport::Invalid => {}
        }
    }
    let all: Vec<&str> = programs.iter().chain(&urls).copied().collect();
    let words = [
        (programs, json!({ "$ref": "#/$defs/McpCommandGiven" })),
        (urls, json!({ "$ref": "#/$defs/McpUrlGiven" })),
    ];
    let mut res = Vec::new();
    for key in keys::of_field(EntryField::Transport).map(|it| it.name) {
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
