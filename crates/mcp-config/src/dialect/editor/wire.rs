//! Serde types of the values of an entry in an editor file (DIA-04, DIA-05).
//!
//! The doc comments appear in the JSON Schema. A serde name `shape: …` is the text of the error for a value of another
//! type.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::de::{Field, Ignored, NullableField, OptionalField, OrderedMap};

/// The options of a request, in Continue's form.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "McpRequestOptions")]
#[expect(dead_code, reason = "keys without effect are known, so they are not reported")]
pub(crate) struct ContinueOptions {
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
pub(crate) enum CommandValue {
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
    List(Vec<Field<NamedValue>>),
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
    NamedValue(NamedValue),
}

/// A variable or a header in a list.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "McpPair")]
pub(crate) struct NamedValue {
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
