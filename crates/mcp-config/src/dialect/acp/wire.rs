//! The entries of `mcpServers` as they are written (ACP-004 to ACP-006, ACPX-09, ACPX-11).
//!
//! The doc comments are what users read in the schema.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::de::{DeferredField, Field, Ignored, NullableField};

/// A program that speaks on its standard streams.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AcpStdio")]
pub(crate) struct AcpStdio {
    /// `stdio`; only needed in protocol version 2.
    #[serde(rename = "type")]
    #[schemars(extend("const" = "stdio"))]
    #[expect(dead_code, reason = "it was looked at before the entry was read; the schema needs it")]
    pub(super) tag: NullableField<Ignored>,
    /// The server's name in this session.
    #[schemars(length(min = 1, max = 256))]
    pub(super) name: Field<String>,
    /// Absolute path of the program.
    #[schemars(regex(pattern = r"^(/|[A-Za-z]:[\\/]|\\\\)"))]
    pub(super) command: DeferredField<String>,
    /// Its arguments.
    pub(super) args: NullableField<Vec<Field<String>>>,
    /// Environment variables of the program, on top of the agent's own.
    pub(super) env: NullableField<Vec<Field<AcpPair>>>,
    /// Absolute path of its working directory; that of the session unless said.
    #[schemars(regex(pattern = r"^(/|[A-Za-z]:[\\/]|\\\\)"))]
    pub(super) cwd: NullableField<String>,
    /// Belongs to http and sse.
    pub(super) url: NullableField<Ignored>,
    /// Belongs to http and sse.
    pub(super) headers: NullableField<Ignored>,
}

/// A server behind a URL.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AcpUrl")]
pub(crate) struct AcpUrl {
    /// `http` or `sse`.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["http", "sse"]))]
    #[expect(dead_code, reason = "it was looked at before the entry was read; the schema needs it")]
    pub(super) tag: Field<Ignored>,
    /// The server's name in this session.
    #[schemars(length(min = 1, max = 256))]
    pub(super) name: Field<String>,
    /// Where the server is.
    #[schemars(regex(pattern = r"^[Hh][Tt][Tt][Pp][Ss]?://"))]
    pub(super) url: DeferredField<String>,
    /// Headers of every request.
    pub(super) headers: NullableField<Vec<Field<AcpPair>>>,
    /// Belongs to stdio.
    pub(super) command: NullableField<Ignored>,
    /// Belongs to stdio.
    pub(super) args: NullableField<Ignored>,
    /// Belongs to stdio.
    pub(super) env: NullableField<Ignored>,
    /// Belongs to stdio.
    pub(super) cwd: NullableField<Ignored>,
}

/// A server that is reached through the ACP connection itself.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "AcpOverAcp")]
pub(crate) struct AcpTunnel {
    /// `acp`.
    #[serde(rename = "type")]
    #[schemars(extend("const" = "acp"))]
    #[expect(dead_code, reason = "it was looked at before the entry was read; the schema needs it")]
    pub(super) tag: Field<Ignored>,
    /// The server's name in this session.
    #[schemars(length(min = 1, max = 256))]
    pub(super) name: Field<String>,
    /// What the client calls the server.
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
    /// Its value, literally.
    pub(super) value: Field<String>,
}
