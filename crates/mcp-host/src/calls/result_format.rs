//! The formats of a call's result: parsed, or raw.

use std::borrow::Cow;

use mcp_host_model::{Content, RawJson, Task, ToolResult, read_created_task};
use mcp_host_transport::{CallError, CallOptions, CallResponse, Session, StartedCall};
use serde_json::json;

use crate::calls::tool_call::TaskHandling;

/// A format of results.
pub(super) trait ResultFormat: Sized {
    /// Sends a tool call.
    async fn call_tool(
        session: &Session,
        tool: &str,
        arguments: &RawJson,
        options: CallOptions,
        tasks: TaskHandling,
    ) -> Result<CallResponse<StartedCall<Self>>, CallError>;

    /// Converts the result of a task.
    fn from_task(result: RawJson) -> Result<Self, serde_json::Error>;

    /// Returns the task, if the result has one.
    fn created_task(&self) -> Option<Task>;

    /// Creates the result of one of the host's own tools.
    fn from_text(text: String) -> Self;

    /// Returns the parsed result, which can be checked against the output schema.
    fn as_tool_result(&self) -> Option<&ToolResult>;

    /// Returns the text that is recorded in a span: that of the content blocks, or the whole result as JSON.
    fn recorded_text(&self) -> Cow<'_, str>;
}

impl ResultFormat for ToolResult {
    async fn call_tool(
        session: &Session,
        tool: &str,
        arguments: &RawJson,
        options: CallOptions,
        _: TaskHandling,
    ) -> Result<CallResponse<StartedCall<ToolResult>>, CallError> {
        session.start_tool_call(tool, arguments, options).await
    }

    fn from_task(result: RawJson) -> Result<ToolResult, serde_json::Error> {
        result.read()
    }

    fn created_task(&self) -> Option<Task> {
        None
    }

    fn from_text(text: String) -> ToolResult {
        let mut result = ToolResult::default();
        result.content = vec![Content::Text(text)];
        result
    }

    fn as_tool_result(&self) -> Option<&ToolResult> {
        Some(self)
    }

    fn recorded_text(&self) -> Cow<'_, str> {
        let texts: Vec<&str> = self.content.iter().filter_map(Content::text).collect();
        texts.join("\n").into()
    }
}

impl ResultFormat for RawJson {
    async fn call_tool(
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

    fn from_task(result: RawJson) -> Result<RawJson, serde_json::Error> {
        Ok(result)
    }

    fn created_task(&self) -> Option<Task> {
        read_created_task(self.as_bytes()).ok()
    }

    fn from_text(text: String) -> RawJson {
        let result = json!({"content": [{"type": "text", "text": text}]});
        RawJson::from_value(&result).expect("its keys are strings")
    }

    fn as_tool_result(&self) -> Option<&ToolResult> {
        None
    }

    fn recorded_text(&self) -> Cow<'_, str> {
        self.as_str().into()
    }
}
