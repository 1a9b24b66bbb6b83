//! The tools that answer at once and depend on nothing but their arguments.

use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, ResourceContents};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Fault, Nothing, text};
use crate::{media, resources};

/// The longest text `grow` makes: past every limit a host may want to try, and still harmless.
const MOST_BYTES: usize = 32 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Echo {
    /// What to answer
    text: String,
}

pub(super) fn echo(arguments: Echo) -> Result<CallToolResponse, Fault> {
    Ok(text(arguments.text))
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

pub(super) fn add(arguments: Add) -> Result<CallToolResponse, Fault> {
    let Some(sum) = arguments.a.checked_add(arguments.b) else {
        return Err(Fault::tool("the sum does not fit into 64 bits"));
    };
    let structured = serde_json::json!(Sum { sum });
    let mut res = CallToolResult::success(vec![ContentBlock::text(sum.to_string())]);
    res.structured_content = Some(structured);
    Ok(res.into())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Fail {
    /// What the error says
    message: String,
}

pub(super) fn fail(arguments: Fail) -> Result<CallToolResponse, Fault> {
    Err(Fault::tool(arguments.message))
}

pub(super) fn mixed(_arguments: Nothing) -> Result<CallToolResponse, Fault> {
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

pub(super) fn grow(arguments: Grow) -> Result<CallToolResponse, Fault> {
    if arguments.bytes > MOST_BYTES {
        return Err(Fault::tool(format!("`bytes` is at most {MOST_BYTES}")));
    }
    let mut res = "0123456789".repeat(arguments.bytes.div_ceil(10));
    res.truncate(arguments.bytes);
    Ok(text(res))
}
