//! As what a caller wants the result of a call: read and judged, or as the bytes that its server sent.

use mcp_model::{Content, RawJson, RpcError, ServerId, Tool, ToolResult};
use mcp_transport::{CallError, CallOptions, CallResponse, RequestId, Session};
use serde_json::json;

use super::Desk;
use crate::failure::HostError;

/// A result as its server sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawResult {
    /// The `result` member, byte for byte: neither cut nor judged.
    pub result: RawJson,
    /// Whose it is.
    pub server: ServerId,
    /// The request that brought it; `None` for the host's own tools.
    pub request_id: Option<RequestId>,
}

/// Why there is no result, for those who hand it on.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestError {
    /// In words, with its kind.
    pub error: HostError,
    /// The server's own JSON-RPC error, where it answered with one: as it came, but for secrets.
    pub rpc: Option<Box<RpcError>>,
    /// The server, where it came to one.
    pub server: Option<ServerId>,
}

impl std::fmt::Display for RequestError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for RequestError {}

/// Why something brought nothing.
pub(super) struct Trouble {
    pub(super) failure: HostError,
    pub(super) rpc: Option<Box<RpcError>>,
}

impl From<HostError> for Trouble {
    fn from(failure: HostError) -> Trouble {
        Trouble { failure, rpc: None }
    }
}

impl Trouble {
    /// What `error` is in words, and as the server's own error where it is one.
    pub(super) fn new(failure: HostError, error: &CallError) -> Trouble {
        let rpc = match error {
            CallError::Rpc(error) | CallError::ResourceNotFound(error) => Some(error),
            CallError::Refused(fault) => fault.error.as_ref(),
            _ => None,
        };
        Trouble { failure, rpc: rpc.cloned().map(Box::new) }
    }

    pub(super) fn of(self, server: Option<ServerId>) -> RequestError {
        let Trouble { failure, rpc } = self;
        RequestError { error: failure, rpc, server }
    }
}

/// What a call's result is taken as.
pub(super) trait Form: Sized {
    /// Calls a tool.
    async fn fetch(
        session: &Session,
        tool: &str,
        arguments: &RawJson,
        options: CallOptions,
    ) -> Result<CallResponse<Self>, CallError>;

    /// The answer of one of the host's own tools.
    fn own(text: String) -> Self;

    /// What is not as the tool promises, in words.
    fn judge(&self, desk: &Desk, server: &ServerId, tool: &Tool) -> Vec<String>;
}

impl Form for ToolResult {
    async fn fetch(
        session: &Session,
        tool: &str,
        arguments: &RawJson,
        options: CallOptions,
    ) -> Result<CallResponse<ToolResult>, CallError> {
        session.call_tool(tool, arguments, options).await
    }

    fn own(text: String) -> ToolResult {
        ToolResult { content: vec![Content::Text(text)], structured: None, is_error: false }
    }

    fn judge(&self, desk: &Desk, server: &ServerId, tool: &Tool) -> Vec<String> {
        desk.judge(server, tool, self)
    }
}

impl Form for RawJson {
    async fn fetch(
        session: &Session,
        tool: &str,
        arguments: &RawJson,
        options: CallOptions,
    ) -> Result<CallResponse<RawJson>, CallError> {
        session.call_tool_raw(tool, arguments, options).await
    }

    fn own(text: String) -> RawJson {
        let result = json!({"content": [{"type": "text", "text": text}]});
        RawJson::from_value(&result).expect("its keys are strings")
    }

    fn judge(&self, _: &Desk, _: &ServerId, _: &Tool) -> Vec<String> {
        Vec::new()
    }
}
