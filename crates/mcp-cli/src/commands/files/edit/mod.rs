//! `add`, `set`, `remove`, `enable`, `disable`: changes one server in a file, and shows the change.
//!
//! The edits themselves are made by mcp-config; this module prints and saves them.

pub(crate) mod add;

use std::path::Path;

use mcp_host_config::{
    Colour, EditError, FieldChange, FieldOperation, Profile, Switch, UnsupportedField, WrittenFile,
    render_diff,
};
use mcp_host_model::Severity;
use mcp_host_runtime::save;
use serde::Serialize;

use crate::args::{EditArgs, Format, SetArgs};
use crate::config::approval::{approve_written, keeps_approval};
use crate::config::context::Context;
use crate::config::file::{ConfigFile, open};
use crate::config::file_error::ConfigFileError;
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::{error_chain, json, sanitize, style};
use crate::render::suggestions::quote_path;

/// Whether the change is written or only shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EditMode {
    Write,
    DryRun,
}

impl EditMode {
    fn new(dry_run: bool) -> EditMode {
        if dry_run { EditMode::DryRun } else { EditMode::Write }
    }
}

/// A change of one server, with the words that describe it in the output.
struct Edit<'a> {
    server: &'a str,
    /// The participle for a change that was made, such as `removed`.
    done: &'a str,
    /// The predicate for a file that already had the requested state, such as `is already removed`.
    unchanged: &'a str,
    mode: EditMode,
}

/// The JSON document of a change.
#[derive(Serialize, Default)]
struct EditJson {
    /// The file.
    path: String,
    /// The server.
    server: String,
    /// Whether the file was changed.
    changed: bool,
    /// The change as a unified diff without secrets; empty if there is none.
    diff: String,
    /// What the dialect cannot express.
    losses: Vec<UnsupportedField>,
    /// Why nothing was changed.
    error: Option<String>,
}

/// Removes a server. Blocks.
pub(crate) fn remove(context: &Context, args: &EditArgs) -> Result<Report, Failure> {
    let EditArgs { file, server, dry_run } = args;
    let mode = EditMode::new(*dry_run);
    let edit = Edit { server, done: "removed", unchanged: "is already removed", mode };
    run(context, file, &edit, |config| {
        Ok((mcp_host_config::remove_server(&config.document(), server)?, Vec::new()))
    })
}

/// Changes fields of a server. Blocks.
pub(crate) fn set(context: &Context, args: SetArgs) -> Result<Report, Failure> {
    let SetArgs { file, server, mut changes, unset, dry_run } = args;
    changes.extend(unset.into_iter().map(|field| FieldChange::new(field, FieldOperation::Remove)));
    let mode = EditMode::new(dry_run);
    let edit = Edit { server: &server, done: "changed", unchanged: "is unchanged", mode };
    run(context, &file, &edit, |config| {
        let written = mcp_host_config::set_fields(&config.document(), &server, &changes)?;
        let WrittenFile { text, unsupported, .. } = written;
        Ok((text, unsupported))
    })
}

/// Enables or disables a server. Blocks.
pub(crate) fn set_enabled(context: &Context, args: &EditArgs, to: Switch) -> Result<Report, Failure> {
    let EditArgs { file, server, dry_run } = args;
    let (done, unchanged) = match to {
        Switch::On => ("enabled", "is already enabled"),
        Switch::Off => ("disabled", "is already disabled"),
    };
    let edit = Edit { server, done, unchanged, mode: EditMode::new(*dry_run) };
    run(context, file, &edit, |config| {
        Ok((mcp_host_config::set_enabled(&config.document(), server, to)?, Vec::new()))
    })
}

