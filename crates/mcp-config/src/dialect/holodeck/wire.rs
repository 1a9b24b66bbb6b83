//! Serde struct of an MCP item of an `agent.yaml` (HD-002 to HD-031).
//!
//! The doc comments appear in the JSON Schema. The struct has the keys of all profiles;
//! `ProfileRules::unsupported_keys` lists those that a profile does not have.

use mcp_host_model::TransportKind;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::de::{Field, NullableField, OptionalField, OrderedMap, RawObject};
use crate::dialect::call_rules::CallRuleText;
use crate::dialect::lowering::SharingKey;
use crate::dialect::sandbox::SandboxValue;

/// An MCP server that an agent may use.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "McpTool", deny_unknown_fields)]
pub(crate) struct ToolItem {
    /// Unique name of the tool within the agent.
    #[schemars(length(min = 1, max = 256))]
    pub(super) name: Field<String>,
    /// What the server is for. Shown to people and models.
    pub(super) description: OptionalField<String>,
    /// `mcp`.
    #[serde(rename = "type")]
    #[schemars(extend("const" = "mcp"))]
    #[expect(dead_code, reason = "`type` is checked before the item is read; the schema needs the field")]
    pub(super) tag: Field<String>,
    /// The server's package or service name.
    #[schemars(regex(pattern = r"\S"))]
    pub(super) server: OptionalField<String>,
    /// The transport of the server. Default: `stdio`.
    pub(super) transport: OptionalField<HoloDeckTransport>,
    /// The program to start; for stdio.
    pub(super) command: NullableField<String>,
    /// Its arguments.
    pub(super) args: NullableField<Vec<Field<String>>>,
    /// Environment variables of the program. Values may contain `${VAR}`.
    pub(super) env: NullableField<OrderedMap<String>>,
    /// A `.env` file, relative to this file; `env` takes precedence.
    #[serde(rename = "envFile")]
    #[schemars(regex(pattern = r"\S"))]
    pub(super) env_file: NullableField<String>,
    /// The same as `envFile`; only one of the two may be given.
    #[serde(rename = "env_file")]
    #[schemars(regex(pattern = r"\S"))]
    pub(super) env_file_alias: NullableField<String>,
    /// WHATWG label of the encoding of the program's streams. Default: `utf-8`.
    pub(super) encoding: NullableField<String>,
    /// The URL of the server; for sse, websocket and http.
    pub(super) url: NullableField<String>,
    /// Headers of every request; for sse and http. Values may contain `${VAR}`.
    pub(super) headers: NullableField<OrderedMap<String>>,
    /// The timeout of connecting, in seconds; for sse and http.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(super) timeout: NullableField<f64>,
    /// The longest silence on an event stream, in seconds; for sse and http.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(super) sse_read_timeout: NullableField<f64>,
    /// End the session on the server when it is closed; for http. Default: true.
    pub(super) terminate_on_close: NullableField<bool>,
    /// Configuration for the server itself, passed unchanged.
    pub(super) config: NullableField<RawObject>,
    /// List the server's tools. Default: true.
    pub(super) load_tools: OptionalField<bool>,
    /// List the server's prompts. Default: true.
    pub(super) load_prompts: OptionalField<bool>,
    /// The timeout of a request, in whole seconds. Default: 60.
    #[schemars(range(min = 1))]
    pub(super) request_timeout: OptionalField<i64>,
    /// The server's name in the registry.
    pub(super) registry_name: NullableField<String>,
    /// Its results are retrieved documents.
    pub(super) is_retrieval: OptionalField<bool>,
    /// Its tools may be found by search instead of being listed.
    pub(super) defer_loading: OptionalField<bool>,
    /// Which clients of a gateway share a running instance. `auto`: all, until the server sends a request such as
    /// sampling, elicitation or roots; then each client has its own. Default: `auto`. HoloDeck itself refuses this key.
    pub(super) sharing: OptionalField<SharingKey>,
    /// What the processes of the server may reach: `project`, `network`, `off`, or a mapping; for stdio.
    /// Default: `off`. HoloDeck itself refuses this key.
    pub(super) sandbox: NullableField<SandboxValue>,
    /// Rules for calls; the first one that matches decides: `EFFECT [tools=a,b*] [hints=reads,writes,destructive]
    /// [users=…]`, with the effect `allow`, `ask` or `deny`. HoloDeck itself refuses this key.
    pub(super) calls: OptionalField<Vec<Field<CallRuleText>>>,
}

/// The transports of HoloDeck.
// HD-010
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(super) enum HoloDeckTransport {
    Stdio,
    Sse,
    Websocket,
    Http,
}

impl HoloDeckTransport {
    /// The transport kind.
    pub(super) fn kind(self) -> TransportKind {
        match self {
            HoloDeckTransport::Stdio => TransportKind::Stdio,
            HoloDeckTransport::Sse => TransportKind::Sse,
            HoloDeckTransport::Websocket => TransportKind::WebSocket,
            HoloDeckTransport::Http => TransportKind::Http,
        }
    }
}

/// The transport kind with this name. Unlike [`HoloDeckTransport`] it is also read from an invalid item.
pub(super) fn parse_transport_kind(word: &str) -> Option<TransportKind> {
    [TransportKind::Stdio, TransportKind::Sse, TransportKind::WebSocket, TransportKind::Http]
        .into_iter()
        .find(|it| it.as_str() == word)
}
