//! Serde structs of a server in an editor file (DIA-03 to DIA-07), with the keys of all editors.
//!
//! The doc comments appear in the JSON Schema.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::de::{Field, Ignored, NullableField, OptionalField, OrderedMap};
use crate::dialect::lowering::SharingKey;

/// An MCP server.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "McpServer")]
#[serde(rename_all = "camelCase")]
#[expect(
    dead_code,
    reason = "what is only kept is taken from the tree; here it is known, and so no unknown key"
)]
pub(crate) struct EditorServer {
    /// Its name, if the servers are a list.
    pub(super) name: NullableField<String>,
    /// What it is for.
    pub(super) description: NullableField<String>,
    /// The transport: `stdio`, `http`, `sse` or `ws`. Default: by `command` and `url`.
    #[serde(rename = "type")]
    pub(super) kind: NullableField<TransportField>,
    /// The same as `type`.
    pub(super) transport: NullableField<TransportField>,
    /// The same as `type`.
    pub(super) transport_type: NullableField<TransportField>,
    /// The program to start.
    pub(super) command: NullableField<Command>,
    /// The same as `command`.
    pub(super) cmd: NullableField<Command>,
    /// Its arguments.
    pub(super) args: NullableField<Vec<Field<String>>>,
    /// Its environment variables, added to the inherited ones.
    pub(super) env: NullableField<Environment>,
    /// The same as `env`.
    pub(super) environment: NullableField<Environment>,
    /// The same as `env`.
    pub(super) envs: NullableField<Environment>,
    /// Variables of the environment that the server needs.
    #[serde(rename = "env_keys")]
    pub(super) env_keys: NullableField<Vec<Field<String>>>,
    /// A `.env` file; `env` takes precedence.
    pub(super) env_file: NullableField<String>,
    /// Its working directory, relative to the workspace.
    pub(super) cwd: NullableField<String>,
    /// The URL of the server.
    pub(super) url: NullableField<String>,
    /// The same as `url`.
    pub(super) server_url: NullableField<String>,
    /// The same as `url`, over Streamable HTTP.
    pub(super) http_url: NullableField<String>,
    /// The same as `url`.
    pub(super) uri: NullableField<String>,
    /// Headers of every request.
    pub(super) headers: NullableField<Headers>,
    /// The same as `headers`.
    #[serde(rename = "http_headers")]
    pub(super) http_headers: NullableField<Headers>,
    /// Headers whose values are variables of the environment: the header and the name of the variable.
    #[serde(rename = "env_http_headers")]
    pub(super) env_http_headers: NullableField<OrderedMap<String>>,
    /// The variable of the environment that holds the bearer token of every request.
    #[serde(rename = "bearer_token_env_var")]
    pub(super) bearer_token_env_var: NullableField<String>,
    /// The headers of every request, in Continue's form.
    pub(super) request_options: NullableField<RequestOptions>,
    /// The timeout of a request: milliseconds from 1000 on, seconds below.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(super) timeout: NullableField<f64>,
    /// The timeout of a request, in milliseconds.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(super) request_timeout: NullableField<f64>,
    /// The timeout of connecting, in milliseconds.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(super) connection_timeout: NullableField<f64>,
    /// The timeout of a start, in seconds.
    #[serde(rename = "startup_timeout_sec")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(super) startup_timeout_sec: NullableField<f64>,
    /// The timeout of a start, in milliseconds.
    #[serde(rename = "startup_timeout_ms")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(super) startup_timeout_ms: NullableField<f64>,
    /// The timeout of a start, in milliseconds.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(super) init_timeout: NullableField<f64>,
    /// The timeout of a request, in seconds.
    #[serde(rename = "tool_timeout_sec")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(super) tool_timeout_sec: NullableField<f64>,
    /// Which clients of a gateway share a running instance. `auto`: all, until the server sends a request such as
    /// sampling, elicitation or roots; then each client has its own. Default: `auto`.
    pub(super) sharing: NullableField<SharingKey>,
    /// `true` disables the server.
    pub(super) disabled: NullableField<bool>,
    /// `false` disables the server.
    pub(super) enabled: NullableField<bool>,
    /// The exposed tools, by the server's own names.
    pub(super) include_tools: NullableField<Vec<Field<String>>>,
    /// The same as `includeTools`.
    #[serde(rename = "enabled_tools")]
    pub(super) enabled_tools: NullableField<Vec<Field<String>>>,
    /// The same as `includeTools`; an empty list exposes all.
    #[serde(rename = "available_tools")]
    pub(super) available_tools: NullableField<Vec<Field<String>>>,
    /// The same as `includeTools`, if it is a list.
    pub(super) tools: NullableField<Tools>,
    /// The hidden tools.
    pub(super) exclude_tools: NullableField<Vec<Field<String>>>,
    /// The same as `excludeTools`.
    pub(super) disabled_tools: NullableField<Vec<Field<String>>>,
    /// The same as `excludeTools`.
    #[serde(rename = "disabled_tools")]
    pub(super) disabled_tools_alias: NullableField<Vec<Field<String>>>,
    /// Settings of an editor's extension, which provides the server itself.
    pub(super) settings: NullableField<Ignored>,
    /// The origin of the entry in an editor.
    pub(super) source: NullableField<Ignored>,
    /// Tools that the editor calls without confirmation; kept.
    pub(super) auto_approve: OptionalField<Ignored>,
    /// Tools that the editor calls without confirmation; kept.
    pub(super) always_allow: OptionalField<Ignored>,
    /// Whether the editor confirms calls; kept.
    pub(super) trust: OptionalField<Ignored>,
    /// Keywords of the server; kept.
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
    /// When a gateway restarts the server; kept.
    pub(super) restart_on_exit: OptionalField<Ignored>,
    /// When a gateway restarts the server; kept.
    pub(super) max_restarts: OptionalField<Ignored>,
    /// When a gateway restarts the server; kept.
    pub(super) restart_delay: OptionalField<Ignored>,
    /// Whether an editor needs the server; kept.
    pub(super) required: OptionalField<Ignored>,
    /// The sandbox of the server; kept.
    pub(super) sandbox: OptionalField<Ignored>,
}

