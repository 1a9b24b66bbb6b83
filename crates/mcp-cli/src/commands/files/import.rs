//! `import`: lists the servers that other programs of this user are configured with, and adds them to a configuration.
//!
//! Without `--from`, only the known files of those programs and of this folder are read, and only the file of
//! `--into` is written. Values are copied unchanged, secrets included, and are never printed.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};

use mcp_host_config::{EditError, UnsupportedField, WrittenFile, program_files, render_diff};
use mcp_host_model::{ServerSpec, Severity};
use mcp_host_runtime::save;
use serde::Serialize;

use crate::args::{Format, ImportArgs};
use crate::commands::files::convert::loss_lines;
use crate::config::context::Context;
use crate::config::file::{ConfigFile, open};
use crate::config::file_error::ConfigFileError;
use crate::config::locate::CONFIG_PATHS;
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::table::{Column, TableStyle, table};
use crate::output::{count, error_chain, json, sanitize, style};
use crate::runtime::exit::Exit;

/// A file to import from. It may be missing or invalid.
struct SourceFile {
    /// The program that it belongs to, or `this folder`. Empty for a file named with `--from`.
    owner: &'static str,
    opened: Result<ConfigFile, ConfigFileError>,
}

/// The JSON document of `import`.
#[derive(Serialize)]
struct ImportJson<'a> {
    /// The source files.
    found: Vec<SourceFileJson<'a>>,
    /// The file that servers were added to; null without `--into`.
    into: Option<String>,
    /// The servers that were added, or that would be added without `--dry-run`.
    added: &'a [String],
    /// The servers that were not added, with reasons.
    #[serde(rename = "left")]
    skipped: &'a [SkippedServer],
    /// What the target dialect cannot express.
    losses: &'a [UnsupportedField],
}

/// A source file in the JSON document.
#[derive(Serialize)]
struct SourceFileJson<'a> {
    owner: &'static str,
    path: &'a str,
    servers: Vec<&'a str>,
    error: Option<&'a str>,
}

/// A server that was not added.
#[derive(Serialize)]
struct SkippedServer {
    server: String,
    #[serde(rename = "why")]
    reason: String,
}

/// The result of an import: the changed text, and what was not added.
struct ImportResult {
    path: PathBuf,
    /// The text of the file.
    before: String,
    /// The text with the added servers.
    after: String,
    /// The names of the added servers.
    added: Vec<String>,
    skipped: Vec<SkippedServer>,
    losses: Vec<UnsupportedField>,
    /// Whether a requested server was not found.
    has_missing: bool,
}

/// Lists the servers of other programs, and adds them to a file with `--into`. Blocks.
pub(crate) fn run(context: &Context, args: &ImportArgs) -> Result<Report, Failure> {
    let ImportArgs { into, from, server, dry_run } = args;
    let sources = find_sources(context, from);
    let imported = into.as_ref().map(|path| import(context, &sources, path, server)).transpose()?;
    if let Some(ImportResult { path, before, after, .. }) = &imported
        && !dry_run
        && before != after
    {
        save(path, before, after).map_err(|error| Failure::new(error_chain(&error)))?;
    }
    let out = match context.format {
        Format::Json => json::document(&import_json(&sources, imported.as_ref())),
        Format::Text => render_text(context, &sources, imported.as_ref(), *dry_run),
    };
    // A file that is not named with `--from` may be invalid: the user did not request it.
    let has_failed = sources.iter().any(|file| file.opened.is_err() && !from.is_empty())
        || imported.as_ref().is_some_and(|result| result.has_missing);
    let exit = if has_failed { Exit::Failure } else { Exit::Success };
    Ok(Report { out, exit, ..Report::default() })
}

/// The files that are named with `--from`, missing ones too. Without any, the known files that exist, each once.
fn find_sources(context: &Context, from: &[PathBuf]) -> Vec<SourceFile> {
    if !from.is_empty() {
        return from.iter().map(|path| SourceFile { owner: "", opened: open(path, context) }).collect();
    }
    let home = env::home_dir().unwrap_or_default();
    let programs = program_files().map(|it| (it.program, it.path)).chain([("Dominds", ".minds/mcp.yaml")]);
    let programs = programs.map(|(program, path)| (program, home.join(path)));
    let here = CONFIG_PATHS.iter().map(|path| ("this folder", PathBuf::from(path)));
    let mut seen = BTreeSet::new();
    let mut is_new = |path: &Path| path.canonicalize().is_ok_and(|it| it.is_file() && seen.insert(it));
    here.chain(programs)
        .filter(|(_, path)| is_new(path))
        .map(|(owner, path)| SourceFile { owner, opened: open(&path, context) })
        .collect()
}

