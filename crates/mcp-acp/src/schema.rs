//! From and to the types of agent-client-protocol-schema (feature `schema`), versions 1 and 2.
//!
//! Nothing is lost that both sides have a word for: what is said here goes through the JSON that both are read from and
//! written to, never field by field. What a typed request has lost when it was read (an unknown `type`, custom fields)
//! no conversion brings back; whoever wants all of it takes the request raw.

use agent_client_protocol_schema::{v1, v2};
use mcp_model::{RawJson, RpcError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Capabilities, Failure, InvalidParams, Method, Refusal, SetUp, Version};

/// The same value in other words. Both are the same JSON object, and what reads it has a default for every field.
fn same<To: DeserializeOwned>(json: &RawJson) -> To {
    json.read::<serde_json::Value>()
        .and_then(serde_json::from_value)
        .expect("an object of known fields is read by a type that has defaults for all")
}

fn written(value: &impl Serialize) -> RawJson {
    RawJson::of(value).expect("the schema's types are written as JSON")
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
fn parts(error: &RpcError) -> (i32, String, Option<serde_json::Value>) {
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
