//! The tools: what the list says of each, and who answers.
//!
//! The order of the list is the order of [`BuiltIn::ALL`], then the tools added at run time by name. Bad arguments are
//! a tool's error, which a model can read and mend; only an unknown tool is a protocol error.

mod ask;
mod change;
mod given;
pub(crate) mod log;
mod plain;
mod sleep;

use rmcp::{
    ErrorData, RoleServer,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject, Tool,
        ToolAnnotations, object,
    },
    service::RequestContext,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{
    life::Life,
    server::Era,
    state::{Offer, State},
};

/// One call and all that a tool may need for it.
pub(crate) struct Call<'a> {
    pub(crate) state: &'a State,
    pub(crate) life: &'a Life,
    pub(crate) era: Era,
    pub(crate) request: CallToolRequestParams,
    pub(crate) context: RequestContext<RoleServer>,
}

impl Call<'_> {
    fn arguments<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        let given = Value::Object(self.request.arguments.clone().unwrap_or_default());
        serde_json::from_value(given).map_err(|error| Fault::tool(format!("invalid arguments: {error}")))
    }
}

/// Why a tool did not answer.
enum Fault {
    /// The tool failed: the model is told why.
    Tool(String),
    /// The request is wrong, whatever the tool.
    Protocol(ErrorData),
}

impl Fault {
    fn tool(message: impl Into<String>) -> Fault {
        Fault::Tool(message.into())
    }
}

impl From<ErrorData> for Fault {
    fn from(error: ErrorData) -> Fault {
        Fault::Protocol(error)
    }
}

/// The arguments of a tool that takes none.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

/// The schema of [`Nothing`], with the empty `properties` that some model providers insist on.
fn no_arguments() -> JsonObject {
    object(json!({"type": "object", "properties": {}, "additionalProperties": false}))
}

/// The tools that are always there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BuiltIn {
    Echo,
    Add,
    Sleep,
    Fail,
    Mixed,
    ChangeTools,
    Log,
    Grow,
    Exit,
    Ask,
    Env,
    Header,
}

impl BuiltIn {
    const ALL: [BuiltIn; 12] = [
        BuiltIn::Echo,
        BuiltIn::Add,
        BuiltIn::Sleep,
        BuiltIn::Fail,
        BuiltIn::Mixed,
        BuiltIn::ChangeTools,
        BuiltIn::Log,
        BuiltIn::Grow,
        BuiltIn::Exit,
        BuiltIn::Ask,
        BuiltIn::Env,
        BuiltIn::Header,
    ];

    fn find(name: &str) -> Option<BuiltIn> {
        BuiltIn::ALL.into_iter().find(|it| it.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            BuiltIn::Echo => "echo",
            BuiltIn::Add => "add",
            BuiltIn::Sleep => "sleep",
            BuiltIn::Fail => "fail",
            BuiltIn::Mixed => "mixed",
            BuiltIn::ChangeTools => "change_tools",
            BuiltIn::Log => "log",
            BuiltIn::Grow => "grow",
            BuiltIn::Exit => "exit",
            BuiltIn::Ask => "ask",
            BuiltIn::Env => "env",
            BuiltIn::Header => "header",
        }
    }

    fn tool(self) -> Tool {
        let tool = |description: &'static str| Tool::new(self.name(), description, no_arguments());
        let hints = ToolAnnotations::new().open_world(false);
        let safe = hints.clone().read_only(true);
        let repeatable = safe.clone().idempotent(true);
        match self {
            BuiltIn::Echo => tool("Answers with the text it is given")
                .with_input_schema::<plain::Echo>()
                .with_annotations(repeatable),
            BuiltIn::Add => tool("Adds two integers; the sum also comes as structured content")
                .with_input_schema::<plain::Add>()
                .with_output_schema::<plain::Sum>()
                .with_annotations(repeatable),
            BuiltIn::Sleep => tool("Sleeps, and reports progress after each step")
                .with_input_schema::<sleep::Sleep>()
                .with_annotations(repeatable),
            BuiltIn::Fail => tool("Fails with the message it is given")
                .with_input_schema::<plain::Fail>()
                .with_annotations(repeatable),
            BuiltIn::Mixed => {
                tool("Answers with every kind of content: text, image, audio, resource and link")
                    .with_annotations(repeatable)
            }
            BuiltIn::ChangeTools => {
                tool("Adds a tool of this name to the list, or removes it when it is there")
                    .with_input_schema::<change::ChangeTools>()
                    .with_annotations(hints.read_only(false).destructive(false).idempotent(false))
            }
            BuiltIn::Log => tool("Logs one message at each of the eight levels").with_annotations(safe),
            BuiltIn::Grow => tool("Answers with a text of this many bytes")
                .with_input_schema::<plain::Grow>()
                .with_annotations(repeatable),
            BuiltIn::Exit => tool("Ends the server process at once, without an answer")
                .with_input_schema::<change::Exit>()
                .with_annotations(hints.read_only(false).destructive(true).idempotent(false)),
            BuiltIn::Ask => {
                tool("Asks the user, or the client's model, a question and answers with the reply")
                    .with_input_schema::<ask::Ask>()
                    .with_annotations(safe.open_world(true))
            }
            BuiltIn::Env => {
                tool("Answers with a variable of the server's environment, if its name begins with `DEMO_`")
                    .with_input_schema::<given::Env>()
                    .with_annotations(repeatable)
            }
            BuiltIn::Header => tool("Answers with a header of the HTTP request that brought the call")
                .with_input_schema::<given::Header>()
                .with_annotations(repeatable),
        }
    }
}

