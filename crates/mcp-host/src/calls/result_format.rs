//! The forms of a call's result: parsed and checked, or raw.

use mcp_host_model::{Content, RawJson, RpcError, ServerId, Task, Tool, ToolResult, read_created_task};
use mcp_host_transport::{CallError, CallOptions, CallResponse, RequestId, Session, StartedCall};
use serde_json::json;

use super::CallRouter;
use super::tool_call::TaskHandling;
use crate::error::HostError;

/// A result as its server sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawResult {
    /// The bytes of the `result` member, neither cut nor checked.
    pub result: RawJson,
    /// The server.
    pub server: ServerId,
    /// The request id; `None` for the host's own tools.
    pub request_id: Option<RequestId>,
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{error}")]
#[non_exhaustive]
pub struct RequestError {
    /// The message with its kind.
    pub error: HostError,
    /// The server's JSON-RPC error, if it sent one, with secrets redacted.
    pub rpc: Option<Box<RpcError>>,
    /// The server, if one was found.
    pub server: Option<ServerId>,
}

impl From<HostError> for RequestError {
    fn from(error: HostError) -> RequestError {
        RequestError { error, rpc: None, server: None }
    }
}

impl RequestError {
    /// An error with the JSON-RPC error that the server sent, if any.
    pub(super) fn new(error: HostError, cause: &CallError) -> RequestError {
        let rpc = match cause {
            CallError::Rpc(rpc) | CallError::ResourceNotFound(rpc) => Some(rpc),
            CallError::Refused(refused) => refused.rpc_error(),
            _ => None,
        };
        RequestError { error, rpc: rpc.cloned().map(Box::new), server: None }
    }

    pub(super) fn on(self, server: &ServerId) -> RequestError {
        RequestError { server: Some(server.clone()), ..self }
    }
}

/// The form of a result.
pub(super) trait ResultFormat: Sized {
    /// Calls a tool.
    async fn fetch(
        session: &Session,
        tool: &str,
        arguments: &RawJson,
        options: CallOptions,
        tasks: TaskHandling,
    ) -> Result<CallResponse<StartedCall<Self>>, CallError>;

    /// Reads the result of a task.
    fn from_task(result: RawJson) -> Result<Self, CallError>;

    /// The task that a result describes, if the server created one.
    fn created_task(&self) -> Option<Task>;

    /// The result of one of the host's own tools.
    fn from_text(text: String) -> Self;

    /// Warnings about deviations from the output schema.
    fn check_output(&self, router: &CallRouter, server: &ServerId, tool: &Tool) -> Vec<String>;
}

impl ResultFormat for ToolResult {
    async fn fetch(
        session: &Session,
        tool: &str,
        arguments: &RawJson,
        options: CallOptions,
        _: TaskHandling,
    ) -> Result<CallResponse<StartedCall<ToolResult>>, CallError> {
        session.start_tool_call(tool, arguments, options).await
    }

    fn from_task(result: RawJson) -> Result<ToolResult, CallError> {
        result.read().map_err(|it| CallError::InvalidResponse(it.to_string()))
    }

    fn created_task(&self) -> Option<Task> {
        None
    }

    fn from_text(text: String) -> ToolResult {
        let mut result = ToolResult::default();
        result.content = vec![Content::Text(text)];
        result
    }

    fn check_output(&self, router: &CallRouter, server: &ServerId, tool: &Tool) -> Vec<String> {
        router.check_output(server, tool, self)
    }
}

impl ResultFormat for RawJson {
    async fn fetch(
        session: &Session,
        tool: &str,
        arguments: &RawJson,
        options: CallOptions,
        tasks: TaskHandling,
    ) -> Result<CallResponse<StartedCall<RawJson>>, CallError> {
        match tasks {
            TaskHandling::Follow => session.start_tool_call_raw(tool, arguments, options).await,
            TaskHandling::Return => {
                Ok(session.call_tool_raw(tool, arguments, options).await?.map(StartedCall::Complete))
            }
        }
    }

    fn from_task(result: RawJson) -> Result<RawJson, CallError> {
        Ok(result)
    }

    fn created_task(&self) -> Option<Task> {
        read_created_task(self.as_bytes())?.ok()
    }

    fn from_text(text: String) -> RawJson {
        let result = json!({"content": [{"type": "text", "text": text}]});
        RawJson::from_value(&result).expect("its keys are strings")
    }

    fn check_output(&self, _: &CallRouter, _: &ServerId, _: &Tool) -> Vec<String> {
        Vec::new()
    }
}