/// The keys of an [`EditorServer`] that are lowered; all others are kept as JSON.
pub(super) const LOWERED_KEYS: &[&str] = &[
    "name",
    "description",
    "type",
    "transport",
    "transportType",
    "command",
    "cmd",
    "args",
    "env",
    "environment",
    "envs",
    "env_keys",
    "envFile",
    "cwd",
    "url",
    "serverUrl",
    "httpUrl",
    "uri",
    "headers",
    "http_headers",
    "env_http_headers",
    "bearer_token_env_var",
    "requestOptions",
    "timeout",
    "requestTimeout",
    "connectionTimeout",
    "startup_timeout_sec",
    "startup_timeout_ms",
    "initTimeout",
    "tool_timeout_sec",
    "sharing",
    "disabled",
    "enabled",
    "includeTools",
    "enabled_tools",
    "available_tools",
    "excludeTools",
    "disabledTools",
    "disabled_tools",
];

/// The options of a request, in Continue's form.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "McpRequestOptions")]
#[expect(dead_code, reason = "what has no effect is known, and so no unknown key")]
pub(crate) struct RequestOptions {
    /// Headers of every request.
    pub(super) headers: NullableField<Headers>,
    /// Whether certificates are checked; without effect.
    pub(super) verify_ssl: OptionalField<Ignored>,
    /// Certificate authorities; without effect.
    pub(super) ca_bundle_path: OptionalField<Ignored>,
    /// A proxy; without effect.
    pub(super) proxy: OptionalField<Ignored>,
    /// Hosts without the proxy; without effect.
    pub(super) no_proxy: OptionalField<Ignored>,
    /// The certificate of the client; without effect.
    pub(super) client_certificate: OptionalField<Ignored>,
    /// The timeout; without effect.
    pub(super) timeout: OptionalField<Ignored>,
}

/// The transport, as a word or as a mapping with a word (DIA-04).
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename = "shape: a word")]
#[schemars(rename = "McpTransport", untagged)]
pub(crate) enum TransportField {
    #[serde(rename = "text")]
    Name(String),
    #[serde(rename = "mapping")]
    Mapping(TransportObject),
}

/// The transport.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "McpTransportMapping")]
pub(crate) struct TransportObject {
    /// `stdio`, `http`, `sse` or `ws`.
    #[serde(rename = "type")]
    pub(super) kind: Field<String>,
}

/// The program: its name or path, a list that begins with it, or a mapping (DIA-05).
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename = "shape: the name or path of a program")]
#[schemars(rename = "McpCommand", untagged)]
pub(crate) enum Command {
    #[serde(rename = "text")]
    Program(#[schemars(regex(pattern = r"\S"))] String),
    #[serde(rename = "list")]
    List(
        #[schemars(length(min = 1), extend("prefixItems" = [{ "type": "string", "pattern": r"\S" }]))]
        Vec<Field<String>>,
    ),
    #[serde(rename = "mapping")]
    Mapping(Box<CommandMapping>),
}

/// A program with its arguments and variables.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "McpCommandMapping")]
pub(crate) struct CommandMapping {
    /// Its name or path.
    #[schemars(regex(pattern = r"\S"))]
    pub(super) path: Field<String>,
    /// Its arguments.
    pub(super) args: NullableField<Vec<Field<String>>>,
    /// Its environment variables.
    pub(super) env: NullableField<Environment>,
}

/// Variables as a mapping or as a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename = "shape: a mapping of names to texts")]
#[schemars(rename = "McpEnvironment", untagged)]
pub(crate) enum Environment {
    #[serde(rename = "mapping")]
    Mapping(OrderedMap<Scalar>),
    #[serde(rename = "list")]
    List(Vec<Field<VariableItem>>),
}

/// Headers as a mapping or as a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename = "shape: a mapping of names to texts")]
#[schemars(rename = "McpHeaders", untagged)]
pub(crate) enum Headers {
    #[serde(rename = "mapping")]
    Mapping(OrderedMap<String>),
    #[serde(rename = "list")]
    List(Vec<Field<Pair>>),
}

/// The value of a variable. A number or boolean means its text; null means no variable.
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

/// A variable in a list: `NAME=value`, or a mapping.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename = "shape: a text `NAME=value`, or a mapping of `name` and `value`")]
#[schemars(rename = "McpVariable", untagged)]
pub(crate) enum VariableItem {
    #[serde(rename = "text")]
    Line(String),
    #[serde(rename = "mapping")]
    Pair(Pair),
}

/// A variable or a header in a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "McpPair")]
pub(crate) struct Pair {
    /// Its name.
    pub(super) name: Field<String>,
    /// Its value.
    pub(super) value: Field<String>,
}

/// The exposed tools, or another program's settings of tools.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename = "shape: a list of names")]
#[schemars(rename = "McpTools", untagged)]
pub(crate) enum Tools {
    #[serde(rename = "list")]
    List(Vec<Field<String>>),
    #[serde(rename = "mapping")]
    Mapping(#[schemars(with = "std::collections::BTreeMap<String, serde_json::Value>")] Ignored),
}
