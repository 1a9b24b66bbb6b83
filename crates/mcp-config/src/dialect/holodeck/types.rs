//! HoloDeck's configuration types, for programs that write configurations.
//!
//! They are strict. A user's file is read by the tolerant reader instead.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::diagnostic::redact::{NamesOnly, redact_url};

/// An MCP item of an `agent.yaml`. `Debug` hides values that may be secret.
#[derive(derive_more::Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct McpToolConfig {
    /// Unique name of the tool within the agent.
    pub name: String,
    /// What the server is for.
    pub description: String,
    /// Always `mcp`.
    #[serde(rename = "type")]
    pub tool_type: ToolType,
    /// The server's package or service name.
    pub server: String,
    /// The transport of the server.
    #[serde(default)]
    pub transport: TransportType,
    /// The program to start; for stdio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandType>,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[debug("{:?}", args.as_ref().map(Vec::len))]
    pub args: Option<Vec<String>>,
    /// Its environment variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[debug("{:?}", env.as_ref().map(|values| NamesOnly(values.keys())))]
    pub env: Option<BTreeMap<String, String>>,
    /// A `.env` file, relative to the `agent.yaml`.
    #[serde(default, rename = "envFile", skip_serializing_if = "Option::is_none")]
    pub env_file: Option<String>,
    /// The encoding of its streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// The URL of the server; for sse, websocket and http.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[debug("{:?}", url.as_deref().map(redact_url))]
    pub url: Option<String>,
    /// Headers of every request; for sse and http.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[debug("{:?}", headers.as_ref().map(|values| NamesOnly(values.keys())))]
    pub headers: Option<BTreeMap<String, String>>,
    /// The timeout of connecting, in seconds; for sse and http.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<f64>,
    /// The longest silence on an event stream, in seconds; for sse and http.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sse_read_timeout: Option<f64>,
    /// End the session on the server when it is closed; for http.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminate_on_close: Option<bool>,
    /// Configuration for the server itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[debug("{:?}", config.as_ref().map(|members| NamesOnly(members.keys())))]
    pub config: Option<serde_json::Map<String, serde_json::Value>>,
    /// List the server's tools.
    #[serde(default = "default_true")]
    pub load_tools: bool,
    /// List the server's prompts.
    #[serde(default = "default_true")]
    pub load_prompts: bool,
    /// The timeout of a request, in seconds.
    #[serde(default = "default_request_timeout")]
    pub request_timeout: u32,
}

impl McpToolConfig {
    /// An item with HoloDeck's defaults: over stdio, with tools and prompts, and 60 s for a request.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        server: impl Into<String>,
    ) -> McpToolConfig {
        McpToolConfig {
            name: name.into(),
            description: description.into(),
            tool_type: ToolType::Mcp,
            server: server.into(),
            transport: TransportType::Stdio,
            command: None,
            args: None,
            env: None,
            env_file: None,
            encoding: None,
            url: None,
            headers: None,
            timeout: None,
            sse_read_timeout: None,
            terminate_on_close: None,
            config: None,
            load_tools: default_true(),
            load_prompts: default_true(),
            request_timeout: default_request_timeout(),
        }
    }
}

fn default_true() -> bool {
    true
}

fn default_request_timeout() -> u32 {
    60
}

/// The `type` of an MCP item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[expect(clippy::exhaustive_enums, reason = "the tag of one form; another tag is another form")]
pub enum ToolType {
    /// `mcp`.
    #[default]
    #[serde(rename = "mcp")]
    Mcp,
}

/// The transports of HoloDeck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum TransportType {
    /// A child process.
    #[default]
    Stdio,
    /// HTTP with server-sent events.
    Sse,
    /// WebSocket.
    WebSocket,
    /// Streamable HTTP.
    Http,
}

/// The commands that HoloDeck's contract allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CommandType {
    /// Runs npm packages.
    Npx,
    /// Runs Python packages.
    Uvx,
    /// Runs containers.
    Docker,
}
