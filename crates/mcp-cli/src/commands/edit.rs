//! `add`, `remove`, `enable`, `disable`: one change to a file, shown before it is made.
//!
//! What can be changed, and how, is mcp-config's business; here a change is shown and written.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use mcp_config::{Added, EditError, Loss, NewReach, NewServer, Profile, Switch, UrlKind, changes};
use mcp_host::save;
use mcp_model::{ServerId, Severity};
use serde::Serialize;

use crate::args::Format;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::cause::chain;
use crate::output::console::Report;
use crate::output::{json, paint, plain};
use crate::source::{Source, Unreadable, open};

/// The words of a change to a server that is there.
#[derive(Debug, clap::Args)]
pub(crate) struct Words {
    /// The configuration, or the folder it is in
    file: PathBuf,
    /// The server's name
    server: String,
    /// Show the change and do not make it
    #[arg(long)]
    dry_run: bool,
}

/// The words of `add`.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("reach").required(true).args(["command", "url"])))]
pub(crate) struct AddWords {
    /// The configuration, or the folder it is in
    file: PathBuf,
    /// The new server's name
    server: String,
    /// The program to start
    #[arg(long, value_name = "PROGRAM")]
    command: Option<String>,
    /// Its arguments: everything that follows
    #[arg(long, value_name = "ARG", num_args = 1.., allow_hyphen_values = true, requires = "command")]
    args: Vec<String>,
    /// A variable of its environment; `${NAME}` in the value is our variable of that name
    #[arg(long, value_name = "NAME=VALUE", requires = "command")]
    env: Vec<String>,
    /// The URL to connect to
    #[arg(long)]
    url: Option<String>,
    /// How the URL is spoken to; by its scheme unless given
    #[arg(long, value_enum, requires = "url")]
    transport: Option<UrlTransport>,
    /// A header of every request; `${NAME}` in the value is our variable of that name
    #[arg(long, value_name = "NAME=VALUE", requires = "url")]
    header: Vec<String>,
    /// What the server is for
    #[arg(long)]
    description: Option<String>,
    /// Show the change and do not make it
    #[arg(long)]
    dry_run: bool,
}

/// The transports that have a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum UrlTransport {
    /// Streamable HTTP
    Http,
    /// HTTP with server-sent events
    Sse,
    /// WebSocket
    Websocket,
}

/// Names and values, `NAME=value`. What is wrong with one is told without it: it may be a secret, and output is kept.
fn pairs(flag: &str, texts: Vec<String>) -> Result<Vec<(String, String)>, String> {
    let pair = |text: String| {
        let (name, value) =
            text.split_once('=').ok_or_else(|| format!("`{flag}` takes NAME=VALUE, and one has no `=`"))?;
        Ok((name.to_owned(), value.to_owned()))
    };
    texts.into_iter().map(pair).collect()
}

impl AddWords {
    fn server(self) -> Result<(PathBuf, NewServer, Manner), String> {
        let AddWords { file, server, command, args, env, url, transport, header, description, dry_run } =
            self;
        let id = ServerId::parse(&server).map_err(|it| it.to_string())?;
        let reach = match (command, url) {
            (Some(command), _) => NewReach::Program { command, args, env: pairs("--env", env)? },
            (None, url) => {
                let url = url.unwrap_or_default();
                let kind = match transport {
                    Some(UrlTransport::Http) => UrlKind::Http,
                    Some(UrlTransport::Sse) => UrlKind::Sse,
                    Some(UrlTransport::Websocket) => UrlKind::WebSocket,
                    None => UrlKind::of(&url),
                };
                NewReach::Url { kind, url, headers: pairs("--header", header)? }
            }
        };
        Ok((file, NewServer { id, description, reach }, manner(dry_run)))
    }
}

/// Is the change made, or only shown?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Make,
    Show,
}

fn manner(dry_run: bool) -> Manner {
    if dry_run { Manner::Show } else { Manner::Make }
}

/// The document of a change.
#[derive(Serialize, Default)]
struct Document {
    /// The file.
    path: String,
    /// The server.
    server: String,
    /// Has the file been changed?
    changed: bool,
    /// The change as a unified diff, without secrets; empty where there is none.
    diff: String,
    /// What else was written than was asked for.
    losses: Vec<Loss>,
    /// Why nothing was changed.
    error: Option<String>,
}

/// Adds a server. Blocks.
pub(crate) fn add(context: &Context, words: AddWords) -> Report {
    let (file, server, manner) = match words.server() {
        Ok(all) => all,
        Err(message) => return context.console.failure(Exit::Usage, &message, None),
    };
    let name = server.id.to_string();
    let change = |source: &Source| {
        let spec = server.into_spec(source.loaded.profile);
        mcp_config::add(&source.document(), &spec).map(|Added { text, losses }| (text, losses))
    };
    run(context, &file, &Order { server: &name, done: "added", already: "is there already", manner }, change)
}

