//! Raw results, as their servers sent them, and the error of a request.

use mcp_host_model::{RawJson, ResultInfo, RpcError, ServerId};
use mcp_host_transport::{CallError, RequestId};

use crate::calls::policy::CallRuling;
use crate::error::HostError;

/// A result as its server sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawResult {
    /// The bytes of the `result` member, neither limited nor validated.
    pub result: RawJson,
    /// The kind of the result.
    pub info: ResultInfo,
    /// The server.
    pub server: ServerId,
    /// The request id; `None` for the host's own tools.
    pub request_id: Option<RequestId>,
    /// The rule that allowed the call, if one decided.
    pub ruling: Option<CallRuling>,
}

/// The error of a request.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{error}")]
#[non_exhaustive]
pub struct RequestFailure {
    /// The error kind and the message.
    pub error: HostError,
    /// The server's JSON-RPC error, if it sent one, with secrets redacted.
    pub rpc: Option<Box<RpcError>>,
    /// The server, if one was found.
    pub server: Option<ServerId>,
    /// The rule that decided about the call, if one did.
    pub ruling: Option<Box<CallRuling>>,
    /// Whether the connection had ended before the request was sent, or ended while it was sent and it may be repeated,
    /// so that it may begin again at another instance.
    pub(super) may_begin_again: bool,
}

impl From<HostError> for RequestFailure {
    fn from(error: HostError) -> RequestFailure {
        RequestFailure { error, rpc: None, server: None, ruling: None, may_begin_again: false }
    }
}

impl RequestFailure {
    /// Creates the error of a request that failed with `cause`, with the JSON-RPC error if the server sent one.
    pub(super) fn new(error: HostError, cause: &CallError) -> RequestFailure {
        let rpc = match cause {
            CallError::Rpc(rpc) | CallError::ResourceNotFound(rpc) => Some(rpc),
            CallError::Refused(refused) => refused.rpc_error(),
            _ => None,
        };
        let may_begin_again = matches!(cause, CallError::NotSent(_));
        RequestFailure { error, rpc: rpc.cloned().map(Box::new), server: None, ruling: None, may_begin_again }
    }

    /// Returns the error with its server.
    pub(super) fn with_server(self, server: &ServerId) -> RequestFailure {
        RequestFailure { server: Some(server.clone()), ..self }
    }
}
