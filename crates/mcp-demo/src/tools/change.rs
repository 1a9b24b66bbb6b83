//! The tools `change_tools` and `exit`, which change the server itself.

use rmcp::{
    ErrorData,
    model::{CallToolResponse, Tool, ToolAnnotations},
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::built_in::BuiltInTool;
use super::call::{ToolCall, ToolError, no_arguments_schema, text_result};
use crate::state::{Era, MAX_ADDED_TOOLS, ToggleOutcome};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangeTools {
    /// The tool's name: 1 to 64 letters, digits, `_` or `-`
    #[schemars(regex(pattern = "^[A-Za-z0-9_-]{1,64}$"))]
    name: String,
}

/// The definition of a tool that was added at run time.
pub(super) fn added_tool(name: &str) -> Tool {
    let hints = ToolAnnotations::new().read_only(true).idempotent(true).open_world(false);
    Tool::new(name.to_owned(), "Added at run time by change_tools", no_arguments_schema())
        .with_annotations(hints)
}

pub(super) async fn change_tools(
    call: &ToolCall<'_>,
    arguments: ChangeTools,
) -> Result<CallToolResponse, ToolError> {
    let ChangeTools { name } = arguments;
    if let Some(message) = name_error(&name) {
        return Err(ToolError::Tool(message));
    }
    let action = match call.state.toggle(&name) {
        ToggleOutcome::Added => "added",
        ToggleOutcome::Removed => "removed",
        ToggleOutcome::Full => {
            return Err(ToolError::tool(format!("{MAX_ADDED_TOOLS} tools are already added")));
        }
    };
    match call.era {
        // The list has changed even if the notification cannot be sent.
        Era::Legacy => drop(call.context.peer.notify_tool_list_changed().await),
        // Subscribers are notified on their own streams.
        Era::Modern => {}
    }
    Ok(text_result(format!("{action} {name}")))
}

/// Why a tool of this name cannot be added.
fn name_error(name: &str) -> Option<String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if name.is_empty() || name.len() > 64 || !name.bytes().all(allowed) {
        return Some("`name` is 1 to 64 letters, digits, `_` or `-`".to_owned());
    }
    BuiltInTool::find(name).map(|_| format!("`{name}` is a built-in tool"))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Exit {
    /// The exit code of the process, 0 unless given
    #[serde(default)]
    code: u8,
}

pub(super) async fn exit(call: &ToolCall<'_>, arguments: Exit) -> Result<CallToolResponse, ToolError> {
    call.lifetime.exit(i32::from(arguments.code));
    // The process is about to exit, and this error is not sent.
    call.context.ct.cancelled().await;
    Err(ErrorData::internal_error("the server has ended", None).into())
}
