//! A server of an editor's file as it is written (DIA-03 to DIA-07): the keys of all of them together.
//!
//! The doc comments are what users read in the schema.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::de::{Field, Ignored, NullableField, OptionalField, OrderedMap};

/// An MCP server.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "McpServer")]
#[serde(rename_all = "camelCase")]
#[expect(
    dead_code,
    reason = "what is only kept is taken from the tree; here it is known, and so no unknown key"
)]
pub(crate) struct EditorServer {
    /// Its name, where the servers are a list.
    pub(super) name: NullableField<String>,
    /// What it is for.
    pub(super) description: NullableField<String>,
    /// How it is reached: `stdio`, `http`, `sse` or `ws`; seen from `command` and `url` unless said.
    #[serde(rename = "type")]
    pub(super) kind: NullableField<TransportField>,
    /// The same as `type`.
    pub(super) transport: NullableField<TransportField>,
    /// The same as `type`.
    pub(super) transport_type: NullableField<TransportField>,
    /// The program to start.
    pub(super) command: NullableField<Command>,
    /// Its arguments.
    pub(super) args: NullableField<Vec<Field<String>>>,
    /// Its environment variables, on top of all of ours.
    pub(super) env: NullableField<Environment>,
    /// The same as `env`.
    pub(super) environment: NullableField<Environment>,
    /// A `.env` file; its variables lie below `env`.
    pub(super) env_file: NullableField<String>,
    /// Its working directory, relative to the workspace.
    pub(super) cwd: NullableField<String>,
    /// Where the server is.
    pub(super) url: NullableField<String>,
    /// The same as `url`.
    pub(super) server_url: NullableField<String>,
    /// The same as `url`, by Streamable HTTP.
    pub(super) http_url: NullableField<String>,
    /// Headers of every request.
    pub(super) headers: NullableField<Headers>,
    /// How long a request may take: milliseconds from 1000 on, seconds below.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(super) timeout: NullableField<f64>,
    /// How long a request may take, in milliseconds.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(super) request_timeout: NullableField<f64>,
    /// How long connecting may take, in milliseconds.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(super) connection_timeout: NullableField<f64>,
    /// How long a start may take, in seconds.
    #[serde(rename = "startup_timeout_sec")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(super) startup_timeout_sec: NullableField<f64>,
    /// How long a request may take, in seconds.
    #[serde(rename = "tool_timeout_sec")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(super) tool_timeout_sec: NullableField<f64>,
    /// `true` switches the server off.
    pub(super) disabled: NullableField<bool>,
    /// `false` switches the server off.
    pub(super) enabled: NullableField<bool>,
    /// The tools that are shown, by the server's own names.
    pub(super) include_tools: NullableField<Vec<Field<String>>>,
    /// The same as `includeTools`.
    #[serde(rename = "enabled_tools")]
    pub(super) enabled_tools: NullableField<Vec<Field<String>>>,
    /// The same as `includeTools`, where it is a list.
    pub(super) tools: NullableField<Tools>,
    /// Tools that are not shown.
    pub(super) exclude_tools: NullableField<Vec<Field<String>>>,
    /// The same as `excludeTools`.
    pub(super) disabled_tools: NullableField<Vec<Field<String>>>,
    /// The same as `excludeTools`.
    #[serde(rename = "disabled_tools")]
    pub(super) disabled_tools_alias: NullableField<Vec<Field<String>>>,
    /// Settings of an editor's extension, which brings the server itself.
    pub(super) settings: NullableField<Ignored>,
    /// Where an editor has the entry from.
    pub(super) source: NullableField<Ignored>,
    /// Tools that the editor calls without asking; kept.
    pub(super) auto_approve: OptionalField<Ignored>,
    /// Tools that the editor calls without asking; kept.
    pub(super) always_allow: OptionalField<Ignored>,
    /// Whether the editor asks before calls; kept.
    pub(super) trust: OptionalField<Ignored>,
    /// Words to find the server by; kept.
    pub(super) tags: OptionalField<Ignored>,
    /// How the editor watches and debugs the server; kept.
    pub(super) dev: OptionalField<Ignored>,
    /// How the editor signs in; kept.
    pub(super) oauth: OptionalField<Ignored>,
    /// How the editor signs in; kept.
    pub(super) auth: OptionalField<Ignored>,
    /// How the editor signs in; kept.
    pub(super) auth_provider_type: OptionalField<Ignored>,
    /// Where the editor found the server; kept.
    pub(super) gallery: OptionalField<Ignored>,
    /// The server's version; kept.
    pub(super) version: OptionalField<Ignored>,
    /// Options of a proxy; kept.
    pub(super) options: OptionalField<Ignored>,
    /// A picture; kept.
    pub(super) icon: OptionalField<Ignored>,
    /// When a gateway starts the server again; kept.
    pub(super) restart_on_exit: OptionalField<Ignored>,
    /// When a gateway starts the server again; kept.
    pub(super) max_restarts: OptionalField<Ignored>,
    /// When a gateway starts the server again; kept.
    pub(super) restart_delay: OptionalField<Ignored>,
    /// Whether an editor needs the server; kept.
    pub(super) required: OptionalField<Ignored>,
    /// What an editor keeps the server in; kept.
    pub(super) sandbox: OptionalField<Ignored>,
}