/// The whole list: the built-in tools, then the added ones.
pub(crate) fn list(added: &[String]) -> Vec<Tool> {
    let built_in = BuiltIn::ALL.into_iter().map(BuiltIn::tool);
    built_in.chain(added.iter().map(|name| change::added_tool(name))).collect()
}

/// A page of what is offered in place of all that, from the tool that `cursor` counts to, and the next page's cursor.
pub(crate) fn offered(offer: &Offer, cursor: Option<&str>) -> Result<(Vec<Tool>, Option<String>), ErrorData> {
    let odd = || ErrorData::invalid_params("this cursor is not one of ours", None);
    let from = match cursor {
        None => 0,
        Some(it) => it.parse().ok().filter(|it| *it < offer.tools.len()).ok_or_else(odd)?,
    };
    let end = offer.page.map_or(offer.tools.len(), |it| offer.tools.len().min(from + it.get()));
    let tool = |name: &String| BuiltIn::find(name).map_or_else(|| change::added_tool(name), BuiltIn::tool);
    let tools = offer.tools[from..end].iter().map(tool).collect();
    Ok((tools, (end < offer.tools.len()).then(|| end.to_string())))
}

/// Carries out one call.
pub(crate) async fn call(call: Call<'_>) -> Result<CallToolResponse, ErrorData> {
    let name = &call.request.name;
    let offer = call.state.offer();
    let has = offer.is_none_or(|it| it.tools.iter().any(|it| it == name));
    let answer = match BuiltIn::find(name).filter(|_| has) {
        Some(tool) => answer(tool, &call).await,
        None if has && offer.is_some() => {
            tokio::time::sleep(offer.map(|it| it.delay).unwrap_or_default()).await;
            Ok(text(format!("I am {name}")))
        }
        None if call.state.has(name) => Ok(text(format!("I am {name}, added at run time"))),
        None => Err(ErrorData::invalid_params(format!("there is no tool `{name}`"), None).into()),
    };
    match answer {
        Ok(response) => Ok(response),
        Err(Fault::Tool(message)) => Ok(CallToolResult::error(vec![ContentBlock::text(message)]).into()),
        Err(Fault::Protocol(error)) => Err(error),
    }
}

async fn answer(tool: BuiltIn, call: &Call<'_>) -> Result<CallToolResponse, Fault> {
    match tool {
        BuiltIn::Echo => plain::echo(call.arguments()?),
        BuiltIn::Add => plain::add(call.arguments()?),
        BuiltIn::Sleep => sleep::sleep(call, call.arguments()?).await,
        BuiltIn::Fail => plain::fail(call.arguments()?),
        BuiltIn::Mixed => plain::mixed(call.arguments()?),
        BuiltIn::ChangeTools => change::change_tools(call, call.arguments()?).await,
        BuiltIn::Log => log::log(call, call.arguments()?).await,
        BuiltIn::Grow => plain::grow(call.arguments()?),
        BuiltIn::Exit => change::exit(call, call.arguments()?).await,
        BuiltIn::Ask => ask::ask(call, call.arguments()?).await,
        BuiltIn::Env => given::env(call.arguments()?),
        BuiltIn::Header => given::header(call, call.arguments()?),
    }
}

/// An answer of one text block.
fn text(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}
