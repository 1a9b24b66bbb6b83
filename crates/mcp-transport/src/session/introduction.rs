//! What we say of ourselves: who we are, what somebody here can do, and what each modern request carries.

use mcp_model::{LogLevel, ProtocolVersion};
use serde_json::json;

use super::{ClientInfo, SessionOptions};

/// The members of `_meta` in the modern era.
pub(crate) fn modern_meta(
    version: ProtocolVersion,
    options: &SessionOptions,
    log_level: Option<LogLevel>,
) -> String {
    let level =
        log_level.map(|it| format!(r#","io.modelcontextprotocol/logLevel":"{it}""#)).unwrap_or_default();
    format!(
        r#""io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientInfo":{},"io.modelcontextprotocol/clientCapabilities":{}{level}"#,
        client_json(&options.client),
        capabilities(options)
    )
}

/// Our capabilities: only what somebody here can do.
pub(crate) fn capabilities(options: &SessionOptions) -> String {
    let mut members = options.handlers.capabilities();
    if let Some(config) = &options.config {
        members.push(format!(r#""experimental":{{"config":{}}}"#, config.expose()));
    }
    format!("{{{}}}", members.join(","))
}

/// Who we are, as JSON.
pub(crate) fn client_json(client: &ClientInfo) -> String {
    json!({"name": client.name, "version": client.version}).to_string()
}
