//! Conversions from and to the types of agent-client-protocol-schema (feature `schema`), versions 1 and 2.
//!
//! Conversions go through JSON, never field by field, so everything that both sides can represent is kept. What a
//! typed request lost when it was read (an unknown `type`, custom fields) cannot be restored; read the raw request to
//! keep it.

use agent_client_protocol_schema::{v1, v2};
use mcp_host_model::{ConfigValue, Passthrough, RawJson, RpcError, TransportSpec};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use thiserror::Error;

use crate::capabilities::Capabilities;
use crate::request::SessionRequest;
use crate::request_error::{InvalidParams, SessionRequestError};
use crate::start_error::ServerStartError;
use crate::validate::SessionServer;
use crate::version::{AcpTransport, AcpVersion, SessionMethod};

/// Converts through JSON. Both types are objects in which every field has a default.
fn convert<To: DeserializeOwned>(json: &RawJson) -> To {
    json.read::<Value>()
        .and_then(serde_json::from_value)
        .expect("an object of known fields is read by a type that has defaults for all")
}

fn to_raw(value: &impl Serialize) -> RawJson {
    RawJson::from_value(value).expect("the schema's types are written as JSON")
}

impl From<&Capabilities> for v1::McpCapabilities {
    fn from(capabilities: &Capabilities) -> v1::McpCapabilities {
        convert(&capabilities.to_json(AcpVersion::V1))
    }
}

impl From<&v1::McpCapabilities> for Capabilities {
    fn from(capabilities: &v1::McpCapabilities) -> Capabilities {
        Capabilities::read(AcpVersion::V1, &to_raw(capabilities))
    }
}

impl From<&Capabilities> for v2::McpCapabilities {
    /// The schema cannot represent extensions: they are lost. [`Capabilities::to_json`] has them.
    fn from(capabilities: &Capabilities) -> v2::McpCapabilities {
        convert(&capabilities.to_json(AcpVersion::V2))
    }
}

impl From<&v2::McpCapabilities> for Capabilities {
    fn from(capabilities: &v2::McpCapabilities) -> Capabilities {
        Capabilities::read(AcpVersion::V2, &to_raw(capabilities))
    }
}

macro_rules! session_requests {
    ($($request:ty => $method:expr),+ $(,)?) => {
        $(impl From<&$request> for SessionRequest {
            fn from(request: &$request) -> SessionRequest {
                SessionRequest { method: $method, params: to_raw(request) }
            }
        })+
    };
}

session_requests! {
    v1::NewSessionRequest => SessionMethod::New,
    v1::LoadSessionRequest => SessionMethod::Load,
    v1::ResumeSessionRequest => SessionMethod::Resume,
    v1::ForkSessionRequest => SessionMethod::Fork,
    v2::NewSessionRequest => SessionMethod::New,
    v2::ResumeSessionRequest => SessionMethod::Resume,
    v2::ForkSessionRequest => SessionMethod::Fork,
}

/// Splits an error for the schema's constructor. ACP's codes have 32 bits.
fn error_parts(error: &RpcError) -> (i32, String, Option<Value>) {
    let number = i32::try_from(error.code).unwrap_or(i32::MIN);
    let data = error.data.as_ref().map(|data| data.read().expect("raw JSON is JSON"));
    (number, error.message.clone(), data)
}

macro_rules! errors {
    ($version:ident: $($error:ty),+) => {
        $(impl From<&$error> for $version::Error {
            fn from(error: &$error) -> $version::Error {
                let (number, message, data) = error_parts(&RpcError::from(error));
                let schema_error = $version::Error::new(number, message);
                match data {
                    Some(data) => schema_error.data(data),
                    None => schema_error,
                }
            }
        })+
    };
}

errors!(v1: SessionRequestError, InvalidParams, ServerStartError);
errors!(v2: SessionRequestError, InvalidParams, ServerStartError);

/// The error for a server that the schema cannot represent.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the schema cannot represent MCP server '{}' ({transport})", server_name.escape_debug())]
#[non_exhaustive]
pub struct SchemaConversionError {
    /// The server.
    pub server_name: String,
    /// The transport, which the schema does not have, or not for such an entry.
    pub transport: AcpTransport,
}

