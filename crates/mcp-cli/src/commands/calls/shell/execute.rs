//! Executes the commands of the shell. Their output is that of the program's commands with the same names.

use std::sync::Arc;

use mcp_host_model::{CallResult, ErrorKind, ServerId};
use mcp_host_runtime::{Host, HostSnapshot, RequestOptions};
use mcp_host_transport::Caller;

use super::command::{ShellCommand, help};
use crate::args::Format;
use crate::call_arguments;
use crate::commands::calls::call::{call, call_error, unavailable_servers};
use crate::commands::calls::prompt::{fetch_prompt, prompt_text};
use crate::commands::servers::list::name_filter::NameFilter;
use crate::commands::servers::list::prompts::{PromptsJson, prompt_table};
use crate::commands::servers::list::resources::{ResourcesJson, resource_tables};
use crate::commands::servers::list::tools::{ToolsJson, tool_document, tool_table, tool_text};
use crate::config::context::Context;
use crate::host::unknown_server;
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::progress::ProgressDisplay;
use crate::output::{json, sanitize, style};
use crate::render::call_result::{resource_text, result_text};
use crate::render::status::{problem_lines, server_lines};
use crate::runtime::exit::Exit;
use crate::runtime::run_blocking;

/// What shows the progress of calls, and who answers questions of servers.
pub(super) struct CallTerminal {
    pub(super) progress: ProgressDisplay,
    /// `None`: no one.
    pub(super) caller: Option<Arc<Caller>>,
}

/// Executes a command and prints its result.
pub(super) async fn execute(
    context: &Context,
    host: &Host,
    terminal: &CallTerminal,
    command: ShellCommand,
) -> Exit {
    context.print_result(try_execute(context, host, terminal, command).await).await
}

/// Executes a command and returns its output.
async fn try_execute(
    context: &Context,
    host: &Host,
    terminal: &CallTerminal,
    command: ShellCommand,
) -> Result<Report, Failure> {
    let published = host.snapshot();
    Ok(match command {
        ShellCommand::Empty | ShellCommand::Exit | ShellCommand::Reload => Report::default(),
        ShellCommand::Help => Report::out(help()),
        ShellCommand::Tools(patterns) => {
            Report::out(tools_text(context, &published, &NameFilter::new(&patterns))?)
        }
        ShellCommand::Prompts | ShellCommand::Resources | ShellCommand::Servers | ShellCommand::Problems => {
            Report::out(list_text(context, &command, &published))
        }
        ShellCommand::Schema(tool) => schema_report(context, &published, &tool)?,
        ShellCommand::Call { tool, words } => {
            let arguments = run_blocking(move || call_arguments::parse(&words)).await?;
            let result = call(host, &terminal.progress, terminal.caller.clone(), &tool, &arguments).await;
            call_report(context, host, &tool, &result)
        }
        ShellCommand::Prompt { name, words } => get_prompt(context, host, &name, words).await?,
        ShellCommand::Read(uri) => {
            let resource = host.read_resource(&uri, RequestOptions::default()).await?;
            Report::out(match context.format {
                Format::Json => json::line(&resource.raw),
                Format::Text => resource.contents.iter().map(resource_text).collect(),
            })
        }
        ShellCommand::Restart(server) => {
            let id = find_server(&published, &server)?;
            host.restart(&id).await?;
            // The next output shows the new state.
            host.wait_for_servers(std::slice::from_ref(&id)).await;
            Report::default()
        }
        ShellCommand::Disable(server) => {
            host.disable(&find_server(&published, &server)?).await?;
            Report::default()
        }
    })
}

/// The tools that a filter accepts. Fails if it accepts none.
fn tools_text(context: &Context, published: &HostSnapshot, filter: &NameFilter) -> Result<String, Failure> {
    let style = context.console.table_style();
    let text = match context.format {
        Format::Json => json::line(&ToolsJson(published, filter)),
        Format::Text => tool_table(published, filter, style),
    };
    match (text.is_empty(), filter.is_empty()) {
        (false, _) => Ok(text),
        (true, true) => Ok("there are no tools\n".to_owned()),
        (true, false) => Err(Failure::new(format!("no tool matches {filter}"))),
    }
}

/// The list that one of the commands `prompts`, `resources`, `servers` and `problems` prints.
fn list_text(context: &Context, command: &ShellCommand, published: &HostSnapshot) -> String {
    let style = context.console.table_style();
    let or_none =
        |text: String, noun: &str| if text.is_empty() { format!("there are no {noun}\n") } else { text };
    match (command, context.format) {
        (ShellCommand::Prompts, Format::Json) => json::line(&PromptsJson(published)),
        (ShellCommand::Resources, Format::Json) => json::line(&ResourcesJson(published)),
        (ShellCommand::Servers, Format::Json) => json::line(&published.servers),
        (_, Format::Json) => json::line(&published.problems),
        (ShellCommand::Prompts, Format::Text) => or_none(prompt_table(published, style), "prompts"),
        (ShellCommand::Resources, Format::Text) => or_none(resource_tables(published, style), "resources"),
        (ShellCommand::Servers, Format::Text) => or_none(server_lines(published, style.colour), "servers"),
        (_, Format::Text) => or_none(problem_lines(published, style.colour), "problems"),
    }
}

fn schema_report(context: &Context, published: &HostSnapshot, tool: &str) -> Result<Report, Failure> {
    let style = context.console.table_style();
    let text = tool_text(published, tool, style).map_err(Failure::new)?;
    Ok(Report::out(match context.format {
        Format::Text => text,
        Format::Json => tool_document(published, tool),
    }))
}

/// The report of a call.
fn call_report(context: &Context, host: &Host, tool: &str, result: &CallResult) -> Report {
    let Some(failure) = &result.error else {
        return Report::out(match context.format {
            Format::Json => json::line(result),
            Format::Text => result_text(result),
        });
    };
    let (colour, exit) = (context.console.err_colour, Exit::Failure);
    if context.format == Format::Json {
        return Report { out: json::line(result), exit, ..Report::default() };
    }
    let mut err = call_error(result, failure, colour);
    if failure.kind == ErrorKind::Validation {
        let help = format!("`schema {}` shows the arguments of the tool", sanitize::line(tool));
        err.push_str(&style::help(colour, &help));
    }
    err.push_str(&unavailable_servers(&host.snapshot(), result, colour));
    Report { err, exit, ..Report::default() }
}

async fn get_prompt(
    context: &Context,
    host: &Host,
    name: &str,
    words: Vec<String>,
) -> Result<Report, Failure> {
    let prompt = fetch_prompt(host, name, words, RequestOptions::default()).await?;
    Ok(Report::out(match context.format {
        Format::Json => json::line(&prompt.raw),
        Format::Text => prompt_text(&prompt),
    }))
}

/// The id of a server that exists.
fn find_server(published: &HostSnapshot, server: &str) -> Result<ServerId, Failure> {
    let exists = published.servers.iter().any(|status| status.id == server);
    ServerId::parse(server).ok().filter(|_| exists).ok_or_else(|| {
        let names: Vec<String> = published.servers.iter().map(|status| status.id.to_string()).collect();
        Failure::new(unknown_server(server, &names))
    })
}
