//! What we say of ourselves: who we are, what somebody here can do, and what each modern request carries.

use mcp_model::{LogLevel, ProtocolVersion};
use serde_json::json;

use super::caller::Abilities;
use super::{Caller, ClientInfo, SessionOptions};

/// The members of `_meta` in the modern era, for a request of `caller`, if it is somebody's.
pub(crate) fn modern_meta(
    version: ProtocolVersion,
    options: &SessionOptions,
    caller: Option<&Caller>,
    log_level: Option<LogLevel>,
) -> String {
    let level =
        log_level.map(|it| format!(r#","io.modelcontextprotocol/logLevel":"{it}""#)).unwrap_or_default();
    let capabilities = match caller {
        None => members(Abilities::of(&options.handlers).members(), options),
        Some(Caller { capabilities: Some(said), .. }) => object(said.members(config(options))),
        Some(caller) => {
            let abilities = Abilities::of(&caller.handlers).or(Abilities::of(&options.handlers));
            members(abilities.members(), options)
        }
    };
    format!(
        r#""io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientInfo":{},"io.modelcontextprotocol/clientCapabilities":{capabilities}{level}"#,
        client_json(&options.client),
    )
}

/// What a legacy handshake declares: what is said to be declared, else only what somebody here can do.
pub(crate) fn declared(options: &SessionOptions) -> String {
    match &options.declared {
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
