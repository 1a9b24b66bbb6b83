//! Client information in requests: name, capabilities, and the `_meta` members of the modern era.

use mcp_host_model::{LogLevel, ProtocolVersion, TASKS_EXTENSION};
use serde_json::json;

use crate::rpc::caller::{capability_members, member};
use crate::rpc::object_members::{MemberName, ObjectMembers};
use crate::rpc::request_owner::OwnerHint;
use crate::session::options::{ClientInfo, SessionOptions};

/// The members of `_meta` in the modern era, for a request of `owner`. Requests without an owner, for example lists,
/// declare the configured capabilities, without what only 2025-11-25 has. A server with tasks (`has_tasks`)
/// receives that the client supports them too.
pub(crate) fn modern_meta(
    version: ProtocolVersion,
    options: &SessionOptions,
    owner: &OwnerHint,
    log_level: Option<LogLevel>,
    has_tasks: bool,
) -> String {
    let level =
        log_level.map(|it| format!(r#","io.modelcontextprotocol/logLevel":"{it}""#)).unwrap_or_default();
    let session = &options.handlers;
    let declared = match owner {
        OwnerHint::None => declared_members(options),
        OwnerHint::Session => members(capability_members(&[session]), options),
        OwnerHint::Caller(caller) => match &caller.capabilities {
            Some(capabilities) => capabilities.members(config(options)),
            None => members(capability_members(&[&caller.handlers, session]), options),
        },
    };
    let declared = declared.into_iter().filter(|it| !it.starts_with("\"tasks\":"));
    let mut capabilities: Vec<String> = declared.map(|it| without(it, "roots", "listChanged")).collect();
    if has_tasks {
        declare_tasks(&mut capabilities);
    }
    format!(
        r#""io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientInfo":{},"io.modelcontextprotocol/clientCapabilities":{}{level}"#,
        client_json(&options.client),
        object(capabilities),
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
    object(members.map(|it| without(it, "extensions", TASKS_EXTENSION)).collect())
}

/// A member of capabilities, without `removed` if it is the object with this name.
fn without(text: String, name: &str, removed: &str) -> String {
    let value = text.strip_prefix('"').and_then(|it| it.strip_prefix(name)?.strip_prefix("\":"));
    let Some(Ok(ObjectMembers(members))) = value.map(serde_json::from_str) else { return text };
    let others = members.iter().filter(|(MemberName(it), _)| it != removed);
    let others: Vec<String> = others.map(|(MemberName(it), value)| member(it, value.get())).collect();
    member(name, &object(others))
}

fn declared_members(options: &SessionOptions) -> Vec<String> {
    match &options.client_capabilities {
        Some(capabilities) => capabilities.members(config(options)),
        None => members(capability_members(&[&options.handlers]), options),
    }
}

fn members(mut members: Vec<String>, options: &SessionOptions) -> Vec<String> {
    if let Some(config) = config(options) {
        members.push(format!(r#""experimental":{{"config":{config}}}"#));
    }
    members
}

fn config(options: &SessionOptions) -> Option<&str> {
    options.config.as_ref().map(|it| it.expose())
}

fn object(members: Vec<String>) -> String {
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
            assert_eq!(without(members.to_owned(), "extensions", TASKS_EXTENSION), want);
        }
    }

    #[test]
    fn modern_server_receives_no_capability_of_2025_11_25() {
        let text = r#"{"roots":{"listChanged":true,"x":1},"tasks":{"list":{}},"sampling":{}}"#;
        let capabilities = ClientCapabilities::new(RawJson::parse(text.into()).unwrap());
        let options = SessionOptions { client_capabilities: capabilities, ..SessionOptions::default() };
        let version = ProtocolVersion::V2026_07_28;
        let meta = modern_meta(version, &options, &OwnerHint::None, None, false);
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
