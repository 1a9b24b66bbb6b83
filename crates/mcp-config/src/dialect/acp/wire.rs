//! Serde structs of the entries of `mcpServers` (ACP-004 to ACP-006, ACPX-09, ACPX-11).
//!
//! The doc comments appear in the JSON Schema.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::de::{DeferredField, Field, Ignored, NullableField};

/// A program that communicates over its standard streams.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AcpStdio")]
pub(crate) struct AcpStdio {
    /// `stdio`; required in protocol version 2.
    #[serde(rename = "type")]
    #[schemars(extend("const" = "stdio"))]
    #[expect(dead_code, reason = "`type` is checked before the entry is read; the schema needs the field")]
    pub(super) tag: NullableField<Ignored>,
    /// The server's name in this session.
    #[schemars(length(min = 1, max = 256))]
    pub(super) name: Field<String>,
    /// Absolute path of the program.
    #[schemars(regex(pattern = r"^(/|[A-Za-z]:[\\/]|\\\\)"))]
    pub(super) command: DeferredField<String>,
    /// Its arguments.
    pub(super) args: NullableField<Vec<Field<String>>>,
    /// Environment variables of the program, added to the agent's own.
    pub(super) env: NullableField<Vec<Field<AcpPair>>>,
    /// Absolute path of its working directory. Default: that of the session.
    #[schemars(regex(pattern = r"^(/|[A-Za-z]:[\\/]|\\\\)"))]
    pub(super) cwd: NullableField<String>,
    /// Only for http and sse.
    pub(super) url: NullableField<Ignored>,
    /// Only for http and sse.
    pub(super) headers: NullableField<Ignored>,
}

/// A server with a URL.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AcpUrl")]
pub(crate) struct AcpUrl {
    /// `http` or `sse`.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["http", "sse"]))]
    #[expect(dead_code, reason = "`type` is checked before the entry is read; the schema needs the field")]
    pub(super) tag: Field<Ignored>,
    /// The server's name in this session.
    #[schemars(length(min = 1, max = 256))]
    pub(super) name: Field<String>,
    /// The URL of the server.
    #[schemars(regex(pattern = r"^[Hh][Tt][Tt][Pp][Ss]?://"))]
    pub(super) url: DeferredField<String>,
    /// Headers of every request.
    pub(super) headers: NullableField<Vec<Field<AcpPair>>>,
    /// Only for stdio.
    pub(super) command: NullableField<Ignored>,
    /// Only for stdio.
    pub(super) args: NullableField<Ignored>,
    /// Only for stdio.
    pub(super) env: NullableField<Ignored>,
    /// Only for stdio.
    pub(super) cwd: NullableField<Ignored>,
}

/// A server that uses the ACP connection itself.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AcpOverAcp")]
pub(crate) struct AcpTunnel {
    /// `acp`.
    #[serde(rename = "type")]
    #[schemars(extend("const" = "acp"))]
    #[expect(dead_code, reason = "`type` is checked before the entry is read; the schema needs the field")]
    pub(super) tag: Field<Ignored>,
    /// The server's name in this session.
    #[schemars(length(min = 1, max = 256))]
    pub(super) name: Field<String>,
    /// The client's id of the server.
    #[serde(rename = "serverId")]
    #[schemars(length(min = 1))]
    pub(super) server_id: Field<String>,
}

/// A variable or a header.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AcpPair")]
pub(crate) struct AcpPair {
    /// Its name.
    #[schemars(length(min = 1))]
    pub(super) name: Field<String>,
    /// Its value, without variables.
    pub(super) value: Field<String>,
}
