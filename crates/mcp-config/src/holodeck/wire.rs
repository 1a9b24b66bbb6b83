//! An MCP item of an `agent.yaml` as it is written (HD-002 to HD-031).
//!
//! The doc comments are what users read in the schema. What a profile does not know of this is in its policy.

use mcp_model::TransportKind;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::de::{Entries, Field, Json, Maybe, MaybeNull};

/// An MCP server that an agent may use.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "McpTool", deny_unknown_fields)]
pub(crate) struct Item {
    /// Unique name of the tool within the agent.
    #[schemars(length(min = 1, max = 256))]
    pub(super) name: Field<String>,
    /// What the server is for, in words for people and models.
    pub(super) description: Maybe<String>,
    /// `mcp`.
    #[serde(rename = "type")]
    #[schemars(extend("const" = "mcp"))]
    #[expect(dead_code, reason = "it was looked at before the item was read; the schema needs it")]
    pub(super) tag: Field<String>,
    /// The server's package or service name.
    #[schemars(length(min = 1))]
    pub(super) server: Maybe<String>,
    /// How the server is reached; `stdio` unless said.
    pub(super) transport: Maybe<Transport>,
    /// The program to start; for stdio.
    pub(super) command: MaybeNull<String>,
    /// Its arguments.
    pub(super) args: MaybeNull<Vec<Field<String>>>,
    /// Environment variables of the program; values may hold `${VAR}`.
    pub(super) env: MaybeNull<Entries<String>>,
    /// A `.env` file, relative to this file; its variables lie below `env`.
    #[serde(rename = "envFile")]
    #[schemars(length(min = 1))]
    pub(super) env_file: MaybeNull<String>,
    /// The same as `envFile`; only one of the two may be given.
    #[serde(rename = "env_file")]
    #[schemars(length(min = 1))]
    pub(super) env_file_alias: MaybeNull<String>,
    /// WHATWG label of the encoding of the program's streams; `utf-8` unless said.
    pub(super) encoding: MaybeNull<String>,
    /// Where the server is; for sse, websocket and http.
    pub(super) url: MaybeNull<String>,
    /// Headers of every request; for sse and http; values may hold `${VAR}`.
    pub(super) headers: MaybeNull<Entries<String>>,
    /// How long connecting may take, in seconds; for sse and http.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(super) timeout: MaybeNull<f64>,
    /// The longest silence on an event stream, in seconds; for sse and http.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(super) sse_read_timeout: MaybeNull<f64>,
    /// End the session on the server when it is closed; for http; true unless said.
    pub(super) terminate_on_close: MaybeNull<bool>,
    /// Configuration for the server itself, handed to it as it stands.
    pub(super) config: MaybeNull<Json>,
    /// List the server's tools; true unless said.
    pub(super) load_tools: Maybe<bool>,
    /// List the server's prompts; true unless said.
    pub(super) load_prompts: Maybe<bool>,
    /// How long one request may take, in whole seconds; 60 unless said.
    #[schemars(range(min = 1))]
    pub(super) request_timeout: Maybe<i64>,
    /// The server's name in the registry.
    pub(super) registry_name: MaybeNull<String>,
    /// Its results are retrieved documents.
    pub(super) is_retrieval: Maybe<bool>,
    /// Its tools may be found by search instead of being listed.
    pub(super) defer_loading: Maybe<bool>,
}

/// The transports of HoloDeck.
// HD-010
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(super) enum Transport {
    Stdio,
    Sse,
    Websocket,
    Http,
}

impl Transport {
    /// The wire it is.
    pub(super) fn kind(self) -> TransportKind {
        match self {
            Transport::Stdio => TransportKind::Stdio,
            Transport::Sse => TransportKind::Sse,
            Transport::Websocket => TransportKind::WebSocket,
            Transport::Http => TransportKind::Http,
        }
    }
}

/// The wire that HoloDeck calls by this word.
pub(super) fn transport_kind(word: &str) -> Option<TransportKind> {
    [TransportKind::Stdio, TransportKind::Sse, TransportKind::WebSocket, TransportKind::Http]
        .into_iter()
        .find(|it| it.as_str() == word)
}