impl TryFrom<&SessionServer> for v1::McpServer {
    type Error = SchemaConversionError;

    /// Converts to an entry of version 1, with its `_meta`. The schema cannot represent custom fields.
    ///
    /// The result contains the values of variables and headers in the clear.
    fn try_from(server: &SessionServer) -> Result<v1::McpServer, SchemaConversionError> {
        let entry = entry_json(server)?;
        // The schema would read an unknown type as stdio, so the type is decided here.
        match server.transport() {
            AcpTransport::Stdio => from_entry(entry, server).map(v1::McpServer::Stdio),
            AcpTransport::Http => from_entry(entry, server).map(v1::McpServer::Http),
            AcpTransport::Sse => from_entry(entry, server).map(v1::McpServer::Sse),
            AcpTransport::Acp => from_entry(entry, server).map(v1::McpServer::Acp),
            AcpTransport::Other(_) => Err(conversion_error(server)),
        }
    }
}

impl TryFrom<&SessionServer> for v2::McpServer {
    type Error = SchemaConversionError;

    /// Converts to an entry of version 2, with its `_meta`. Extensions keep all their fields; the schema cannot
    /// represent custom fields of other entries.
    ///
    /// The result contains the values of variables and headers in the clear.
    fn try_from(server: &SessionServer) -> Result<v2::McpServer, SchemaConversionError> {
        let entry = entry_json(server)?;
        match server.transport() {
            AcpTransport::Stdio => from_entry(entry, server).map(v2::McpServer::Stdio),
            AcpTransport::Http => from_entry(entry, server).map(v2::McpServer::Http),
            AcpTransport::Acp => from_entry(entry, server).map(v2::McpServer::Acp),
            AcpTransport::Other(_) => from_entry(entry, server).map(v2::McpServer::Other),
            AcpTransport::Sse => Err(conversion_error(server)),
        }
    }
}

fn conversion_error(server: &SessionServer) -> SchemaConversionError {
    SchemaConversionError { server_name: server.name().to_owned(), transport: server.transport() }
}

fn from_entry<T: DeserializeOwned>(entry: Value, server: &SessionServer) -> Result<T, SchemaConversionError> {
    serde_json::from_value(entry).map_err(|_| conversion_error(server))
}

/// Returns a server as the JSON entry of a client.
fn entry_json(server: &SessionServer) -> Result<Value, SchemaConversionError> {
    let spec = match server {
        SessionServer::Spec(spec) => spec,
        SessionServer::Extension { name: _, transport: _, entry } => {
            let (Passthrough::Literal(json) | Passthrough::Template(json)) = entry;
            return json.read().map_err(|_| conversion_error(server));
        }
    };
    let error = || conversion_error(server);
    let mut entry = match &spec.transport {
        TransportSpec::Stdio(stdio) => json!({
            "type": "stdio",
            "command": stdio.command,
            "args": stdio.args.iter().map(ConfigValue::as_literal).collect::<Option<Vec<_>>>().ok_or_else(error)?,
            "env": name_value_pairs(&stdio.env).ok_or_else(error)?,
        }),
        TransportSpec::Http(http) | TransportSpec::Sse(http) | TransportSpec::WebSocket(http) => json!({
            "type": spec.transport.kind().as_str(),
            "url": http.url.as_literal().ok_or_else(error)?,
            "headers": name_value_pairs(&http.headers).ok_or_else(error)?,
        }),
    };
    entry["name"] = spec.id.as_str().into();
    if let Some(meta) = spec.metadata.get("_meta") {
        entry["_meta"] = meta.read().map_err(|_| error())?;
    }
    Ok(entry)
}

fn name_value_pairs(values: &[(String, ConfigValue)]) -> Option<Vec<Value>> {
    let pairs =
        values.iter().map(|(name, value)| Some(json!({ "name": name, "value": value.as_literal()? })));
    pairs.collect()
}