/// The keys of a [`Server`] that are understood, and need not be kept as they stand.
pub(super) const LOWERED_KEYS: &[&str] = &[
    "name",
    "description",
    "type",
    "transport",
    "transportType",
    "command",
    "args",
    "env",
    "environment",
    "envFile",
    "cwd",
    "url",
    "serverUrl",
    "httpUrl",
    "headers",
    "timeout",
    "requestTimeout",
    "connectionTimeout",
    "startup_timeout_sec",
    "tool_timeout_sec",
    "disabled",
    "enabled",
    "includeTools",
    "enabled_tools",
    "excludeTools",
    "disabledTools",
    "disabled_tools",
];

/// How a server is reached, as a word, or as a mapping with one (DIA-04).
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename = "shape: a word")]
#[schemars(rename = "McpTransport", untagged)]
pub(crate) enum TransportField {
    #[serde(rename = "text")]
    Name(String),
    #[serde(rename = "mapping")]
    Mapping(TransportObject),
}

/// How a server is reached.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "McpTransportMapping")]
pub(crate) struct TransportObject {
    /// `stdio`, `http`, `sse` or `ws`.
    #[serde(rename = "type")]
    pub(super) kind: Field<String>,
}

/// The program: its name or path, a list that begins with it, or a mapping that holds it (DIA-05).
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename = "shape: the name or path of a program")]
#[schemars(rename = "McpCommand", untagged)]
pub(crate) enum Command {
    #[serde(rename = "text")]
    Program(#[schemars(regex(pattern = r"\S"))] String),
    #[serde(rename = "list")]
    List(#[schemars(length(min = 1))] Vec<Field<String>>),
    #[serde(rename = "mapping")]
    Mapping(Box<CommandMapping>),
}

/// A program with its arguments and variables.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "McpCommandMapping")]
pub(crate) struct CommandMapping {
    /// Its name or path.
    pub(super) path: Field<String>,
    /// Its arguments.
    pub(super) args: NullableField<Vec<Field<String>>>,
    /// Its environment variables.
    pub(super) env: NullableField<Environment>,
}

/// Variables as a mapping, or as a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename = "shape: a mapping of names to texts")]
#[schemars(rename = "McpEnvironment", untagged)]
pub(crate) enum Environment {
    #[serde(rename = "mapping")]
    Mapping(OrderedMap<Scalar>),
    #[serde(rename = "list")]
    List(Vec<Field<VariableItem>>),
}

/// Headers as a mapping, or as a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename = "shape: a mapping of names to texts")]
#[schemars(rename = "McpHeaders", untagged)]
pub(crate) enum Headers {
    #[serde(rename = "mapping")]
    Mapping(OrderedMap<String>),
    #[serde(rename = "list")]
    List(Vec<Field<Pair>>),
}

/// The value of a variable; a number or truth value stands for its text, null for no variable.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename = "shape: text")]
#[schemars(rename = "McpValue", untagged)]
pub(crate) enum Scalar {
    #[serde(rename = "text")]
    Text(String),
    #[serde(rename = "number")]
    Number(f64),
    #[serde(rename = "boolean")]
    Boolean(bool),
    #[serde(rename = "null")]
    Null(#[schemars(with = "()")] Ignored),
}

/// A variable of a list: `NAME=value`, or a mapping.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename = "shape: a text `NAME=value`, or a mapping of `name` and `value`")]
#[schemars(rename = "McpVariable", untagged)]
pub(crate) enum VariableItem {
    #[serde(rename = "text")]
    Line(String),
    #[serde(rename = "mapping")]
    Pair(Pair),
}

/// A variable or a header of a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "McpPair")]
pub(crate) struct Pair {
    /// Its name.
    pub(super) name: Field<String>,
    /// Its value.
    pub(super) value: Field<String>,
}

/// The tools that are shown, or what somebody else says about them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename = "shape: a list of names")]
#[schemars(rename = "McpTools", untagged)]
pub(crate) enum Tools {
    #[serde(rename = "list")]
    List(Vec<Field<String>>),
    #[serde(rename = "mapping")]
    Mapping(#[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")] Ignored),
}
