//! The tools `echo`, `add`, `fail`, `mixed` and `grow`, which depend only on their arguments.

use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, ResourceContents};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::call::{NoArguments, ToolError, text_result};
use crate::content::{media, resources};

/// The maximum length of the text of `grow`: larger than the limits of hosts.
const MAX_BYTES: usize = 32 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Echo {
    /// What to answer
    text: String,
}

pub(super) fn echo(arguments: Echo) -> Result<CallToolResponse, ToolError> {
    Ok(text_result(arguments.text))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Add {
    /// The first number
    a: i64,
    /// The second number
    b: i64,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Sum {
    /// a + b
    sum: i64,
}

pub(super) fn add(arguments: Add) -> Result<CallToolResponse, ToolError> {
    let Some(sum) = arguments.a.checked_add(arguments.b) else {
        return Err(ToolError::tool("the sum does not fit into 64 bits"));
    };
    let structured = serde_json::json!(Sum { sum });
    let mut result = CallToolResult::success(vec![ContentBlock::text(sum.to_string())]);
    result.structured_content = Some(structured);
    Ok(result.into())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Fail {
    /// What the error says
    message: String,
}

pub(super) fn fail(arguments: Fail) -> Result<CallToolResponse, ToolError> {
    Err(ToolError::tool(arguments.message))
}

pub(super) fn mixed(_arguments: NoArguments) -> Result<CallToolResponse, ToolError> {
    let blocks = vec![
        ContentBlock::text("One block of each kind:"),
        ContentBlock::image(media::picture(), "image/png"),
        ContentBlock::audio(media::sound(), "audio/wav"),
        ContentBlock::resource(ResourceContents::text(resources::GREETING_TEXT, resources::GREETING)),
        ContentBlock::resource_link(resources::greeting()),
    ];
    Ok(CallToolResult::success(blocks).into())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Grow {
    /// How long the answer is, at most 33554432
    #[schemars(range(max = 33_554_432))]
    bytes: usize,
}

pub(super) fn grow(arguments: Grow) -> Result<CallToolResponse, ToolError> {
    if arguments.bytes > MAX_BYTES {
        return Err(ToolError::tool(format!("`bytes` is at most {MAX_BYTES}")));
    }
    let mut digits = "0123456789".repeat(arguments.bytes.div_ceil(10));
    digits.truncate(arguments.bytes);
    Ok(text_result(digits))
}