/// Takes a server out. Blocks.
pub(crate) fn remove(context: &Context, words: &Words) -> Report {
    let Words { file, server, dry_run } = words;
    let order = Order { server, done: "removed", already: "is gone already", manner: manner(*dry_run) };
    run(context, file, &order, |source| Ok((mcp_config::take(&source.document(), server)?, Vec::new())))
}

/// Switches a server. Blocks.
pub(crate) fn switch(context: &Context, words: &Words, to: Switch) -> Report {
    let Words { file, server, dry_run } = words;
    let (done, already) = match to {
        Switch::On => ("switched on", "is on already"),
        Switch::Off => ("switched off", "is off already"),
    };
    let order = Order { server, done, already, manner: manner(*dry_run) };
    run(context, file, &order, |source| Ok((mcp_config::switch(&source.document(), server, to)?, Vec::new())))
}

/// What is to be done, in words.
struct Order<'a> {
    server: &'a str,
    done: &'a str,
    already: &'a str,
    manner: Manner,
}

fn run(
    context: &Context,
    file: &Path,
    order: &Order<'_>,
    change: impl FnOnce(&Source) -> Result<(String, Vec<Loss>), EditError>,
) -> Report {
    let server = order.server.to_owned();
    let source = match open(file, context) {
        Ok(source) => source,
        Err(Unreadable { path, message, help }) => {
            let document = Document { path, server, error: Some(message), ..Document::default() };
            return failed(context, document, help.as_deref());
        }
    };
    let taken = source.taken(context.console.err);
    let path = source.loaded.path.clone();
    let before = &source.loaded.text;
    let refused = |error: String, help: Option<String>| {
        let document = Document {
            path: path.clone(),
            server: server.clone(),
            error: Some(error),
            ..Document::default()
        };
        let mut res = failed(context, document, help.as_deref());
        res.err.insert_str(0, &taken);
        res
    };
    let (after, losses) = match change(&source) {
        Ok(changed) => changed,
        Err(error) => return refused(error.to_string(), help(&error, source.loaded.profile)),
    };
    if order.manner == Manner::Make
        && after != *before
        && let Err(error) = save(&source.file, before, &after)
    {
        return refused(chain(&error), None);
    }
    let shown = |colour| changes(&path, before, &after, colour);
    let out = match context.format {
        Format::Text => text(&shown(context.console.out), &losses, order, context),
        Format::Json => json::document(&Document {
            path: path.clone(),
            server: server.clone(),
            changed: order.manner == Manner::Make && after != *before,
            diff: shown(mcp_config::Colour::Never),
            losses,
            error: None,
        }),
    };
    Report { out, err: taken.clone(), exit: Exit::Done }
}

fn text(diff: &str, losses: &[Loss], order: &Order<'_>, context: &Context) -> String {
    let colour = context.console.out;
    let mut res = diff.to_owned();
    for Loss { server: _, field, why, done } in losses {
        let text = plain::line(&format!("{field}: {why}; {done}"));
        res.push_str(&format!("{}: {text}\n", paint::severity(colour, Severity::Info)));
    }
    let Order { server, done, already, manner } = order;
    let words = match (diff.is_empty(), manner) {
        (true, _) => format!("{} `{server}` {already}\n", paint::paint(colour, paint::NOTE, "·")),
        (false, Manner::Make) => format!("{} {done} `{server}`\n", paint::paint(colour, paint::GOOD, "✓")),
        (false, Manner::Show) => {
            format!("{} not {done} `{server}`: dry run\n", paint::paint(colour, paint::NOTE, "·"))
        }
    };
    res + &words
}

fn failed(context: &Context, document: Document, help: Option<&str>) -> Report {
    let message = plain::line(document.error.as_deref().unwrap_or_default());
    let mut res = context.console.failure(Exit::Wrong, &message, help);
    if context.format == Format::Json {
        res.out = json::document(&document);
    }
    res
}

fn help(error: &EditError, profile: Profile) -> Option<String> {
    match error {
        EditError::NoSuchServer { names, .. } if names.is_empty() => {
            Some("the file has no servers".to_owned())
        }
        EditError::NoSuchServer { names, .. } => {
            Some(format!("there are: {}", plain::line(&names.join(", "))))
        }
        EditError::Broken { .. } => Some("`mcp-host check` shows the place; put it right first".to_owned()),
        EditError::Odd { .. } => Some("change it by hand".to_owned()),
        EditError::Wrong { .. } | EditError::Unsaid { .. } => {
            Some(format!("`mcp-host schema {}` says what can be written", profile.dialect().as_str()))
        }
        _ => None,
    }
}
