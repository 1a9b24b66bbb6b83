//! Serde structs of a `.minds/mcp.yaml` (DM-003 to DM-017, DMX-01 to DMX-08).
//!
//! The doc comments appear in the JSON Schema.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::de::{DeferredField, Field, Ignored, NullableField, OptionalField, OrderedMap};
use crate::dialect::call_rules::CallRuleText;
use crate::dialect::lowering::SharingKey;
use crate::dialect::sandbox::SandboxValue;

/// The MCP servers of a Dominds workspace.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "DomindsMcp")]
pub(crate) struct DomindsFile {
    /// The number 1.
    #[schemars(extend("const" = 1))]
    pub(super) version: DeferredField<f64>,
    /// Servers by id. Each is a toolset of the same name.
    pub(super) servers: OptionalField<OrderedMap<DomindsServer>>,
}

/// The keys of stdio. Other transports ignore them, whatever their value.
pub(crate) const STDIO_KEYS: &[&str] = &["command", "args", "cwd", "env", "sandbox"];

/// The keys of streamable_http. Other transports ignore them, whatever their value.
pub(crate) const URL_KEYS: &[&str] = &["url", "headers", "sessionId"];

/// One server.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "DomindsServer", extend("allOf" = [
    { "if": { "properties": { "transport": { "const": "stdio" } } }, "then": { "required": ["command"] } },
    { "if": { "properties": { "transport": { "const": "streamable_http" } } }, "then": { "required": ["url"] } }
]))]
pub(crate) struct DomindsServer {
    /// `false` disables the server; its other keys are ignored.
    pub(super) enabled: OptionalField<bool>,
    /// `true`: one instance serves all dialogs. The spelling is intended.
    #[serde(rename = "truely-stateless")]
    pub(super) truely_stateless: OptionalField<bool>,
    /// Which clients of a gateway share a running instance; replaces `truely-stateless` in mcp-host. `auto`: all, until
    /// the server sends a request such as sampling, elicitation or roots; then each client has its own.
    pub(super) sharing: OptionalField<SharingKey>,
    /// Rules for calls in mcp-host; the first one that matches decides: `EFFECT [tools=a,b*]
    /// [hints=reads,writes,destructive] [users=…]`, with the effect `allow`, `ask` or `deny`.
    pub(super) calls: OptionalField<Vec<Field<CallRuleText>>>,
    /// The transport of the server.
    pub(super) transport: DeferredField<DomindsTransport>,
    /// The program to start; for stdio.
    #[schemars(regex(pattern = r"\S"))]
    pub(super) command: OptionalField<String>,
    /// Its arguments.
    pub(super) args: OptionalField<Vec<Field<String>>>,
    /// Its working directory, relative to the workspace.
    #[schemars(regex(pattern = r"\S"))]
    pub(super) cwd: OptionalField<String>,
    /// Environment variables of the program, added to the inherited ones.
    pub(super) env: OptionalField<OrderedMap<DomindsValue>>,
    /// What the processes of the server may reach: `project`, `network`, `off`, or a mapping; for stdio.
    /// Default: `off`. Dominds itself ignores this key.
    pub(super) sandbox: NullableField<SandboxValue>,
    /// The URL of the server; for streamable_http.
    #[schemars(regex(pattern = r"\S"))]
    pub(super) url: OptionalField<String>,
    /// Headers of every request; for streamable_http.
    pub(super) headers: OptionalField<OrderedMap<DomindsValue>>,
    /// A session to join; for streamable_http.
    #[serde(rename = "sessionId")]
    pub(super) session_id: OptionalField<String>,
    /// Which tools are exposed.
    pub(super) tools: OptionalField<ListExposure>,
    /// Which prompts are exposed.
    pub(super) prompts: OptionalField<ListExposure>,
    /// Which resources are exposed.
    pub(super) resources: OptionalField<ResourceExposure>,
    /// How names are changed, in this order. `tools`, `prompts` and `resources` may have their own list.
    pub(super) transform: OptionalField<Vec<Field<TransformEntry>>>,
    /// Text for the members of the team; ignored.
    #[expect(dead_code, reason = "it is accepted, whatever it is")]
    pub(super) manual: NullableField<Ignored>,
}

