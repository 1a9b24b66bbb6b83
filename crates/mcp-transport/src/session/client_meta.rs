//! Client information in requests: name, capabilities, and the `_meta` members of the modern era.

use mcp_model::{LogLevel, ProtocolVersion};
use serde_json::json;

use super::{ClientInfo, SessionOptions};
use crate::rpc::caller::{Caller, HandlerCapabilities};

/// For which requests `_meta` is built.
#[derive(Clone, Copy)]
pub(crate) enum MetaScope<'a> {
    /// Requests without a caller: the handshake and lists.
    Any,
    /// The session's own requests.
    Session,
    /// Requests of this caller.
    Caller(&'a Caller),
}

/// The members of `_meta` in the modern era.
pub(crate) fn modern_meta(
    version: ProtocolVersion,
    options: &SessionOptions,
    scope: MetaScope<'_>,
    log_level: Option<LogLevel>,
) -> String {
    let level =
        log_level.map(|it| format!(r#","io.modelcontextprotocol/logLevel":"{it}""#)).unwrap_or_default();
    let capabilities = match scope {
        MetaScope::Any => declared_capabilities(options),
        MetaScope::Session => members(HandlerCapabilities::of(&options.handlers).members(), options),
        MetaScope::Caller(Caller { capabilities: Some(said), .. }) => object(said.members(config(options))),
        MetaScope::Caller(caller) => {
            let abilities =
                HandlerCapabilities::of(&caller.handlers).or(HandlerCapabilities::of(&options.handlers));
            members(abilities.members(), options)
        }
    };
    format!(
        r#""io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientInfo":{},"io.modelcontextprotocol/clientCapabilities":{capabilities}{level}"#,
        client_json(&options.client),
    )
}

/// The capabilities declared to a server: the configured ones, otherwise those of the session's handlers.
pub(crate) fn declared_capabilities(options: &SessionOptions) -> String {
    match &options.client_capabilities {
        Some(said) => object(said.members(config(options))),
        None => members(HandlerCapabilities::of(&options.handlers).members(), options),
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
