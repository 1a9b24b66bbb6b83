//! Executes the commands of the shell. Their output is that of the program's commands with the same names.

use mcp_host::{Host, HostError, HostSnapshot, RequestOptions};
use mcp_model::{Content, ErrorKind, PromptMessage, RawJson, ResourceBody, ResourceContent, ServerId};

use super::command::{Command, help};
use crate::args::Format;
use crate::call_arguments::pairs::pairs_to_strings;
use crate::call_arguments::{self, ArgumentError, CallArguments};
use crate::commands::call::{call, call_error};
use crate::commands::list::prompts::{PromptsJson, prompt_table};
use crate::commands::list::resources::{ResourcesJson, resource_tables};
use crate::commands::list::tools::{tool_document, tool_table, tool_text};
use crate::config::context::Context;
use crate::host::unknown_server;
use crate::output::console::Report;
use crate::output::table::TableStyle;
use crate::output::{json, sanitize, style};
use crate::render::call_result::{content_block, result_text, with_line_feed};
use crate::render::status::{problem_lines, server_lines};
use crate::runtime::blocking;
use crate::runtime::exit::Exit;

/// Executes a command and prints its result.
pub(super) async fn execute(context: &Context, host: &Host, command: Command) -> Exit {
    let published = host.snapshot();
    let report = match command {
        Command::Empty | Command::Exit | Command::Reload => return Exit::Success,
        Command::Help => Report::out(help()),
        Command::Tools | Command::Prompts | Command::Resources | Command::Servers | Command::Problems => {
            Report::out(list(context, &command, &published))
        }
        Command::Schema(tool) => schema(context, &published, &tool),
        Command::Call { tool, words } => call_tool(context, host, &tool, words).await,
        Command::Prompt { name, words } => prompt(context, host, &name, words).await,
        Command::Read(uri) => match host.read_resource(&uri, RequestOptions::default()).await {
            Ok(resource) => Report::out(match context.format {
                Format::Json => json::line(&resource.raw),
                Format::Text => resource.contents.iter().map(resource_text).collect(),
            }),
            Err(failure) => failed(context, &failure),
        },
        Command::Restart(server) => {
            let restart = async |id: &ServerId| {
                host.restart(id).await?;
                // The next output shows the new state.
                host.wait_for(std::slice::from_ref(id)).await;
                Ok(())
            };
            control_server(context, &published, &server, restart).await
        }
        Command::Disable(server) => {
            control_server(context, &published, &server, async |id| host.disable(id).await).await
        }
    };
    context.print(report).await
}

fn failed(context: &Context, failure: &HostError) -> Report {
    let message = sanitize::line(&failure.to_string());
    let help = failure.help.as_deref().map(sanitize::line);
    context.console.failure(Exit::Failure, &message, help.as_deref())
}

fn usage_error(context: &Context, error: &ArgumentError) -> Report {
    context.console.failure(Exit::Usage, &sanitize::block(&error.message), Some(error.help))
}

fn list(context: &Context, command: &Command, published: &HostSnapshot) -> String {
    let style = TableStyle { width: context.console.width, colour: context.console.out_colour };
    let or_none =
        |text: String, noun: &str| if text.is_empty() { format!("there are no {noun}\n") } else { text };
    match (command, context.format) {
        (Command::Prompts, Format::Json) => json::line(&PromptsJson(published)),
        (Command::Resources, Format::Json) => json::line(&ResourcesJson(published)),
        (Command::Servers, Format::Json) => json::line(&published.servers),
        (Command::Problems, Format::Json) => json::line(&published.problems),
        (_, Format::Json) => json::line(published),
        (Command::Prompts, Format::Text) => or_none(prompt_table(published, style), "prompts"),
        (Command::Resources, Format::Text) => or_none(resource_tables(published, style), "resources"),
        (Command::Servers, Format::Text) => or_none(server_lines(published, style.colour), "servers"),
        (Command::Problems, Format::Text) => or_none(problem_lines(published, style.colour), "problems"),
        (_, Format::Text) => or_none(tool_table(published, style), "tools"),
    }
}

fn schema(context: &Context, published: &HostSnapshot, tool: &str) -> Report {
    let style = TableStyle { width: context.console.width, colour: context.console.out_colour };
    match (tool_text(published, tool, style), context.format) {
        (Ok(text), Format::Text) => Report::out(text),
        (Ok(_), Format::Json) => Report::out(tool_document(published, tool)),
        (Err(message), _) => context.console.failure(Exit::Failure, &message, None),
    }
}

async fn call_tool(context: &Context, host: &Host, tool: &str, words: Vec<String>) -> Report {
    let arguments = match parse_arguments(words).await {
        Ok(arguments) => arguments,
        Err(error) => return usage_error(context, &error),
    };
    let result = call(host, &context.progress(), tool, &arguments).await;
    let out = match context.format {
        Format::Json => json::line(&result),
        Format::Text => result_text(&result),
    };
    let Some(failure) = &result.error else { return Report::out(out) };
    let colour = context.console.err_colour;
    let mut err = call_error(failure, colour);
    if failure.kind == ErrorKind::Validation {
        let help = format!("`schema {}` shows the arguments of the tool", sanitize::line(tool));
        err.push_str(&style::help(colour, &help));
    }
    Report { out, err, exit: Exit::Failure, ..Report::default() }
}

async fn parse_arguments(words: Vec<String>) -> Result<CallArguments, ArgumentError> {
    blocking(move || call_arguments::parse(&words)).await
}

async fn prompt(context: &Context, host: &Host, name: &str, words: Vec<String>) -> Report {
    let arguments = match parse_arguments(words).await.map(prompt_arguments) {
        Ok(arguments) => arguments,
        Err(error) => return usage_error(context, &error),
    };
    match host.get_prompt(name, &arguments, RequestOptions::default()).await {
        Ok(prompt) => Report::out(match context.format {
            Format::Json => json::line(&prompt.raw),
            Format::Text => prompt.messages.iter().map(message_text).collect(),
        }),
        Err(failure) => failed(context, &failure),
    }
}

/// The arguments of a prompt are always strings.
fn prompt_arguments(arguments: CallArguments) -> RawJson {
    match arguments {
        CallArguments::Object(json) => json,
        CallArguments::Pairs(pairs) => pairs_to_strings(&pairs),
    }
}

/// A message of a prompt as text: `user: …`.
fn message_text(message: &PromptMessage) -> String {
    let PromptMessage { role, content } = message;
    format!("{}: {}", sanitize::line(role), content_block(content))
}

fn resource_text(content: &ResourceContent) -> String {
    let ResourceContent { uri, mime_type, body } = content;
    let (uri, mime_type) = (Some(uri.clone()), mime_type.clone());
    match body {
        ResourceBody::Text(text) => with_line_feed(text),
        ResourceBody::Blob(data) => {
            content_block(&Content::Binary { data: data.clone(), mime_type, uri, text: None })
        }
    }
}

/// Runs an operation on a server that exists.
async fn control_server(
    context: &Context,
    published: &HostSnapshot,
    server: &str,
    operation: impl AsyncFnOnce(&ServerId) -> Result<(), HostError>,
) -> Report {
    let exists = published.servers.iter().any(|status| status.id == server);
    let Some(id) = ServerId::parse(server).ok().filter(|_| exists) else {
        let names: Vec<String> = published.servers.iter().map(|status| status.id.clone()).collect();
        return context.console.failure(Exit::Failure, &unknown_server(server, &names), None);
    };
    match operation(&id).await {
        Ok(()) => Report::default(),
        Err(failure) => failed(context, &failure),
    }
}
