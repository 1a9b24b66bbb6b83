//! Client information in requests: name, capabilities, and the `_meta` members of the modern era.

use mcp_model::{LogLevel, ProtocolVersion, TASKS_EXTENSION};
use serde_json::json;

use super::{ClientInfo, SessionOptions};
use crate::rpc::caller::{capability_members, member};
use crate::rpc::object_members::{MemberName, ObjectMembers};
use crate::rpc::request_owner::OwnerHint;

/// The members of `_meta` in the modern era, for a request of `owner`. Requests without an owner, for example lists,
/// declare the configured capabilities. A server with tasks (`has_tasks`) receives that the client supports them too.
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
    let mut capabilities = match owner {
        OwnerHint::None => declared_members(options),
        OwnerHint::Session => members(capability_members(&[session]), options),
        OwnerHint::Caller(caller) => match &caller.capabilities {
            Some(capabilities) => capabilities.members(config(options)),
            None => members(capability_members(&[&caller.handlers, session]), options),
        },
    };
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

/// The capabilities declared to a legacy server: the configured ones, otherwise those of the session's handlers. Without
/// the extension for tasks, which such a server does not have.
pub(crate) fn legacy_capabilities(options: &SessionOptions) -> String {
    object(declared_members(options).into_iter().map(without_tasks).collect())
}

/// A member of capabilities without the extension for tasks.
fn without_tasks(text: String) -> String {
    let extensions = text.strip_prefix("\"extensions\":").map(serde_json::from_str);
    let Some(Ok(ObjectMembers(extensions))) = extensions else { return text };
    let others = extensions.iter().filter(|(MemberName(name), _)| name != TASKS_EXTENSION);
    let others: Vec<String> = others.map(|(MemberName(name), it)| member(name, it.get())).collect();
    member("extensions", &object(others))
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
    use super::*;

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
            assert_eq!(without_tasks(members.to_owned()), want);
        }
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