/// The transports of Dominds.
// DM-006
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum DomindsTransport {
    Stdio,
    StreamableHttp,
}

/// A text, or an environment variable of the host.
// DM-010, DM-011, DMX-05
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename = "shape: a string or { env: 'NAME' }")]
#[schemars(rename = "DomindsValue", untagged)]
pub(crate) enum DomindsValue {
    #[serde(rename = "text")]
    Text(String),
    #[serde(rename = "mapping")]
    Variable(DomindsVariable),
}

/// An environment variable of the host.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "DomindsVariable")]
pub(crate) struct DomindsVariable {
    /// Its name.
    #[schemars(length(min = 1))]
    pub(super) env: Field<String>,
    /// Text before its value, such as `Bearer `.
    pub(super) prefix: OptionalField<String>,
}

/// Which items of a list are exposed, and under which names.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "DomindsLists")]
pub(crate) struct ListExposure {
    /// Patterns of exposed names; `*` matches any characters.
    pub(super) whitelist: OptionalField<Vec<Field<String>>>,
    /// Patterns of hidden names; the whitelist takes precedence.
    pub(super) blacklist: OptionalField<Vec<Field<String>>>,
    /// How names are changed; replaces the list of the server.
    pub(super) transform: OptionalField<Vec<Field<TransformEntry>>>,
}

/// Which resources are exposed, and under which names.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "DomindsResources")]
pub(crate) struct ResourceExposure {
    /// Patterns of exposed names; `*` matches any characters.
    pub(super) whitelist: OptionalField<Vec<Field<String>>>,
    /// Patterns of hidden names; the whitelist takes precedence.
    pub(super) blacklist: OptionalField<Vec<Field<String>>>,
    /// How names are changed; replaces the list of the server.
    pub(super) transform: OptionalField<Vec<Field<TransformEntry>>>,
    /// The exposed media types.
    #[serde(rename = "mimeTypes")]
    pub(super) mime_types: OptionalField<Vec<Field<String>>>,
    /// The largest resource that is read, in bytes.
    #[serde(rename = "maxBytes")]
    #[schemars(range(min = 1))]
    pub(super) max_bytes: OptionalField<i64>,
    /// Resources that are skills.
    pub(super) skills: OptionalField<Skills>,
}

/// Which resources are skills.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "DomindsSkills")]
pub(crate) struct Skills {
    /// Whether there are skills.
    pub(super) enabled: OptionalField<bool>,
    /// Patterns of names that are skills.
    pub(super) whitelist: OptionalField<Vec<Field<String>>>,
    /// Patterns of names that are not skills.
    pub(super) blacklist: OptionalField<Vec<Field<String>>>,
    /// How names are changed; replaces the list of the resources.
    pub(super) transform: OptionalField<Vec<Field<TransformEntry>>>,
}

/// One change of a name: exactly one of the two keys.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "DomindsTransform", extend("oneOf" = [{ "required": ["prefix"] }, { "required": ["suffix"] }]))]
pub(crate) struct TransformEntry {
    /// Adds a prefix, or replaces one.
    pub(super) prefix: OptionalField<PrefixTransform>,
    /// Adds a suffix.
    pub(super) suffix: OptionalField<String>,
}

/// A prefix to add, or to replace.
// DM-043, DM-044
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename = "shape: string or { remove, add }")]
#[schemars(rename = "DomindsPrefix", untagged)]
pub(crate) enum PrefixTransform {
    #[serde(rename = "text")]
    Add(String),
    #[serde(rename = "mapping")]
    Replace(PrefixReplacement),
}

/// Replaces a prefix.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "DomindsReplacement")]
pub(crate) struct PrefixReplacement {
    /// Removed from names that begin with it.
    pub(super) remove: Field<String>,
    /// Always added.
    pub(super) add: Field<String>,
}
