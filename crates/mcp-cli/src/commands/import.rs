//! `import`: the servers that other programs of this user are configured with, shown, and taken over where that is asked
//! for.
//!
//! Where those programs keep their files is known; nothing else is looked at, and nothing but `--into` is written.
//! Values come over as they are, secrets included, and are never shown.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};

use mcp_config::{EditError, UnsupportedField, WrittenFile, render_diff};
use mcp_host::save;
use mcp_model::{ServerSpec, Severity};
use serde::Serialize;

use crate::args::Format;
use crate::commands::convert::report;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::cause::chain;
use crate::output::console::Report;
use crate::output::table::{Column, Look, table};
use crate::output::{json, paint, plain};
use crate::source::{Source, Unreadable, open};
use crate::target::PLACES;

/// Where programs keep the servers of a user, below the home folder.
const HOMES: [(&str, &str); 17] = [
    ("Claude Code", ".claude.json"),
    ("Claude Desktop", ".config/Claude/claude_desktop_config.json"),
    ("Claude Desktop", "Library/Application Support/Claude/claude_desktop_config.json"),
    ("Cursor", ".cursor/mcp.json"),
    ("VS Code", ".config/Code/User/mcp.json"),
    ("VS Code", "Library/Application Support/Code/User/mcp.json"),
    ("Windsurf", ".codeium/windsurf/mcp_config.json"),
    ("Cline", ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"),
    ("Roo Code", ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"),
    ("Gemini CLI", ".gemini/settings.json"),
    ("Kiro", ".kiro/settings/mcp.json"),
    ("Zed", ".config/zed/settings.json"),
    ("opencode", ".config/opencode/opencode.json"),
    ("Amazon Q", ".aws/amazonq/mcp.json"),
    ("LM Studio", ".lmstudio/mcp.json"),
    ("Copilot CLI", ".copilot/mcp-config.json"),
    ("Dominds", ".minds/mcp.yaml"),
];

/// The words of `import`.
#[derive(Debug, clap::Args)]
pub(crate) struct Words {
    /// The configuration that the servers are added to; without it they are only shown
    #[arg(long, value_name = "FILE")]
    into: Option<PathBuf>,
    /// Take them from this file, instead of those where programs keep theirs
    #[arg(long, value_name = "FILE")]
    from: Vec<PathBuf>,
    /// Only this server
    #[arg(long, value_name = "SERVER")]
    server: Vec<String>,
    /// Show the change and do not make it
    #[arg(long, requires = "into")]
    dry_run: bool,
}

/// One file that was found.
struct Found {
    /// Whose it is.
    owner: &'static str,
    opened: Result<Source, Unreadable>,
}

/// The document of `import`.
#[derive(Serialize)]
struct Document<'a> {
    found: Vec<Place<'a>>,
    /// The file that servers were added to; null where none was asked for.
    into: Option<String>,
    /// Servers that were added; in a dry run, that would be.
    added: &'a [String],
    /// Servers that were not, and why.
    left: &'a [Left],
    /// What of those that were added could not be said in their new place.
    losses: &'a [UnsupportedField],
}

#[derive(Serialize)]
struct Place<'a> {
    owner: &'static str,
    path: &'a str,
    servers: Vec<&'a str>,
    error: Option<&'a str>,
}

/// A server that was not added.
#[derive(Serialize)]
struct Left {
    server: String,
    why: String,
}

/// What became of the file that was to be changed.
struct Imported {
    path: PathBuf,
    before: String,
    after: String,
    added: Vec<String>,
    left: Vec<Left>,
    losses: Vec<UnsupportedField>,
    /// A server that was asked for by name is nowhere.
    is_short: bool,
}

/// Shows what there is, and takes it over. Blocks.
pub(crate) fn run(context: &Context, words: &Words) -> Report {
    let Words { into, from, server, dry_run } = words;
    let found = find(context, from);
    let imported = match into {
        None => None,
        Some(path) => match import(context, &found, path, server) {
            Ok(imported) => Some(imported),
            Err(Unreadable { path: _, message, help }) => {
                return context.console.failure(Exit::Wrong, &plain::line(&message), help.as_deref());
            }
        },
    };
    if let Some(Imported { path, before, after, .. }) = &imported
        && !dry_run
        && before != after
        && let Err(error) = save(path, before, after)
    {
        return context.console.failure(Exit::Wrong, &chain(&error), None);
    }
    let out = match context.format {
        Format::Json => json::document(&document(&found, imported.as_ref())),
        Format::Text => text(context, &found, imported.as_ref(), *dry_run),
    };
    let broken = found.iter().any(|it| it.opened.is_err() && !from.is_empty());
    let broken = broken || imported.as_ref().is_some_and(|it| it.is_short);
    Report {
        out,
        err: String::new(),
        exit: if broken { Exit::Wrong } else { Exit::Done },
        after: String::new(),
    }
}

/// The files that are there, each once. Files that were named are there, whatever is in them.
fn find(context: &Context, from: &[PathBuf]) -> Vec<Found> {
    if !from.is_empty() {
        return from.iter().map(|it| Found { owner: "", opened: open(it, context) }).collect();
    }
    let home = env::home_dir().unwrap_or_default();
    let own = HOMES.iter().map(|(owner, path)| (*owner, home.join(path)));
    let here = PLACES.iter().map(|it| ("this folder", PathBuf::from(it)));
    let mut seen = BTreeSet::new();
    let mut is_new = |path: &Path| path.canonicalize().is_ok_and(|it| it.is_file() && seen.insert(it));
    here.chain(own)
        .filter(|(_, path)| is_new(path))
        .map(|(owner, path)| Found { owner, opened: open(&path, context) })
        .collect()
}

