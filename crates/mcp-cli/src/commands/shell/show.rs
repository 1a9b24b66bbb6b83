//! What the shell's commands do, and show: what the program's own commands of these names show.

use mcp_host::{Host, HostError, HostSnapshot, RequestOptions, ToolCall};
use mcp_model::{Content, ErrorKind, PromptMessage, RawJson, ResourceBody, ResourceContent, ServerId};

use super::command::{Command, help};
use crate::args::Format;
use crate::commands::arguments::{self, Typed, Unusable};
use crate::commands::{call, content, pairs, prompts, refused, resources, status, tools};
use crate::context::{Context, blocking};
use crate::exit::Exit;
use crate::output::console::Report;
use crate::output::table::Look;
use crate::output::{json, paint, plain};

/// Does it, and says what came of it.
pub(super) async fn act(context: &Context, host: &Host, command: Command) -> Exit {
    let published = host.snapshot();
    let report = match command {
        Command::Nothing | Command::Exit | Command::Reload => return Exit::Done,
        Command::Help => done(help()),
        Command::Tools | Command::Prompts | Command::Resources | Command::Servers | Command::Problems => {
            done(list(context, &command, &published))
        }
        Command::Schema(tool) => schema(context, &published, &tool),
        Command::Call { tool, words } => called(context, host, &tool, words).await,
        Command::Prompt { name, words } => prompt(context, host, &name, words).await,
        Command::Read(uri) => match host.read_resource(&uri, RequestOptions::default()).await {
            Ok(it) => done(match context.format {
                Format::Json => json::line(&it.raw),
                Format::Text => it.contents.iter().map(part).collect(),
            }),
            Err(failure) => failed(context, &failure),
        },
        Command::Restart(server) => {
            let order = async |id: &ServerId| {
                host.restart(id).await?;
                // What is shown next is to show it.
                host.wait_for(std::slice::from_ref(id)).await;
                Ok(())
            };
            ordered(context, &published, &server, order).await
        }
        Command::Disable(server) => {
            ordered(context, &published, &server, async |id| host.disable(id).await).await
        }
    };
    context.tell(report).await
}

fn done(out: String) -> Report {
    Report { out, err: String::new(), exit: Exit::Done, after: String::new() }
}

fn failed(context: &Context, failure: &HostError) -> Report {
    let message = plain::line(&failure.to_string());
    let help = failure.help.as_deref().map(plain::line);
    context.console.failure(Exit::Wrong, &message, help.as_deref())
}

fn refused(context: &Context, unusable: &Unusable) -> Report {
    context.console.failure(Exit::Usage, &plain::block(&unusable.message), Some(unusable.help))
}

fn list(context: &Context, command: &Command, published: &HostSnapshot) -> String {
    let look = Look { width: context.console.width, colour: context.console.out };
    let nothing =
        |text: String, what: &str| if text.is_empty() { format!("there are no {what}\n") } else { text };
    match (command, context.format) {
        (Command::Prompts, Format::Json) => json::line(&prompts::Document(published)),
        (Command::Resources, Format::Json) => json::line(&resources::Document(published)),
        (Command::Servers, Format::Json) => json::line(&published.servers),
        (Command::Problems, Format::Json) => json::line(&published.problems),
        (_, Format::Json) => json::line(published),
        (Command::Prompts, Format::Text) => nothing(prompts::text(published, look), "prompts"),
        (Command::Resources, Format::Text) => nothing(resources::text(published, look), "resources"),
        (Command::Servers, Format::Text) => nothing(status::servers(published, look.colour), "servers"),
        (Command::Problems, Format::Text) => nothing(status::problems(published, look.colour), "problems"),
        (_, Format::Text) => nothing(tools::text(published, look), "tools"),
    }
}

fn schema(context: &Context, published: &HostSnapshot, tool: &str) -> Report {
    let look = Look { width: context.console.width, colour: context.console.out };
    match (tools::one(published, tool, look), context.format) {
        (Ok(text), Format::Text) => done(text),
        (Ok(_), Format::Json) => done(tools::document(published, tool)),
        (Err(message), _) => context.console.failure(Exit::Wrong, &message, None),
    }
}

async fn called(context: &Context, host: &Host, tool: &str, words: Vec<String>) -> Report {
    let typed = match read(words).await {
        Ok(typed) => typed,
        Err(unusable) => return refused(context, &unusable),
    };
    let result = match call::fitted(&host.snapshot(), tool, typed) {
        Ok(arguments) => call::call(host, &context.progress(), ToolCall::new(tool, arguments)).await,
        Err(unusable) => refused::result(tool, ErrorKind::Validation, unusable.message),
    };
    let out = match context.format {
        Format::Json => json::line(&result),
        Format::Text => content::text(&result),
    };
    let (err, exit) = match &result.error {
        None => (String::new(), Exit::Done),
        Some(failure) => {
            let kind = paint::paint(context.console.err, paint::BAD, failure.kind.as_str());
            let mut err = format!("{kind}: {}\n", plain::block(&failure.message).trim_end());
            if failure.kind == ErrorKind::Validation {
                let help = format!("`schema {}` shows what the tool takes", plain::line(tool));
                err.push_str(&paint::help(context.console.err, &help));
            }
            (err, Exit::Wrong)
        }
    };
    Report { out, err, exit, after: String::new() }
}

async fn read(words: Vec<String>) -> Result<Typed, Unusable> {
    blocking(move || arguments::read(&words)).await
}

async fn prompt(context: &Context, host: &Host, name: &str, words: Vec<String>) -> Report {
    let arguments = match read(words).await.map(texts) {
        Ok(arguments) => arguments,
        Err(unusable) => return refused(context, &unusable),
    };
    match host.get_prompt(name, &arguments, RequestOptions::default()).await {
        Ok(it) => done(match context.format {
            Format::Json => json::line(&it.raw),
            Format::Text => it.messages.iter().map(message).collect(),
        }),
        Err(failure) => failed(context, &failure),
    }
}

/// The arguments of a prompt are texts, whatever they look like.
fn texts(typed: Typed) -> RawJson {
    match typed {
        Typed::Object(json) => json,
        Typed::Pairs(given) => pairs::texts(&given),
    }
}

/// `user: …`
fn message(message: &PromptMessage) -> String {
    let PromptMessage { role, content } = message;
    format!("{}: {}", plain::line(role), content::block(content))
}

fn part(part: &ResourceContent) -> String {
    let ResourceContent { uri, mime_type, body } = part;
    let (uri, mime_type) = (Some(uri.clone()), mime_type.clone());
    match body {
        ResourceBody::Text(text) => content::whole_lines(text),
        ResourceBody::Blob(data) => {
            content::block(&Content::Binary { data: data.clone(), mime_type, uri, text: None })
        }
    }
}

async fn ordered(
    context: &Context,
    published: &HostSnapshot,
    server: &str,
    order: impl AsyncFnOnce(&ServerId) -> Result<(), HostError>,
) -> Report {
    let known = published.servers.iter().any(|it| it.id == server);
    let Some(id) = ServerId::parse(server).ok().filter(|_| known) else {
        let names: Vec<String> = published.servers.iter().map(|it| plain::line(&it.id)).collect();
        let message =
            format!("there is no server `{}`; there are: {}", plain::line(server), names.join(", "));
        return context.console.failure(Exit::Wrong, &message, None);
    };
    match order(&id).await {
        Ok(()) => done(String::new()),
        Err(failure) => failed(context, &failure),
    }
}
