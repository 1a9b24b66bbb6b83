//! A refusal as ACP carries it: a JSON-RPC error whose words and data others rely on.
//!
//! It says which servers and transports were asked for, and nothing else of the request, which may hold secrets.

use std::fmt;

use mcp_model::{RawJson, RpcError, TransportKind};
use serde::{Serialize, Serializer};

use crate::code;

/// One server that may not be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Its name.
    pub server_name: String,
    /// The transport that is not supported.
    pub transport: TransportKind,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.transport {
            // Every agent has stdio in protocol version 1; the sentence is for a caller who refuses it all the same.
            TransportKind::Stdio => {
                "stdio transport not supported: agent did not declare mcpCapabilities.stdio"
            }
            TransportKind::Http => "HTTP transport not supported: agent did not declare mcpCapabilities.http",
            TransportKind::Sse => "SSE transport not supported: agent did not declare mcpCapabilities.sse",
            TransportKind::WebSocket => "WebSocket transport not supported: ACP has no such transport",
        })
    }
}

/// The parameters of a session request are refused (ACP-027 to ACP-029).
///
/// Invariant: at least one server is refused. Prints the first refusal, and serializes as the `error` member of a
/// JSON-RPC response whose `data` names them all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidParams {
    refusals: Vec<Refusal>,
    supported: Vec<TransportKind>,
}

impl InvalidParams {
    /// The refusals in the order of the request, and what would have been supported; `None` where nothing is refused.
    pub fn new(refusals: Vec<Refusal>, supported: Vec<TransportKind>) -> Option<InvalidParams> {
        (!refusals.is_empty()).then_some(InvalidParams { refusals, supported })
    }

    /// Every server that is refused, in the order of the request.
    pub fn refusals(&self) -> &[Refusal] {
        &self.refusals
    }

    /// The transports that the agent supports.
    pub fn supported(&self) -> &[TransportKind] {
        &self.supported
    }

    fn first(&self) -> &Refusal {
        self.refusals.first().expect("there is at least one refusal, as the type says")
    }
}

impl fmt::Display for InvalidParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first().fmt(f)
    }
}

impl std::error::Error for InvalidParams {}

impl From<&InvalidParams> for RpcError {
    fn from(invalid: &InvalidParams) -> RpcError {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Data<'a> {
            requested_transport: TransportKind,
            declared_capability: bool,
            supported_transports: &'a [TransportKind],
            server_name: &'a str,
            errors: Vec<Entry<'a>>,
        }
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Entry<'a> {
            message: String,
            server_name: &'a str,
            requested_transport: TransportKind,
        }
        let InvalidParams { refusals, supported } = invalid;
        let first = invalid.first();
        let entries = refusals.iter().map(|it| Entry {
            message: it.to_string(),
            server_name: &it.server_name,
            requested_transport: it.transport,
        });
        let data = Data {
            requested_transport: first.transport,
            declared_capability: false,
            supported_transports: supported,
            server_name: &first.server_name,
            errors: entries.collect(),
        };
        let data = RawJson::of(&data).expect("texts, flags and lists of them are JSON");
        RpcError { data: Some(data), ..RpcError::new(code::INVALID_PARAMS, first.to_string()) }
    }
}

impl Serialize for InvalidParams {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RpcError::from(self).serialize(serializer)
    }
}

#[cfg(test)]
mod tests;
