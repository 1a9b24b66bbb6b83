//! Client information in requests: name, capabilities, and the `_meta` members of the modern era.

use mcp_host_model::{LogLevel, ProtocolVersion, TASKS_EXTENSION};
use serde_json::json;

use crate::rpc::caller::{capability_members, json_member};
use crate::rpc::object_members::{MemberName, ObjectMembers};
use crate::rpc::request_owner::CallOwner;
use crate::session::options::{ClientInfo, SessionOptions};

/// Returns the `_meta` members of a modern request of `owner`, as JSON text without braces. Requests without an owner,
/// for example lists, declare the configured capabilities. Capabilities that only 2025-11-25 has are left out. For a
/// server with tasks (`has_tasks`) the extension for tasks is declared too.
pub(crate) fn modern_meta(
    version: ProtocolVersion,
    options: &SessionOptions,
    owner: &CallOwner,
    log_level: Option<LogLevel>,
    has_tasks: bool,
) -> String {
    let level =
        log_level.map(|it| format!(r#","io.modelcontextprotocol/logLevel":"{it}""#)).unwrap_or_default();
    let session = &options.handlers;
    let declared = match owner {
        CallOwner::None => declared_members(options),
        CallOwner::Session => with_config_member(capability_members(&[session]), options),
        CallOwner::Caller(caller) => match &caller.capabilities {
            Some(capabilities) => capabilities.members(config_json(options)),
            None => with_config_member(capability_members(&[&caller.handlers, session]), options),
        },
    };
    let declared = declared.into_iter().filter(|it| !it.starts_with("\"tasks\":"));
    let mut capabilities: Vec<String> =
        declared.map(|it| remove_nested_member(it, "roots", "listChanged")).collect();
    if has_tasks {
        declare_tasks(&mut capabilities);
    }
    format!(
        r#""io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientInfo":{},"io.modelcontextprotocol/clientCapabilities":{}{level}"#,
        client_json(&options.client),
        json_object(&capabilities),
    )
}

/// Adds the extension for tasks to the members of capabilities.
fn declare_tasks(members: &mut Vec<String>) {
    let tasks = format!("\"{TASKS_EXTENSION}\":{{}}");
    match members.iter_mut().find(|it| it.starts_with("\"extensions\":{")) {
        Some(extensions) if extensions.contains(&format!("\"{TASKS_EXTENSION}\"")) => {}
        Some(extensions) => {
            let start = "\"extensions\":{".len();
            let comma = if extensions[start..].trim_start().starts_with('}') { "" } else { "," };
            extensions.insert_str(start, &format!("{tasks}{comma}"));
        }
        None => members.push(format!("\"extensions\":{{{tasks}}}")),
    }
}

/// The capabilities declared to a legacy server: the configured ones, otherwise those of the session's
/// handlers. Without the extension for tasks, which such a server does not have.
pub(crate) fn legacy_capabilities(options: &SessionOptions) -> String {
    let members = declared_members(options).into_iter();
    let members: Vec<_> = members.map(|it| remove_nested_member(it, "extensions", TASKS_EXTENSION)).collect();
    json_object(&members)
}

/// Removes the member `removed` from the object in a member's JSON text, if the member's name is `name`.
fn remove_nested_member(text: String, name: &str, removed: &str) -> String {
    let value = text.strip_prefix('"').and_then(|it| it.strip_prefix(name)?.strip_prefix("\":"));
    let Some(Ok(ObjectMembers(members))) = value.map(serde_json::from_str) else { return text };
    let others = members.iter().filter(|(MemberName(it), _)| it != removed);
    let others: Vec<String> = others.map(|(MemberName(it), value)| json_member(it, value.get())).collect();
    json_member(name, &json_object(&others))
}

/// The members of the session's own capabilities: the configured ones, otherwise those of its handlers.
fn declared_members(options: &SessionOptions) -> Vec<String> {
    match &options.client_capabilities {
        Some(capabilities) => capabilities.members(config_json(options)),
        None => with_config_member(capability_members(&[&options.handlers]), options),
    }
}

/// Adds the configuration for the server to the members of capabilities, if there is one.
fn with_config_member(mut members: Vec<String>, options: &SessionOptions) -> Vec<String> {
    if let Some(config) = config_json(options) {
        members.push(format!(r#""experimental":{{"config":{config}}}"#));
    }
    members
}

fn config_json(options: &SessionOptions) -> Option<&str> {
    options.config.as_ref().map(|it| it.expose())
}

fn json_object(members: &[String]) -> String {
    format!("{{{}}}", members.join(","))
}

/// The client's name and version as JSON.
pub(crate) fn client_json(client: &ClientInfo) -> String {
    json!({"name": client.name, "version": client.version}).to_string()
}

#[cfg(test)]
mod tests {
    use mcp_host_model::RawJson;

    use super::*;
    use crate::rpc::caller::ClientCapabilities;

    #[test]
    fn extension_for_tasks_is_left_out_of_a_legacy_handshake() {
        for (members, want) in [
            (
                r#""extensions":{"io.modelcontextprotocol/tasks":{},"a/b":{"c": 1}}"#,
                r#""extensions":{"a/b":{"c": 1}}"#,
            ),
            (r#""extensions": {"io.modelcontextprotocol\/tasks":{}}"#, r#""extensions":{}"#),
            (r#""extensions":0"#, r#""extensions":0"#),
            (r#""sampling":{}"#, r#""sampling":{}"#),
        ] {
            assert_eq!(remove_nested_member(members.to_owned(), "extensions", TASKS_EXTENSION), want);
        }
    }

    #[test]
    fn modern_server_receives_no_capability_of_2025_11_25() {
        let text = r#"{"roots":{"listChanged":true,"x":1},"tasks":{"list":{}},"sampling":{}}"#;
        let capabilities = ClientCapabilities::new(RawJson::parse(text.into()).unwrap());
        let options = SessionOptions { client_capabilities: capabilities, ..SessionOptions::default() };
        let version = ProtocolVersion::V2026_07_28;
        let meta = modern_meta(version, &options, &CallOwner::None, None, false);
        assert!(meta.ends_with(r#"clientCapabilities":{"roots":{"x":1},"sampling":{}}"#), "{meta}");
        let legacy = legacy_capabilities(&options);
        assert_eq!(legacy, text);
    }

    #[test]
    fn tasks_are_declared_beside_other_extensions() {
        let check = |members: &[&str], want: &str| {
            let mut members: Vec<String> = members.iter().map(|it| (*it).to_owned()).collect();
            declare_tasks(&mut members);
            assert_eq!(members.join(","), want);
        };
        let tasks = r#""io.modelcontextprotocol/tasks":{}"#;
        check(&[], &format!(r#""extensions":{{{tasks}}}"#));
        check(&[r#""extensions":{ }"#], &format!(r#""extensions":{{{tasks} }}"#));
        check(
            &[r#""sampling":{}"#, r#""extensions":{"a/b":{}}"#],
            &format!(r#""sampling":{{}},"extensions":{{{tasks},"a/b":{{}}}}"#),
        );
        let own = format!(r#""extensions":{{{tasks}}}"#);
        check(&[&own], &own);
    }
}
