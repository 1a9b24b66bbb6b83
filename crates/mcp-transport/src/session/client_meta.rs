//! What we say of ourselves: who we are, what somebody here can do, and what each modern request carries.

use mcp_model::{LogLevel, ProtocolVersion};
use serde_json::json;

use super::caller::Abilities;
use super::{Caller, ClientInfo, SessionOptions};

/// For whom something is said of us.
#[derive(Clone, Copy)]
pub(crate) enum For<'a> {
    /// For whoever may come to ask: lists, and what opens a connection.
    Anybody,
    /// For whoever has the session.
    Session,
    /// For this caller.
    Caller(&'a Caller),
}

/// The members of `_meta` in the modern era.
pub(crate) fn modern_meta(
    version: ProtocolVersion,
    options: &SessionOptions,
    whom: For<'_>,
    log_level: Option<LogLevel>,
) -> String {
    let level =
        log_level.map(|it| format!(r#","io.modelcontextprotocol/logLevel":"{it}""#)).unwrap_or_default();
    let capabilities = match whom {
        For::Anybody => declared(options),
        For::Session => members(Abilities::of(&options.handlers).members(), options),
        For::Caller(Caller { capabilities: Some(said), .. }) => object(said.members(config(options))),
        For::Caller(caller) => {
            let abilities = Abilities::of(&caller.handlers).or(Abilities::of(&options.handlers));
            members(abilities.members(), options)
        }
    };
    format!(
        r#""io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientInfo":{},"io.modelcontextprotocol/clientCapabilities":{capabilities}{level}"#,
        client_json(&options.client),
    )
}

/// What is declared to a server for all: what is said to be declared, else only what somebody here can do.
pub(crate) fn declared(options: &SessionOptions) -> String {
    match &options.client_capabilities {
        Some(said) => object(said.members(config(options))),
        None => members(Abilities::of(&options.handlers).members(), options),
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

/// Who we are, as JSON.
pub(crate) fn client_json(client: &ClientInfo) -> String {
    json!({"name": client.name, "version": client.version}).to_string()
}
