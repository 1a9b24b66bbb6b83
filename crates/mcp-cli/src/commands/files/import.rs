//! `import`: lists the servers that other programs of this user are configured with, and adds them to a configuration.
//!
//! Without `--from`, only the known files of those programs and of this folder are read, and only the file of
//! `--into` is written, which is created if it is missing. Values are copied unchanged, secrets included, and are never
//! printed. Each server that is not added is named with the reason.

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};

use mcp_host_config::{
    Document, EditError, UnsupportedField, UserFolders, program_files, program_of_path, render_diff,
};
use mcp_host_model::Severity;
use mcp_host_runtime::{create_private, save};
use serde::Serialize;

use crate::args::{Format, ImportArgs};
use crate::commands::files::convert::loss_lines;
use crate::commands::files::new_file::TargetFile;
use crate::commands::files::server_copy::{AddedEntry, add_entry, read_entry};
use crate::config::context::Context;
use crate::config::file::{ConfigFile, open};
use crate::config::file_error::ConfigFileError;
use crate::config::locate::CONFIG_PATHS;
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::table::{Column, TableStyle, table};
use crate::output::{count, error_chain, json, sanitize, style};
use crate::runtime::exit::Exit;
use crate::runtime::system::make_private;

/// A file to import from. It may be missing or invalid.
struct SourceFile {
    /// The program that it belongs to, or `this folder`. Empty for a file of no known program.
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
    /// The copied values that may be secrets, each as `SERVER: FIELD`.
    secrets: &'a [String],
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
    /// The text of the file. `None` if it does not exist yet.
    before: Option<String>,
    /// The text with the added servers.
    after: String,
    /// The names of the added servers.
    added: Vec<String>,
    skipped: Vec<SkippedServer>,
    losses: Vec<UnsupportedField>,
    /// The copied values that may be secrets, each as `SERVER: FIELD`.
    secrets: Vec<String>,
    /// Whether a requested server was not found.
    has_missing: bool,
}

impl ImportResult {
    /// Writes the file. One with secrets is readable by its owner only. Blocks.
    fn write(&self) -> Result<(), Failure> {
        let ImportResult { path, before, after, added, secrets, .. } = self;
        if added.is_empty() {
            return Ok(());
        }
        let Some(before) = before else {
            return create_private(path, after).map_err(|error| Failure::new(error_chain(&error)));
        };
        save(path, before, after).map_err(|error| Failure::new(error_chain(&error)))?;
        if secrets.is_empty() {
            return Ok(());
        }
        make_private(path).map_err(|error| {
            Failure::new(format!("cannot make {} readable by its owner only: {error}", path.display()))
        })
    }
}

/// Lists the servers of other programs, and adds them to a file with `--into`. Blocks.
pub(crate) fn run(context: &Context, args: &ImportArgs) -> Result<Report, Failure> {
    let ImportArgs { into, from, server, dry_run } = args;
    let sources = find_sources(context, from);
    let imported = into.as_ref().map(|path| import(context, &sources, path, server)).transpose()?;
    if let Some(result) = imported.as_ref().filter(|_| !dry_run) {
        result.write()?;
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
        let read = |path: &PathBuf| SourceFile {
            owner: program_of_path(&path.to_string_lossy()).unwrap_or_default(),
            opened: open(path, context),
        };
        return from.iter().map(read).collect();
    }
    let home = env::home_dir().unwrap_or_default();
    let folders = UserFolders::new(&home, |name| env::var_os(name).map(PathBuf::from));
    let programs = program_files(&folders).map(|it| (it.program, it.path));
    let programs = programs.chain([("Dominds", home.join(".minds/mcp.yaml"))]);
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
    let TargetFile { path, profile, text } = TargetFile::open(context, into)?;
    let document_name = path.display().to_string();
    let mut result = ImportResult {
        path,
        after: text.clone().unwrap_or_default(),
        before: text,
        added: Vec::new(),
        skipped: Vec::new(),
        losses: Vec::new(),
        secrets: Vec::new(),
        has_missing: false,
    };
    let canonical = |path: &Path| path.canonicalize().ok();
    let is_target = |source: &ConfigFile| {
        canonical(&source.path).is_some_and(|path| canonical(&result.path) == Some(path))
    };
    let readable = sources.iter().filter_map(|file| file.opened.as_ref().ok());
    let others: Vec<&ConfigFile> = readable.filter(|source| !is_target(source)).collect();
    let mut seen = BTreeSet::new();
    for source in others {
        let entries = source.loaded.reading.entries.iter();
        for entry in entries.filter(|entry| only.is_empty() || only.contains(&entry.name)) {
            let name = entry.name.clone();
            let document = Document::new(&document_name, &result.after, profile);
            let outcome = if seen.insert(name.clone()) {
                read_entry(source, entry).and_then(|found| add_entry(&document, &found))
            } else {
                Err(EditError::AlreadyExists { name: name.clone() }.to_string())
            };
            match outcome {
                Ok(AddedEntry { text, losses, secrets }) => {
                    result.after = text;
                    result.secrets.extend(secrets.into_iter().map(|field| format!("{name}: {field}")));
                    result.added.push(name);
                    result.losses.extend(losses);
                }
                Err(reason) => result.skipped.push(SkippedServer { server: name, reason }),
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
        None => ImportJson { found, into: None, added: &[], skipped: &[], losses: &[], secrets: &[] },
        Some(ImportResult { path, added, skipped, losses, secrets, .. }) => {
            ImportJson { found, into: Some(path.display().to_string()), added, skipped, losses, secrets }
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
    let Some(ImportResult { path, before, after, added, skipped, losses, secrets, .. }) = imported else {
        if !rows.is_empty() {
            text.push_str(&style::help(colour, "`mcp-host import --into FILE` adds them to a configuration"));
        }
        return text;
    };
    let path = path.display().to_string();
    text.push('\n');
    text.push_str(&render_diff(&path, before.as_deref().unwrap_or_default(), after, colour));
    for SkippedServer { server, reason } in skipped {
        let line = sanitize::line(&format!("`{server}` is skipped: {reason}"));
        text.push_str(&format!("{}: {line}\n", style::severity(colour, Severity::Warning)));
    }
    text.push_str(&loss_lines(losses, colour));
    if !secrets.is_empty() {
        let fields = secrets.join(", ");
        let line = sanitize::line(&format!(
            "copied values that may be secrets: {fields}; the file is made readable by its owner only"
        ));
        text.push_str(&format!("{}: {line}\n", style::severity(colour, Severity::Warning)));
    }
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