/// Adds the servers of all sources to the text of the target; writes no file. Of servers with the same name, only
/// the first is added. `only` has the names of the servers to import; all if it is empty.
fn import(
    context: &Context,
    sources: &[SourceFile],
    into: &Path,
    only: &[String],
) -> Result<ImportResult, ConfigFileError> {
    let target = open(into, context)?;
    let before = target.loaded.text.clone();
    let mut result = ImportResult {
        path: target.path.clone(),
        after: before.clone(),
        before,
        added: Vec::new(),
        skipped: Vec::new(),
        losses: Vec::new(),
        has_missing: false,
    };
    let canonical = |path: &Path| path.canonicalize().ok();
    let readable = sources.iter().filter_map(|file| file.opened.as_ref().ok());
    let others = readable.filter(|source| canonical(&source.path) != canonical(&target.path));
    let mut seen = BTreeSet::new();
    for source in others {
        for spec in selected_servers(source, only) {
            let name = spec.id.to_string();
            let document = target.document().with_text(&result.after);
            let outcome = if seen.insert(name.clone()) {
                mcp_host_config::add_server(&document, spec)
            } else {
                Err(EditError::AlreadyExists { name: name.clone() })
            };
            match outcome {
                Ok(WrittenFile { text, unsupported, .. }) => {
                    result.after = text;
                    result.added.push(name);
                    result.losses.extend(unsupported);
                }
                Err(error) => result.skipped.push(SkippedServer { server: name, reason: error.to_string() }),
            }
        }
    }
    let is_handled = |name: &String| {
        result.added.contains(name) || result.skipped.iter().any(|skipped| skipped.server == *name)
    };
    let reason = "none of the files contains a valid entry for it";
    let missing = only.iter().filter(|name| !is_handled(name));
    let missing: Vec<SkippedServer> =
        missing.map(|name| SkippedServer { server: name.clone(), reason: reason.to_owned() }).collect();
    result.has_missing = !missing.is_empty();
    result.skipped.extend(missing);
    Ok(result)
}

/// The valid servers of a file that are selected.
fn selected_servers<'a>(source: &'a ConfigFile, only: &'a [String]) -> impl Iterator<Item = &'a ServerSpec> {
    let servers = source.loaded.reading.servers.iter();
    servers.filter(|spec| only.is_empty() || only.iter().any(|name| name == spec.id.as_str()))
}

/// The JSON document of the sources and the import.
fn import_json<'a>(sources: &'a [SourceFile], imported: Option<&'a ImportResult>) -> ImportJson<'a> {
    let file_json = |file: &'a SourceFile| match &file.opened {
        Ok(source) => SourceFileJson {
            owner: file.owner,
            path: &source.loaded.path,
            servers: source.loaded.reading.entries.iter().map(|it| it.name.as_str()).collect(),
            error: None,
        },
        Err(ConfigFileError { path, message, help: _ }) => {
            SourceFileJson { owner: file.owner, path, servers: Vec::new(), error: Some(message) }
        }
    };
    let found = sources.iter().map(file_json).collect();
    match imported {
        None => ImportJson { found, into: None, added: &[], skipped: &[], losses: &[] },
        Some(ImportResult { path, before: _, after: _, added, skipped, losses, has_missing: _ }) => {
            ImportJson { found, into: Some(path.display().to_string()), added, skipped, losses }
        }
    }
}

/// The files and their servers, and the change of the target file.
fn render_text(
    context: &Context,
    sources: &[SourceFile],
    imported: Option<&ImportResult>,
    dry_run: bool,
) -> String {
    let colour = context.console.out_colour;
    let rows: Vec<Vec<String>> = sources
        .iter()
        .map(|file| match &file.opened {
            Ok(source) => {
                let names: Vec<&str> =
                    source.loaded.reading.entries.iter().map(|it| it.name.as_str()).collect();
                let names = if names.is_empty() { "-".to_owned() } else { names.join(", ") };
                vec![source.loaded.path.clone(), file.owner.to_owned(), names]
            }
            Err(ConfigFileError { path, message, help: _ }) => {
                vec![path.clone(), file.owner.to_owned(), format!("error: {message}")]
            }
        })
        .collect();
    let columns = [Column::Text("FILE"), Column::Wrapped("PROGRAM"), Column::Wrapped("SERVERS")];
    let mut text = table(&columns, &rows, TableStyle { width: context.console.width, colour });
    if text.is_empty() {
        text.push_str("no configuration of a known program was found on this machine\n");
    }
    let Some(ImportResult { path, before, after, added, skipped, losses, has_missing: _ }) = imported else {
        if !rows.is_empty() {
            text.push_str(&style::help(colour, "`mcp-host import --into FILE` adds them to a configuration"));
        }
        return text;
    };
    let path = path.display().to_string();
    text.push('\n');
    text.push_str(&render_diff(&path, before, after, colour));
    for SkippedServer { server, reason } in skipped {
        let line = sanitize::line(&format!("`{server}` is skipped: {reason}"));
        text.push_str(&format!("{}: {line}\n", style::severity(colour, Severity::Warning)));
    }
    text.push_str(&loss_lines(losses, colour));
    let servers = count(added.len(), "server");
    let line = if dry_run {
        format!("{} {servers} not added: dry run\n", style::paint(colour, style::NOTE, "·"))
    } else {
        format!(
            "{} {servers} added to {}\n",
            style::paint(colour, style::SUCCESS, "✓"),
            sanitize::line(&path)
        )
    };
    text + &line
}
