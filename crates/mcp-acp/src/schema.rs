//! From and to the types of agent-client-protocol-schema (feature `schema`), versions 1 and 2.
//!
//! Nothing is lost that both sides have a word for: what is said here goes through the JSON that both are read from and
//! written to, never field by field. What a typed request has lost when it was read (an unknown `type`, custom fields)
//! no conversion brings back; whoever wants all of it takes the request raw.

use std::fmt;

use agent_client_protocol_schema::{v1, v2};
use mcp_model::{ConfigValue as Configured, Passthrough, RawJson, RpcError, TransportSpec};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{Capabilities, Failure, InvalidParams, Method, Refusal, Server, SetUp, Transport, Version};

/// The same value in other words. Both are the same JSON object, and what reads it has a default for every field.
fn same<To: DeserializeOwned>(json: &RawJson) -> To {
    json.read::<Value>()
        .and_then(serde_json::from_value)
        .expect("an object of known fields is read by a type that has defaults for all")
}

fn written(value: &impl Serialize) -> RawJson {
    RawJson::from_value(value).expect("the schema's types are written as JSON")
}

impl From<&Capabilities> for v1::McpCapabilities {
    fn from(capabilities: &Capabilities) -> v1::McpCapabilities {
        same(&capabilities.advertised(Version::V1))
    }
}

impl From<&v1::McpCapabilities> for Capabilities {
    fn from(capabilities: &v1::McpCapabilities) -> Capabilities {
        Capabilities::read(Version::V1, &written(capabilities))
    }
}

impl From<&Capabilities> for v2::McpCapabilities {
    /// The schema has no place for extensions: they are lost here. [`Capabilities::advertised`] has them.
    fn from(capabilities: &Capabilities) -> v2::McpCapabilities {
        same(&capabilities.advertised(Version::V2))
    }
}

impl From<&v2::McpCapabilities> for Capabilities {
    fn from(capabilities: &v2::McpCapabilities) -> Capabilities {
        Capabilities::read(Version::V2, &written(capabilities))
    }
}

macro_rules! set_up {
    ($($request:ty => $method:expr),+ $(,)?) => {
        $(impl From<&$request> for SetUp {
            fn from(request: &$request) -> SetUp {
                SetUp { method: $method, params: written(request) }
            }
        })+
    };
}

set_up! {
    v1::NewSessionRequest => Method::New,
    v1::LoadSessionRequest => Method::Load,
    v1::ResumeSessionRequest => Method::Resume,
    v1::ForkSessionRequest => Method::Fork,
    v2::NewSessionRequest => Method::New,
    v2::ResumeSessionRequest => Method::Resume,
    v2::ForkSessionRequest => Method::Fork,
}

/// An error in the schema's words. Numbers of ACP are of 32 bits.
fn parts(error: &RpcError) -> (i32, String, Option<Value>) {
    let number = i32::try_from(error.code).unwrap_or(i32::MIN);
    let data = error.data.as_ref().map(|it| it.read().expect("raw JSON is JSON"));
    (number, error.message.clone(), data)
}

macro_rules! errors {
    ($version:ident: $($ours:ty),+) => {
        $(impl From<&$ours> for $version::Error {
            fn from(error: &$ours) -> $version::Error {
                let (number, message, data) = parts(&RpcError::from(error));
                let res = $version::Error::new(number, message);
                match data {
                    Some(data) => res.data(data),
                    None => res,
                }
            }
        })+
    };
}

errors!(v1: Refusal, InvalidParams, Failure);
errors!(v2: Refusal, InvalidParams, Failure);

/// Why a server of a session has no words in a version's schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoWord {
    /// The server.
    pub server_name: String,
    /// Its transport, which the schema does not have, or not for such an entry.
    pub transport: Transport,
}

impl fmt::Display for NoWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoWord { server_name, transport } = self;
        write!(f, "the schema has no word for MCP server '{}' ({transport})", server_name.escape_debug())
    }
}