/// Adds the servers to a file, those of the first file first.
fn import(context: &Context, found: &[Found], into: &Path, only: &[String]) -> Result<Imported, Unreadable> {
    let target = open(into, context)?;
    let before = target.loaded.text.clone();
    let mut res = Imported {
        path: target.file.clone(),
        after: before.clone(),
        before,
        added: Vec::new(),
        left: Vec::new(),
        losses: Vec::new(),
        is_short: false,
    };
    let real = |path: &Path| path.canonicalize().ok();
    let sources = found.iter().filter_map(|it| it.opened.as_ref().ok());
    let sources = sources.filter(|it| real(&it.file) != real(&target.file));
    let mut seen = BTreeSet::new();
    for source in sources {
        for spec in wanted(source, only) {
            let name = spec.id.to_string();
            let document = mcp_config::Document { text: &res.after, ..target.document() };
            let outcome = match seen.insert(name.clone()) {
                true => mcp_config::add_server(&document, spec),
                false => Err(EditError::AlreadyExists { name: name.clone() }),
            };
            match outcome {
                Ok(WrittenFile { text, unsupported: losses }) => {
                    res.after = text;
                    res.added.push(name);
                    res.losses.extend(losses);
                }
                Err(error) => res.left.push(Left { server: name, why: error.to_string() }),
            }
        }
    }
    let named = |name: &String| res.added.contains(name) || res.left.iter().any(|it| it.server == *name);
    let missing: Vec<&String> = only.iter().filter(|it| !named(it)).collect();
    let why = "no file that was looked at has it, or its entry is written wrongly";
    let missing: Vec<Left> =
        missing.into_iter().map(|it| Left { server: it.clone(), why: why.to_owned() }).collect();
    res.is_short = !missing.is_empty();
    res.left.extend(missing);
    Ok(res)
}

/// The servers of a file that are written well, and asked for.
fn wanted<'a>(source: &'a Source, only: &'a [String]) -> impl Iterator<Item = &'a ServerSpec> {
    let servers = source.loaded.reading.servers.iter();
    servers.filter(|it| only.is_empty() || only.iter().any(|name| name == it.id.as_str()))
}

fn document<'a>(found: &'a [Found], imported: Option<&'a Imported>) -> Document<'a> {
    let place = |it: &'a Found| match &it.opened {
        Ok(source) => Place {
            owner: it.owner,
            path: &source.loaded.path,
            servers: source.loaded.reading.entries.iter().map(|it| it.name.as_str()).collect(),
            error: None,
        },
        Err(Unreadable { path, message, help: _ }) => {
            Place { owner: it.owner, path, servers: Vec::new(), error: Some(message) }
        }
    };
    let found = found.iter().map(place).collect();
    match imported {
        None => Document { found, into: None, added: &[], left: &[], losses: &[] },
        Some(Imported { path, before: _, after: _, added, left, losses, is_short: _ }) => {
            Document { found, into: Some(path.display().to_string()), added, left, losses }
        }
    }
}

fn text(context: &Context, found: &[Found], imported: Option<&Imported>, dry_run: bool) -> String {
    let colour = context.console.out;
    let rows: Vec<Vec<String>> = found
        .iter()
        .map(|it| match &it.opened {
            Ok(source) => {
                let names: Vec<&str> =
                    source.loaded.reading.entries.iter().map(|it| it.name.as_str()).collect();
                let names = if names.is_empty() { "-".to_owned() } else { names.join(", ") };
                vec![source.loaded.path.clone(), it.owner.to_owned(), names]
            }
            Err(Unreadable { path, message, help: _ }) => {
                vec![path.clone(), it.owner.to_owned(), format!("error: {message}")]
            }
        })
        .collect();
    let columns = ["FILE", "OF", "SERVERS"].map(Column::Words);
    let mut res = table(&columns, &rows, Look { width: context.console.width, colour });
    if res.is_empty() {
        res.push_str("no program known here has a configuration on this machine\n");
    }
    let Some(Imported { path, before, after, added, left, losses, is_short: _ }) = imported else {
        if !rows.is_empty() {
            res.push_str(&paint::help(colour, "`mcp-host import --into FILE` adds them to a configuration"));
        }
        return res;
    };
    let path = path.display().to_string();
    res.push('\n');
    res.push_str(&render_diff(&path, before, after, colour));
    for Left { server, why } in left {
        let text = plain::line(&format!("`{server}` is left out: {why}"));
        res.push_str(&format!("{}: {text}\n", paint::severity(colour, Severity::Warning)));
    }
    res.push_str(&report(losses, colour));
    let count = if added.len() == 1 { "1 server".to_owned() } else { format!("{} servers", added.len()) };
    let line = match dry_run {
        true => format!("{} {count} not added: dry run\n", paint::paint(colour, paint::NOTE, "·")),
        false => {
            format!("{} {count} added to {}\n", paint::paint(colour, paint::GOOD, "✓"), plain::line(&path))
        }
    };
    res + &line
}
