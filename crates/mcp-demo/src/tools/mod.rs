//! The tools: their definitions, and the dispatch of calls.
//!
//! The list has the order of [`BuiltInTool`], then the added tools by name. Invalid arguments are a tool error, which a
//! model can read and correct; an unknown tool is a protocol error.

mod ask;
mod basic;
mod built_in;
mod call;
mod change;
mod environment;
pub(crate) mod log;
mod sleep;

use rmcp::{
    ErrorData,
    model::{CallToolResponse, CallToolResult, ContentBlock, Tool, ToolAnnotations},
};
use strum::VariantArray;

use crate::state::CustomTools;
use built_in::BuiltInTool;
pub(crate) use call::ToolCall;
use call::{ToolError, no_arguments_schema, text_result};

impl BuiltInTool {
    /// The definition of the tool, with its schemas and annotations.
    fn definition(self) -> Tool {
        let name: &'static str = self.into();
        let tool = |description: &'static str| Tool::new(name, description, no_arguments_schema());
        let hints = ToolAnnotations::new().open_world(false);
        let safe = hints.clone().read_only(true);
        let repeatable = safe.clone().idempotent(true);
        match self {
            BuiltInTool::Echo => tool("Answers with the text it is given")
                .with_input_schema::<basic::Echo>()
                .with_annotations(repeatable),
            BuiltInTool::Add => tool("Adds two integers; the sum also comes as structured content")
                .with_input_schema::<basic::Add>()
                .with_output_schema::<basic::Sum>()
                .with_annotations(repeatable),
            BuiltInTool::Sleep => tool("Sleeps, and reports progress after each step")
                .with_input_schema::<sleep::Sleep>()
                .with_annotations(repeatable),
            BuiltInTool::Fail => tool("Fails with the message it is given")
                .with_input_schema::<basic::Fail>()
                .with_annotations(repeatable),
            BuiltInTool::Mixed => {
                tool("Answers with every kind of content: text, image, audio, resource and link")
                    .with_annotations(repeatable)
            }
            BuiltInTool::ChangeTools => {
                tool("Adds a tool of this name to the list, or removes it when it is there")
                    .with_input_schema::<change::ChangeTools>()
                    .with_annotations(hints.read_only(false).destructive(false).idempotent(false))
            }
            BuiltInTool::Log => tool("Logs one message at each of the eight levels").with_annotations(safe),
            BuiltInTool::Grow => tool("Answers with a text of this many bytes")
                .with_input_schema::<basic::Grow>()
                .with_annotations(repeatable),
            BuiltInTool::Exit => tool("Ends the server process at once, without an answer")
                .with_input_schema::<change::Exit>()
                .with_annotations(hints.read_only(false).destructive(true).idempotent(false)),
            BuiltInTool::Ask => {
                tool("Asks the user, or the client's model, a question and answers with the reply")
                    .with_input_schema::<ask::Ask>()
                    .with_annotations(safe.open_world(true))
            }
            BuiltInTool::Env => {
                tool("Answers with a variable of the server's environment, if its name begins with `DEMO_`")
                    .with_input_schema::<environment::Env>()
                    .with_annotations(repeatable)
            }
            BuiltInTool::Header => tool("Answers with a header of the HTTP request that brought the call")
                .with_input_schema::<environment::Header>()
                .with_annotations(repeatable),
        }
    }
}

/// The whole list: the built-in tools, then the added ones.
pub(crate) fn list(added: &[String]) -> Vec<Tool> {
    let built_in = BuiltInTool::VARIANTS.iter().copied().map(BuiltInTool::definition);
    built_in.chain(added.iter().map(|name| change::added_tool(name))).collect()
}

/// A page of custom tools, and the cursor of the next page. The cursor is the index of the first tool.
pub(crate) fn custom_tools_page(
    custom: &CustomTools,
    cursor: Option<&str>,
) -> Result<(Vec<Tool>, Option<String>), ErrorData> {
    let invalid = || ErrorData::invalid_params("unknown cursor", None);
    let from = match cursor {
        None => 0,
        Some(cursor) => {
            cursor.parse().ok().filter(|index| *index < custom.tools.len()).ok_or_else(invalid)?
        }
    };
    let length = custom.tools.len();
    let end = custom.page_size.map_or(length, |size| length.min(from + size.get()));
    let tool = |name: &String| {
        BuiltInTool::find(name).map_or_else(|| change::added_tool(name), BuiltInTool::definition)
    };
    let tools = custom.tools[from..end].iter().map(tool).collect();
    Ok((tools, (end < length).then(|| end.to_string())))
}

/// Executes one call.
pub(crate) async fn call_tool(call: ToolCall<'_>) -> Result<CallToolResponse, ErrorData> {
    let name = &call.request.name;
    let custom = call.state.custom_tools();
    let is_offered = custom.is_none_or(|custom| custom.tools.iter().any(|tool| tool == name));
    let result = match BuiltInTool::find(name).filter(|_| is_offered) {
        Some(tool) => call_built_in(tool, &call).await,
        None if is_offered && custom.is_some() => {
            tokio::time::sleep(custom.map(|custom| custom.delay).unwrap_or_default()).await;
            Ok(text_result(format!("I am {name}")))
        }
        None if call.state.has_added(name) => Ok(text_result(format!("I am {name}, added at run time"))),
        None => Err(ErrorData::invalid_params(format!("there is no tool `{name}`"), None).into()),
    };
    match result {
        Ok(response) => Ok(response),
        Err(ToolError::Tool(message)) => Ok(CallToolResult::error(vec![ContentBlock::text(message)]).into()),
        Err(ToolError::Protocol(error)) => Err(error),
    }
}

async fn call_built_in(tool: BuiltInTool, call: &ToolCall<'_>) -> Result<CallToolResponse, ToolError> {
    match tool {
        BuiltInTool::Echo => basic::echo(call.arguments()?),
        BuiltInTool::Add => basic::add(call.arguments()?),
        BuiltInTool::Sleep => sleep::sleep(call, call.arguments()?).await,
        BuiltInTool::Fail => basic::fail(call.arguments()?),
        BuiltInTool::Mixed => basic::mixed(call.arguments()?),
        BuiltInTool::ChangeTools => change::change_tools(call, call.arguments()?).await,
        BuiltInTool::Log => log::log(call, call.arguments()?).await,
        BuiltInTool::Grow => basic::grow(call.arguments()?),
        BuiltInTool::Exit => change::exit(call, call.arguments()?).await,
        BuiltInTool::Ask => ask::ask(call, call.arguments()?).await,
        BuiltInTool::Env => environment::env(call.arguments()?),
        BuiltInTool::Header => environment::header(call, call.arguments()?),
    }
}