impl std::error::Error for NoWord {}

impl TryFrom<&Server> for v1::McpServer {
    type Error = NoWord;

    /// The entry as version 1 has it, `_meta` of the entry included; the schema has no place for custom fields.
    ///
    /// The result holds the values of variables and headers in the clear.
    fn try_from(server: &Server) -> Result<v1::McpServer, NoWord> {
        let entry = entry(server)?;
        // The schema would take an unknown type for stdio: which one it is, is decided here.
        match server.transport() {
            Transport::Stdio => read(entry, server).map(v1::McpServer::Stdio),
            Transport::Http => read(entry, server).map(v1::McpServer::Http),
            Transport::Sse => read(entry, server).map(v1::McpServer::Sse),
            Transport::Acp => read(entry, server).map(v1::McpServer::Acp),
            Transport::Other(_) => Err(no_word(server)),
        }
    }
}

impl TryFrom<&Server> for v2::McpServer {
    type Error = NoWord;

    /// The entry as version 2 has it, `_meta` of the entry included. Extensions keep all their fields; for those of
    /// other entries the schema has no place.
    ///
    /// The result holds the values of variables and headers in the clear.
    fn try_from(server: &Server) -> Result<v2::McpServer, NoWord> {
        let entry = entry(server)?;
        match server.transport() {
            Transport::Stdio => read(entry, server).map(v2::McpServer::Stdio),
            Transport::Http => read(entry, server).map(v2::McpServer::Http),
            Transport::Acp => read(entry, server).map(v2::McpServer::Acp),
            Transport::Other(_) => read(entry, server).map(v2::McpServer::Other),
            Transport::Sse => Err(no_word(server)),
        }
    }
}

fn no_word(server: &Server) -> NoWord {
    NoWord { server_name: server.name().to_owned(), transport: server.transport() }
}

fn read<T: DeserializeOwned>(entry: Value, server: &Server) -> Result<T, NoWord> {
    serde_json::from_value(entry).map_err(|_| no_word(server))
}

/// A server as a client would write it.
fn entry(server: &Server) -> Result<Value, NoWord> {
    let spec = match server {
        Server::Spec(spec) => spec,
        Server::Extension { name: _, transport: _, entry } => {
            let (Passthrough::Literal(json) | Passthrough::Template(json)) = entry;
            return json.read().map_err(|_| no_word(server));
        }
    };
    let mut res = match &spec.transport {
        TransportSpec::Stdio(it) => json!({
            "type": "stdio",
            "command": it.command,
            "args": it.args.iter().map(literal).collect::<Option<Vec<_>>>().ok_or_else(|| no_word(server))?,
            "env": pairs(&it.env).ok_or_else(|| no_word(server))?,
        }),
        TransportSpec::Http(it) | TransportSpec::Sse(it) | TransportSpec::WebSocket(it) => json!({
            "type": spec.transport.kind().as_str(),
            "url": literal(&it.url).ok_or_else(|| no_word(server))?,
            "headers": pairs(&it.headers).ok_or_else(|| no_word(server))?,
        }),
    };
    res["name"] = spec.id.as_str().into();
    if let Some(meta) = spec.metadata.get("_meta") {
        res["_meta"] = meta.read().map_err(|_| no_word(server))?;
    }
    Ok(res)
}

/// The text of a value that an entry of ACP can have; one that is taken from somewhere else has none.
fn literal(value: &Configured) -> Option<&str> {
    match value {
        Configured::Literal(text) => Some(text.expose()),
        Configured::HostEnv { name: _, prefix: _ } | Configured::Template(_) => None,
    }
}

fn pairs(values: &[(String, Configured)]) -> Option<Vec<Value>> {
    let pair = |(name, value): &(String, Configured)| Some(json!({ "name": name, "value": literal(value)? }));
    values.iter().map(pair).collect()
}
