//! One call of a tool: its context, its arguments and its errors.

use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject, object},
    service::RequestContext,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    lifetime::Lifetime,
    state::{DemoState, Era},
};

/// One call with its context.
pub(crate) struct ToolCall<'a> {
    pub(crate) state: &'a DemoState,
    /// Cancels a long call at its end; the tool `exit` ends it.
    pub(crate) lifetime: &'a Lifetime,
    pub(crate) era: Era,
    pub(crate) request: CallToolRequestParams,
    pub(crate) context: RequestContext<RoleServer>,
}

impl ToolCall<'_> {
    pub(super) fn arguments<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        let arguments = Value::Object(self.request.arguments.clone().unwrap_or_default());
        serde_json::from_value(arguments)
            .map_err(|error| ToolError::tool(format!("invalid arguments: {error}")))
    }
}

/// Why a call failed.
pub(super) enum ToolError {
    /// The tool failed; the model receives the message.
    Tool(String),
    /// The request is invalid.
    Protocol(ErrorData),
}

impl ToolError {
    pub(super) fn tool(message: impl Into<String>) -> ToolError {
        ToolError::Tool(message.into())
    }
}

impl From<ErrorData> for ToolError {
    fn from(error: ErrorData) -> ToolError {
        ToolError::Protocol(error)
    }
}

/// The arguments of a tool without arguments.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoArguments {}

/// The schema of [`NoArguments`], with the empty `properties` that some model providers require.
pub(super) fn no_arguments_schema() -> JsonObject {
    object(json!({"type": "object", "properties": {}, "additionalProperties": false}))
}

/// A result with one text block.
pub(super) fn text_result(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}
