//! `prompt`: gets one prompt and prints its messages.

use mcp_host_model::{PromptMessage, PromptResult, ServerId};
use mcp_host_runtime::{Host, RequestOptions};

use crate::args::{Format, PromptArgs};
use crate::call_arguments::pairs::pairs_to_strings;
use crate::call_arguments::{self, CallArguments};
use crate::config::context::Context;
use crate::host::{open_servers, report_with_servers};
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::{json, sanitize};
use crate::render::call_result::content_text;
use crate::render::status::failure_with_servers;
use crate::runtime::exit::Exit;
use crate::runtime::run_blocking;
use crate::runtime::signals::Signals;

/// Starts the servers and gets one prompt.
pub(crate) async fn run(
    context: &Context,
    args: &PromptArgs,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let PromptArgs { config, prompt, arguments, server, target: _ } = args;
    let (desired, approval) = open_servers(context, Some(&config.file), server.as_deref(), signals).await?;
    let exit = report_with_servers(context, desired, approval, signals, async |host| {
        let mut options = RequestOptions::default();
        options.server = server.as_deref().and_then(|name| ServerId::parse(name).ok());
        let fetched = fetch_prompt(host, prompt, arguments.clone(), options).await;
        let prompt =
            fetched.map_err(|failure| failure_with_servers(failure, &host.snapshot(), &context.console))?;
        Ok(Report::out(match context.format {
            Format::Json => json::document(&prompt.raw),
            Format::Text => prompt_text(&prompt),
        }))
    });
    Ok(exit.await)
}

/// Gets a prompt. The words are its arguments, which are always strings.
pub(super) async fn fetch_prompt(
    host: &Host,
    name: &str,
    words: Vec<String>,
    options: RequestOptions,
) -> Result<PromptResult, Failure> {
    let arguments = match run_blocking(move || call_arguments::parse(&words)).await? {
        CallArguments::Object(json) => json,
        CallArguments::Pairs(pairs) => pairs_to_strings(&pairs),
    };
    Ok(host.get_prompt(name, &arguments, options).await?)
}

/// The messages of a prompt as text.
pub(super) fn prompt_text(prompt: &PromptResult) -> String {
    prompt.messages.iter().map(message_text).collect()
}

/// A message of a prompt as text: `user: …`.
fn message_text(message: &PromptMessage) -> String {
    let PromptMessage { role, content, .. } = message;
    format!("{}: {}", sanitize::line(role), content_text(content))
}
