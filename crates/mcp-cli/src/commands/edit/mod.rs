//! `add`, `remove`, `enable`, `disable`: one change to a file, shown before it is made.
//!
//! What can be changed, and how, is mcp-config's business; here a change is shown and written.

mod add;

use std::path::{Path, PathBuf};

use mcp_config::{EditError, Profile, Switch, UnsupportedField, render_diff};
use mcp_host::save;
use mcp_model::Severity;
use serde::Serialize;

use crate::args::Format;
use crate::commands::next;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::cause::chain;
use crate::output::console::Report;
use crate::output::{json, paint, plain};
use crate::source::{Source, Unreadable, open};
pub(crate) use add::{AddWords, add};

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
    losses: Vec<UnsupportedField>,
    /// Why nothing was changed.
    error: Option<String>,
}

/// Takes a server out. Blocks.
pub(crate) fn remove(context: &Context, words: &Words) -> Report {
    let Words { file, server, dry_run } = words;
    let order = Order { server, done: "removed", already: "is gone already", manner: manner(*dry_run) };
    run(context, file, &order, |source| {
        Ok((mcp_config::remove_server(&source.document(), server)?, Vec::new()))
    })
}

/// Switches a server. Blocks.
pub(crate) fn switch(context: &Context, words: &Words, to: Switch) -> Report {
    let Words { file, server, dry_run } = words;
    let (done, already) = match to {
        Switch::On => ("switched on", "is on already"),
        Switch::Off => ("switched off", "is off already"),
    };
    let order = Order { server, done, already, manner: manner(*dry_run) };
    run(context, file, &order, |source| {
        Ok((mcp_config::set_enabled(&source.document(), server, to)?, Vec::new()))
    })
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
    change: impl FnOnce(&Source) -> Result<(String, Vec<UnsupportedField>), EditError>,
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
    let shown = |colour| render_diff(&path, before, &after, colour);
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
    Report { out, err: taken.clone(), exit: Exit::Done, after: context.console.next(&checks(file)) }
}

fn checks(file: &Path) -> String {
    format!("`mcp-host check {}` looks at all of it", next::file(file))
}

fn text(diff: &str, losses: &[UnsupportedField], order: &Order<'_>, context: &Context) -> String {
    let colour = context.console.out;
    let mut res = diff.to_owned();
    for UnsupportedField { server: _, field, reason, fallback } in losses {
        let text = plain::line(&format!("{field}: {reason}; {fallback}"));
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
        EditError::InvalidFile { .. } => {
            Some("`mcp-host check` shows the place; put it right first".to_owned())
        }
        EditError::UnsupportedLayout { .. } => Some("change it by hand".to_owned()),
        EditError::InvalidResult { .. } | EditError::Unsupported { .. } => {
            Some(format!("`mcp-host schema {}` says what can be written", profile.dialect().as_str()))
        }
        _ => None,
    }
}