/// Reads the file, applies `change` to its text, and writes the new text unless this is a dry run. `change` returns the
/// new text and what the dialect cannot express.
fn run(
    context: &Context,
    file: &Path,
    edit: &Edit<'_>,
    change: impl FnOnce(&ConfigFile) -> Result<(String, Vec<UnsupportedField>), EditError>,
) -> Result<Report, Failure> {
    let config = open(file, context).map_err(|error| {
        let ConfigFileError { path, message, help } = error;
        failure_report(context, edit, path, message, help)
    })?;
    let notes = config.detection_notes();
    let path = config.loaded.path.clone();
    let before = &config.loaded.text;
    let failed = |error: String, help: Option<String>| {
        let report = failure_report(context, edit, path.clone(), error, help);
        Report { err: notes.clone() + &report.err, ..report }
    };
    let (after, losses) = change(&config)
        .map_err(|error| failed(error.to_string(), error_help(&error, config.loaded.profile)))?;
    if edit.mode == EditMode::Write && after != *before {
        let keeps_approval = keeps_approval(&config.loaded, edit.server);
        save(&config.path, before, &after).map_err(|error| failed(error_chain(&error), None))?;
        if keeps_approval {
            approve_written(context, &config.path, edit.server);
        }
    }
    let report = edit_report(context, edit, TextChange { path: path.clone(), before, after: &after }, losses);
    let check = format!("`mcp-host check {}` checks the file", quote_path(file));
    Ok(Report { err: notes.clone(), after: context.console.suggestion(&check), ..report })
}

/// The texts of a file before and after a change.
struct TextChange<'a> {
    path: String,
    before: &'a str,
    after: &'a str,
}

/// The report of a change.
fn edit_report(
    context: &Context,
    edit: &Edit<'_>,
    change: TextChange<'_>,
    losses: Vec<UnsupportedField>,
) -> Report {
    let TextChange { path, before, after } = change;
    Report::out(match context.format {
        Format::Text => {
            edit_text(&render_diff(&path, before, after, context.console.out_colour), &losses, edit, context)
        }
        Format::Json => json::document(&EditJson {
            server: edit.server.to_owned(),
            changed: edit.mode == EditMode::Write && after != before,
            diff: render_diff(&path, before, after, Colour::Never),
            losses,
            error: None,
            path,
        }),
    })
}

/// The diff, the losses, and a summary line.
fn edit_text(diff: &str, losses: &[UnsupportedField], edit: &Edit<'_>, context: &Context) -> String {
    let colour = context.console.out_colour;
    let mut text = diff.to_owned();
    for UnsupportedField { field, reason, fallback, .. } in losses {
        let line = sanitize::line(&format!("{field}: {reason}; {fallback}"));
        text.push_str(&format!("{}: {line}\n", style::severity(colour, Severity::Info)));
    }
    let Edit { server, done, unchanged, mode } = edit;
    let summary = match (diff.is_empty(), mode) {
        (true, _) => format!("{} `{server}` {unchanged}\n", style::paint(colour, style::NOTE, "·")),
        (false, EditMode::Write) => {
            format!("{} {done} `{server}`\n", style::paint(colour, style::SUCCESS, "✓"))
        }
        (false, EditMode::DryRun) => {
            format!("{} `{server}` not {done}: dry run\n", style::paint(colour, style::NOTE, "·"))
        }
    };
    text + &summary
}

/// The report of a change that was not made.
fn failure_report(
    context: &Context,
    edit: &Edit<'_>,
    path: String,
    error: String,
    help: Option<String>,
) -> Report {
    let mut report = Failure::new(&error).help(help).report(&context.console);
    if context.format == Format::Json {
        let server = edit.server.to_owned();
        report.out = json::document(&EditJson { path, server, error: Some(error), ..EditJson::default() });
    }
    report
}

fn error_help(error: &EditError, profile: Profile) -> Option<String> {
    match error {
        EditError::NoSuchServer { names, .. } if names.is_empty() => {
            Some("the file has no servers".to_owned())
        }
        EditError::NoSuchServer { names, .. } => {
            Some(format!("the servers are: {}", sanitize::line(&names.join(", "))))
        }
        EditError::CommentedOut { .. } => {
            Some("`mcp-host enable` turns the comment into an entry again".to_owned())
        }
        EditError::InvalidFile { .. } => {
            Some("`mcp-host check` shows the position; correct it first".to_owned())
        }
        EditError::NoDisablingKey { .. } => Some(
            "`\"disabled\": true` in the entry disables it for mcp-host alone; `mcp-host remove` removes it"
                .to_owned(),
        ),
        EditError::CannotDisable(_) => Some("`mcp-host remove` removes it".to_owned()),
        EditError::UnsupportedLayout { .. } => Some("edit the file by hand".to_owned()),
        EditError::InvalidResult { .. } | EditError::Unsupported { .. } => {
            Some(format!("`mcp-host schema {}` describes the format", profile.dialect().as_str()))
        }
        _ => None,
    }
}
