//! ACP's configuration types, for programs that write or keep session requests.
//!
//! They are strict. `Debug` hides the values of variables, headers and arguments, and most of a URL. A client's request
//! is read by the tolerant reader instead.

use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::diagnostic::redact::redact_url;

/// A server of a session (ACP-007).
///
/// Only `type` selects the transport; without one it is stdio, as in protocol version 1.
///
/// ```
/// use mcp_host_config::acp::McpServerConfig;
///
/// let text = r#"{"type": "sse", "name": "events", "url": "https://example.com/sse", "headers": []}"#;
/// let server: McpServerConfig = serde_json::from_str(text).unwrap();
/// assert!(matches!(server, McpServerConfig::Sse(_)));
/// let websocket = r#"{"type": "websocket", "name": "a", "command": "/a", "args": [], "env": []}"#;
/// assert!(serde_json::from_str::<McpServerConfig>(websocket).is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
#[non_exhaustive]
pub enum McpServerConfig {
    /// A child process.
    Stdio(StdioServer),
    /// Streamable HTTP.
    Http(HttpServer),
    /// HTTP with server-sent events, the transport of protocol version 2024-11-05.
    Sse(SseServer),
}

impl McpServerConfig {
    /// The server's name.
    pub fn name(&self) -> &str {
        match self {
            McpServerConfig::Stdio(it) => &it.name,
            McpServerConfig::Http(it) => &it.name,
            McpServerConfig::Sse(it) => &it.name,
        }
    }
}

impl<'de> Deserialize<'de> for McpServerConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let tag = value.get("type");
        match tag.map(Value::as_str) {
            None | Some(Some("stdio")) => read_server(value, "a stdio server").map(McpServerConfig::Stdio),
            Some(Some("http")) => read_server(value, "an http server").map(McpServerConfig::Http),
            Some(Some("sse")) => read_server(value, "an sse server").map(McpServerConfig::Sse),
            Some(_) => Err(D::Error::custom("`type` must be one of `stdio`, `http`, `sse`")),
        }
    }
}

/// Reads a server. The error quotes no value, as serde's errors would: a value may be a secret.
fn read_server<T: DeserializeOwned, E: Error>(value: Value, what: &str) -> Result<T, E> {
    T::deserialize(value).map_err(|_| E::custom(format!("{what} has a missing or invalid field")))
}

/// A server that is a child process (ACP-008).
#[derive(derive_more::Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct StdioServer {
    /// The server's name in the session.
    pub name: String,
    /// Absolute path of the program.
    pub command: String,
    /// Its arguments.
    #[debug("{}", args.len())]
    pub args: Vec<String>,
    /// Its environment variables, added to the inherited ones.
    pub env: Vec<EnvVariable>,
}

impl StdioServer {
    /// A server without arguments and variables.
    pub fn new(name: impl Into<String>, command: impl Into<String>) -> StdioServer {
        StdioServer { name: name.into(), command: command.into(), args: Vec::new(), env: Vec::new() }
    }
}

/// A server with a URL, over Streamable HTTP (ACP-009).
#[derive(derive_more::Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct HttpServer {
    /// Always `http`.
    #[serde(rename = "type")]
    pub type_field: HttpType,
    /// The server's name in the session.
    pub name: String,
    /// The URL of the server.
    #[debug("{:?}", redact_url(url))]
    pub url: String,
    /// Headers of every request.
    pub headers: Vec<HttpHeader>,
}

impl HttpServer {
    /// A server without headers.
    pub fn new(name: impl Into<String>, url: impl Into<String>) -> HttpServer {
        HttpServer { type_field: HttpType::Http, name: name.into(), url: url.into(), headers: Vec::new() }
    }
}

/// A server with a URL, over HTTP with server-sent events (ACP-010).
#[derive(derive_more::Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct SseServer {
    /// Always `sse`.
    #[serde(rename = "type")]
    pub type_field: SseType,
    /// The server's name in the session.
    pub name: String,
    /// The URL of the server.
    #[debug("{:?}", redact_url(url))]
    pub url: String,
    /// Headers of every request.
    pub headers: Vec<HttpHeader>,
}

impl SseServer {
    /// A server without headers.
    pub fn new(name: impl Into<String>, url: impl Into<String>) -> SseServer {
        SseServer { type_field: SseType::Sse, name: name.into(), url: url.into(), headers: Vec::new() }
    }
}

/// The `type` of an http server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the `type` of one kind of server; another `type` is another struct"
)]
pub enum HttpType {
    /// `http`.
    #[default]
    #[serde(rename = "http")]
    Http,
}

/// The `type` of an sse server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the `type` of one kind of server; another `type` is another struct"
)]
pub enum SseType {
    /// `sse`.
    #[default]
    #[serde(rename = "sse")]
    Sse,
}

/// An environment variable of a child process (ACP-011).
#[derive(derive_more::Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[debug("{name}=***")]
#[non_exhaustive]
pub struct EnvVariable {
    /// Its name.
    pub name: String,
    /// Its literal value; variables in it are not replaced.
    pub value: String,
}

impl EnvVariable {
    /// A variable with this value.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> EnvVariable {
        EnvVariable { name: name.into(), value: value.into() }
    }
}

/// A header of every request (ACP-011).
#[derive(derive_more::Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[debug("{name}: ***")]
#[non_exhaustive]
pub struct HttpHeader {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl HttpHeader {
    /// A header with this value.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> HttpHeader {
        HttpHeader { name: name.into(), value: value.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acp_006_acp_011_what_is_written_is_read_back_and_debug_shows_no_value() {
        let texts = [
            r#"{"name":"a","command":"/a","args":["SECRET"],"env":[{"name":"K","value":"SECRET"}]}"#,
            r#"{"type":"http","name":"a","url":"https://u:SECRET@a.example/x?SECRET","headers":[{"name":"A","value":"SECRET"}]}"#,
            r#"{"type":"sse","name":"a","url":"https://a.example/x#SECRET","headers":[]}"#,
        ];
        let shown = [
            r#"Stdio(StdioServer { name: "a", command: "/a", args: 1, env: [K=***] })"#,
            r#"Http(HttpServer { type_field: Http, name: "a", url: "https://a.example/x", headers: [A: ***] })"#,
            r#"Sse(SseServer { type_field: Sse, name: "a", url: "https://a.example/x", headers: [] })"#,
        ];
        for (text, shown) in texts.into_iter().zip(shown) {
            let server: McpServerConfig = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&server).unwrap(), text);
            assert_eq!((format!("{server:?}").as_str(), server.name()), (shown, "a"));
        }
    }

    #[test]
    fn errors_quote_no_values() {
        for text in [
            r#"{"type":"SECRET"}"#,
            r#"{"type":["SECRET"]}"#,
            r#"{"type":"http","name":"a","url":["SECRET"],"headers":[]}"#,
            r#"{"name":"a","command":"/a","args":"SECRET","env":[]}"#,
            r#"{"type":null,"name":"a","command":"/a","args":[],"env":[]}"#,
            r#""SECRET""#,
        ] {
            let error = serde_json::from_str::<McpServerConfig>(text).unwrap_err().to_string();
            assert!(!error.contains("SECRET"), "{error}");
        }
    }
}
