//! The tools that change the server itself: its list, and whether it runs at all.

use rmcp::{
    ErrorData,
    model::{CallToolResponse, Tool, ToolAnnotations},
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{BuiltIn, Call, Fault, no_arguments, text};
use crate::{
    server::Era,
    state::{MOST_ADDED, Toggled},
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangeTools {
    /// The tool's name: 1 to 64 letters, digits, `_` or `-`
    #[schemars(regex(pattern = "^[A-Za-z0-9_-]{1,64}$"))]
    name: String,
}

/// What the list says of a tool added at run time.
pub(super) fn added_tool(name: &str) -> Tool {
    let hints = ToolAnnotations::new().read_only(true).idempotent(true).open_world(false);
    Tool::new(name.to_owned(), "Added at run time by change_tools", no_arguments()).with_annotations(hints)
}

pub(super) async fn change_tools(call: &Call<'_>, arguments: ChangeTools) -> Result<CallToolResponse, Fault> {
    let ChangeTools { name } = arguments;
    if let Some(fault) = objection(&name) {
        return Err(Fault::Tool(fault));
    }
    let done = match call.state.toggle(&name) {
        Toggled::Added => "added",
        Toggled::Removed => "removed",
        Toggled::Full => return Err(Fault::tool(format!("{MOST_ADDED} tools were added already"))),
    };
    match call.era {
        // The list has changed whether or not the client hears of it.
        Era::Legacy => drop(call.context.peer.notify_tool_list_changed().await),
        // Those who listen are told by their own streams.
        Era::Sessionless => {}
    }
    Ok(text(format!("{done} {name}")))
}

fn objection(name: &str) -> Option<String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if name.is_empty() || name.len() > 64 || !name.bytes().all(allowed) {
        return Some("`name` is 1 to 64 letters, digits, `_` or `-`".to_owned());
    }
    BuiltIn::find(name).map(|_| format!("`{name}` is always there"))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Exit {
    /// The exit code of the process, 0 unless given
    #[serde(default)]
    code: u8,
}

pub(super) async fn exit(call: &Call<'_>, arguments: Exit) -> Result<CallToolResponse, Fault> {
    call.life.exit(i32::from(arguments.code));
    // The process is about to end: there will be no answer, and this error is not written.
    call.context.ct.cancelled().await;
    Err(ErrorData::internal_error("the server has ended", None).into())
}
