//! A result as its server sent it, and the error of a request.

use mcp_host_model::{RawJson, ResultInfo, RpcError, ServerId};
use mcp_host_transport::{CallError, RequestId};

use crate::error::HostError;

/// A result as its server sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawResult {
    /// The bytes of the `result` member, neither cut nor checked.
    pub result: RawJson,
    /// Its kind.
    pub info: ResultInfo,
    /// The server.
    pub server: ServerId,
    /// The request id; `None` for the host's own tools.
    pub request_id: Option<RequestId>,
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{error}")]
#[non_exhaustive]
pub struct RequestFailure {
    /// The message with its kind.
    pub error: HostError,
    /// The server's JSON-RPC error, if it sent one, with secrets redacted.
    pub rpc: Option<Box<RpcError>>,
    /// The server, if one was found.
    pub server: Option<ServerId>,
}

impl From<HostError> for RequestFailure {
    fn from(error: HostError) -> RequestFailure {
        RequestFailure { error, rpc: None, server: None }
    }
}

impl RequestFailure {
    /// An error with the JSON-RPC error that the server sent, if any.
    pub(super) fn new(error: HostError, cause: &CallError) -> RequestFailure {
        let rpc = match cause {
            CallError::Rpc(rpc) | CallError::ResourceNotFound(rpc) => Some(rpc),
            CallError::Refused(refused) => refused.rpc_error(),
            _ => None,
        };
        RequestFailure { error, rpc: rpc.cloned().map(Box::new), server: None }
    }

    /// The same error, of this server.
    pub(super) fn on(self, server: &ServerId) -> RequestFailure {
        RequestFailure { server: Some(server.clone()), ..self }
    }
}
