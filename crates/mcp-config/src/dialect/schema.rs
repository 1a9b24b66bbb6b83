//! The JSON Schema of each profile, generated from the serde structs.

use serde_json::{Map, Value, json};

use mcp_host_model::Profile;

use crate::dialect::wire_schema::wire_schema;
use crate::dialect::{acp, dominds, editor, holodeck};
use crate::profile::rules::{ForeignRule, NameRule, OtherTypes, ProfileRules};

/// The JSON Schema (draft 2020-12) of the files of a profile.
///
/// HoloDeck's schema describes the MCP items of `tools` and allows any other content of an agent.
pub fn schema(profile: Profile) -> Value {
    let rules = ProfileRules::for_profile(profile);
    match profile {
        Profile::HoloDeck | Profile::HoloDeck07 => holodeck_schema(rules),
        Profile::Dominds => dominds_schema(),
        Profile::AcpV1 | Profile::AcpV2 => acp::schema(profile),
        Profile::McpJson => editor::schema(),
    }
}

/// The schema of a workspace. A disabled server may have any content, and so may the keys of the other transport.
fn dominds_schema() -> Value {
    let mut res = wire_schema::<dominds::DomindsFile>();
    let disabled =
        json!({ "type": "object", "required": ["enabled"], "properties": { "enabled": { "const": false } } });
    if let Some(server) = res.pointer_mut("/properties/servers/additionalProperties") {
        *server = json!({ "anyOf": [disabled, server.take()] });
    }
    let server = &mut res["$defs"]["DomindsServer"];
    for (condition, keys) in [dominds::STDIO_KEYS, dominds::URL_KEYS].into_iter().enumerate() {
        for key in keys {
            let value = server["properties"][key].take();
            server["properties"][key] = json!({ "description": value["description"] });
            server["allOf"][condition]["then"]["properties"][key] = value;
        }
    }
    res
}

/// The schema of an agent: a list of tools; those of type `mcp` are described.
fn holodeck_schema(rules: &ProfileRules) -> Value {
    let mut item = wire_schema::<holodeck::ToolItem>();
    let members = item.as_object_mut().expect("the schema of a struct is an object");
    let mut definitions = match members.remove("$defs") {
        Some(Value::Object(definitions)) => definitions,
        _ => Map::new(),
    };
    members.remove("$schema");
    apply_rules(members, rules);
    definitions.insert("McpTool".to_owned(), item);
    let mut tool_type = json!({ "type": "string" });
    if rules.other_types == OtherTypes::Known {
        tool_type["enum"] = holodeck::tool_types().collect();
    }
    let mut res = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "MCP servers of a HoloDeck agent",
        "description": "The items of `tools` with `type: mcp`; the rest of an agent is not described here.",
        "type": "object",
        "properties": {
            "tools": {
                "type": ["array", "null"],
                "items": {
                    "type": "object",
                    "required": ["type"],
                    "properties": { "type": tool_type },
                    "if": { "properties": { "type": { "const": "mcp" } }, "required": ["type"] },
                    "then": { "$ref": "#/$defs/McpTool" }
                }
            }
        },
        "$defs": definitions
    });
    if let Some(max_tools) = rules.max_tools {
        res["properties"]["tools"]["maxItems"] = max_tools.into();
    }
    res
}

/// Adapts the schema of an item to the rules of a profile.
fn apply_rules(item: &mut Map<String, Value>, rules: &ProfileRules) {
    if let Some(Value::Array(required)) = item.get_mut("required") {
        required.extend(rules.required_keys.iter().map(|it| Value::from(*it)));
    }
    let Some(Value::Object(properties)) = item.get_mut("properties") else { return };
    properties.retain(|key, _| !rules.unsupported_keys.contains(&key.as_str()));
    if let (Some(Value::Object(command)), Some(commands)) =
        (properties.get_mut("command"), rules.allowed_commands)
    {
        let words = commands.iter().map(|it| Value::from(*it)).chain([Value::Null]);
        command.insert("enum".to_owned(), words.collect());
    }
    if let (NameRule::Word, Some(Value::Object(name))) = (rules.name_rule, properties.get_mut("name")) {
        name.insert("pattern".to_owned(), "^[0-9A-Za-z_]+$".into());
    }
    item.insert("allOf".to_owned(), transport_conditions(rules));
}

/// The conditions of the schema: the keys that each transport requires and excludes.
fn transport_conditions(rules: &ProfileRules) -> Value {
    let has_value =
        |key: &str| json!({ "required": [key], "properties": { key: { "not": { "type": "null" } } } });
    let url_based = json!({
        "required": ["transport"],
        "properties": { "transport": { "enum": ["sse", "websocket", "http"] } }
    });
    let exclusive = rules.foreign_fields == ForeignRule::Exclusive;
    let with_url = match exclusive {
        true => json!({ "allOf": [has_value("url"), { "not": has_value("command") }] }),
        false => has_value("url"),
    };
    let mut started = vec![has_value("command")];
    if !rules.unsupported_keys.contains(&"server") {
        started.push(json!({
            "not": { "required": ["transport"] },
            "required": ["server"],
            "properties": {
                "server": { "pattern": "^@[A-Za-z0-9._~-]+/[A-Za-z0-9._~-]+(@[A-Za-z0-9._~-]+)?$" }
            }
        }));
    }
    let with_command = match exclusive {
        true => json!({ "anyOf": started, "not": has_value("url") }),
        false => json!({ "anyOf": started }),
    };
    let mut res = vec![json!({ "if": url_based, "then": with_url, "else": with_command })];
    if !rules.unsupported_keys.contains(&"envFile") {
        res.push(json!({ "not": { "allOf": [has_value("envFile"), has_value("env_file")] } }));
    }
    Value::Array(res)
}
