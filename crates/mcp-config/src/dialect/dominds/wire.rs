//! A `.minds/mcp.yaml` as it is written (DM-003 to DM-017, DMX-01 to DMX-08).
//!
//! The doc comments are what users read in the schema.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::de::{DeferredField, Field, Ignored, NullableField, OptionalField, OrderedMap};

/// The MCP servers of a Dominds workspace.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "DomindsMcp")]
pub(crate) struct DomindsFile {
    /// The number 1.
    #[schemars(extend("const" = 1))]
    pub(super) version: DeferredField<f64>,
    /// Servers by their ids; each is a toolset of the same name.
    pub(super) servers: OptionalField<OrderedMap<DomindsServer>>,
}

/// One server.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "DomindsServer", extend("allOf" = [
    { "if": { "properties": { "transport": { "const": "stdio" } } }, "then": { "required": ["command"] } },
    { "if": { "properties": { "transport": { "const": "streamable_http" } } }, "then": { "required": ["url"] } }
]))]
pub(crate) struct DomindsServer {
    /// `false` switches the server off; nothing else of it is looked at then.
    pub(super) enabled: OptionalField<bool>,
    /// `true`: one instance serves all dialogs at once. The spelling is intended.
    #[serde(rename = "truely-stateless")]
    pub(super) truely_stateless: OptionalField<bool>,
    /// How the server is reached.
    pub(super) transport: DeferredField<DomindsTransport>,
    /// The program to start; for stdio.
    #[schemars(length(min = 1))]
    pub(super) command: OptionalField<String>,
    /// Its arguments.
    pub(super) args: OptionalField<Vec<Field<String>>>,
    /// Its working directory, relative to the workspace.
    #[schemars(length(min = 1))]
    pub(super) cwd: OptionalField<String>,
    /// Environment variables of the program, on top of all of ours.
    pub(super) env: OptionalField<OrderedMap<DomindsValue>>,
    /// Where the server is; for streamable_http.
    #[schemars(length(min = 1))]
    pub(super) url: OptionalField<String>,
    /// Headers of every request; for streamable_http.
    pub(super) headers: OptionalField<OrderedMap<DomindsValue>>,
    /// A session to join; for streamable_http.
    #[serde(rename = "sessionId")]
    pub(super) session_id: OptionalField<String>,
    /// Which tools are shown.
    pub(super) tools: OptionalField<Lists>,
    /// Which prompts are shown.
    pub(super) prompts: OptionalField<Lists>,
    /// Which resources are shown.
    pub(super) resources: OptionalField<Resources>,
    /// How names are changed, in this order; `tools`, `prompts` and `resources` may have a list of their own.
    pub(super) transform: OptionalField<Vec<Field<TransformEntry>>>,
    /// Words for the members of the team; not for us.
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

/// A text, or a variable of our environment.
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

/// A variable of our environment.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "DomindsVariable")]
pub(crate) struct DomindsVariable {
    /// Its name.
    #[schemars(length(min = 1))]
    pub(super) env: Field<String>,
    /// Put before its value, such as `Bearer `.
    pub(super) prefix: OptionalField<String>,
}

/// Which items of a list are shown, and under which names.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "DomindsLists")]
pub(crate) struct Lists {
    /// Patterns of names that are shown; `*` is any run of characters.
    pub(super) whitelist: OptionalField<Vec<Field<String>>>,
    /// Patterns of names that are hidden, unless the whitelist has them.
    pub(super) blacklist: OptionalField<Vec<Field<String>>>,
    /// How names are changed, instead of the server's own list.
    pub(super) transform: OptionalField<Vec<Field<TransformEntry>>>,
}

/// Which resources are shown, and under which names.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "DomindsResources")]
pub(crate) struct Resources {
    /// Patterns of names that are shown; `*` is any run of characters.
    pub(super) whitelist: OptionalField<Vec<Field<String>>>,
    /// Patterns of names that are hidden, unless the whitelist has them.
    pub(super) blacklist: OptionalField<Vec<Field<String>>>,
    /// How names are changed, instead of the server's own list.
    pub(super) transform: OptionalField<Vec<Field<TransformEntry>>>,
    /// The media types that are shown.
    #[serde(rename = "mimeTypes")]
    pub(super) mime_types: OptionalField<Vec<Field<String>>>,
    /// The largest resource that is fetched.
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
    /// Are there any?
    pub(super) enabled: OptionalField<bool>,
    /// Patterns of names that are skills.
    pub(super) whitelist: OptionalField<Vec<Field<String>>>,
    /// Patterns of names that are not.
    pub(super) blacklist: OptionalField<Vec<Field<String>>>,
    /// How names are changed, instead of the resources' own list.
    pub(super) transform: OptionalField<Vec<Field<TransformEntry>>>,
}

/// One change of a name: exactly one of the two.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "DomindsTransform", extend("oneOf" = [{ "required": ["prefix"] }, { "required": ["suffix"] }]))]
pub(crate) struct TransformEntry {
    /// Put in front, or put in front in place of another.
    pub(super) prefix: OptionalField<Prefix>,
    /// Put behind.
    pub(super) suffix: OptionalField<String>,
}

/// What is put in front.
// DM-043, DM-044
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename = "shape: string or { remove, add }")]
#[schemars(rename = "DomindsPrefix", untagged)]
pub(crate) enum Prefix {
    #[serde(rename = "text")]
    Add(String),
    #[serde(rename = "mapping")]
    Replace(Replacement),
}

/// A prefix in place of another.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "DomindsReplacement")]
pub(crate) struct Replacement {
    /// Taken away where a name begins with it.
    pub(super) remove: Field<String>,
    /// Always put in front.
    pub(super) add: Field<String>,
}
