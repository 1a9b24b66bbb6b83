//! An MCP item of an `agent.yaml` as it is written (HD-002 to HD-031).
//!
//! The doc comments are what users read in the schema. What a profile does not know of this is in its policy.

use mcp_model::TransportKind;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::de::{Field, NullableField, OptionalField, OrderedMap, RawObject};

/// An MCP server that an agent may use.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "McpTool", deny_unknown_fields)]
pub(crate) struct ToolItem {
    /// Unique name of the tool within the agent.
    #[schemars(length(min = 1, max = 256))]
    pub(super) name: Field<String>,
    /// What the server is for, in words for people and models.
    pub(super) description: OptionalField<String>,
    /// `mcp`.
    #[serde(rename = "type")]
    #[schemars(extend("const" = "mcp"))]
    #[expect(dead_code, reason = "it was looked at before the item was read; the schema needs it")]
    pub(super) tag: Field<String>,
    /// The server's package or service name.
    #[schemars(length(min = 1))]
    pub(super) server: OptionalField<String>,
    /// How the server is reached; `stdio` unless said.
    pub(super) transport: OptionalField<HoloDeckTransport>,
    /// The program to start; for stdio.
    pub(super) command: NullableField<String>,
    /// Its arguments.
    pub(super) args: NullableField<Vec<Field<String>>>,
    /// Environment variables of the program; values may hold `${VAR}`.
    pub(super) env: NullableField<OrderedMap<String>>,
    /// A `.env` file, relative to this file; its variables lie below `env`.
    #[serde(rename = "envFile")]
    #[schemars(length(min = 1))]
    pub(super) env_file: NullableField<String>,
    /// The same as `envFile`; only one of the two may be given.
    #[serde(rename = "env_file")]
    #[schemars(length(min = 1))]
    pub(super) env_file_alias: NullableField<String>,
    /// WHATWG label of the encoding of the program's streams; `utf-8` unless said.
    pub(super) encoding: NullableField<String>,
    /// Where the server is; for sse, websocket and http.
    pub(super) url: NullableField<String>,
    /// Headers of every request; for sse and http; values may hold `${VAR}`.
    pub(super) headers: NullableField<OrderedMap<String>>,
    /// How long connecting may take, in seconds; for sse and http.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(super) timeout: NullableField<f64>,
    /// The longest silence on an event stream, in seconds; for sse and http.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(super) sse_read_timeout: NullableField<f64>,
    /// End the session on the server when it is closed; for http; true unless said.
    pub(super) terminate_on_close: NullableField<bool>,
    /// Configuration for the server itself, handed to it as it stands.
    pub(super) config: NullableField<RawObject>,
    /// List the server's tools; true unless said.
    pub(super) load_tools: OptionalField<bool>,
    /// List the server's prompts; true unless said.
    pub(super) load_prompts: OptionalField<bool>,
    /// How long one request may take, in whole seconds; 60 unless said.
    #[schemars(range(min = 1))]
    pub(super) request_timeout: OptionalField<i64>,
    /// The server's name in the registry.
    pub(super) registry_name: NullableField<String>,
    /// Its results are retrieved documents.
    pub(super) is_retrieval: OptionalField<bool>,
    /// Its tools may be found by search instead of being listed.
    pub(super) defer_loading: OptionalField<bool>,
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
    /// The wire it is.
    pub(super) fn kind(self) -> TransportKind {
        match self {
            HoloDeckTransport::Stdio => TransportKind::Stdio,
            HoloDeckTransport::Sse => TransportKind::Sse,
            HoloDeckTransport::Websocket => TransportKind::WebSocket,
            HoloDeckTransport::Http => TransportKind::Http,
        }
    }
}

/// The wire that HoloDeck calls by this word.
pub(super) fn transport_kind(word: &str) -> Option<TransportKind> {
    [TransportKind::Stdio, TransportKind::Sse, TransportKind::WebSocket, TransportKind::Http]
        .into_iter()
        .find(|it| it.as_str() == word)
}
