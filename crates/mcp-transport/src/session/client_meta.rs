//! Client information in requests: name, capabilities, and the `_meta` members of the modern era.

use mcp_model::{LogLevel, ProtocolVersion};
use serde_json::json;

use super::{ClientInfo, SessionOptions};
use crate::rpc::caller::capability_members;
use crate::rpc::request_owner::OwnerHint;

/// The members of `_meta` in the modern era, for a request of `owner`. Requests without an owner, for example lists,
/// declare the configured capabilities.
pub(crate) fn modern_meta(
    version: ProtocolVersion,
    options: &SessionOptions,
    owner: &OwnerHint,
    log_level: Option<LogLevel>,
) -> String {
    let level =
        log_level.map(|it| format!(r#","io.modelcontextprotocol/logLevel":"{it}""#)).unwrap_or_default();
    let session = &options.handlers;
    let capabilities = match owner {
        OwnerHint::None => declared_capabilities(options),
        OwnerHint::Session => members(capability_members(&[session]), options),
        OwnerHint::Caller(caller) => match &caller.capabilities {
            Some(capabilities) => object(capabilities.members(config(options))),
            None => members(capability_members(&[&caller.handlers, session]), options),
        },
    };
    format!(
        r#""io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientInfo":{},"io.modelcontextprotocol/clientCapabilities":{capabilities}{level}"#,
        client_json(&options.client),
    )
}

/// The capabilities declared to a server: the configured ones, otherwise those of the session's handlers.
pub(crate) fn declared_capabilities(options: &SessionOptions) -> String {
    match &options.client_capabilities {
        Some(capabilities) => object(capabilities.members(config(options))),
        None => members(capability_members(&[&options.handlers]), options),
    }
}

fn members(mut members: Vec<String>, options: &SessionOptions) -> String {
    if let Some(config) = config(options) {
        members.push(format!(r#""experimental":{{"config":{config}}}"#));
    }
    object(members)
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
