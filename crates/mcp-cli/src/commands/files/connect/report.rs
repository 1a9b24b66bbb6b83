//! The output of `connect`, as text and as JSON.

use std::path::PathBuf;

use mcp_host_config::{Colour, UnsupportedField, render_diff};
use mcp_host_model::Severity;
use serde::Serialize;

use super::clients::{ClientFile, option_name};
use super::plan::{ClientChange, HostConfig, LeftServer};
use crate::args::Format;
use crate::commands::files::convert::loss_lines;
use crate::config::context::Context;
use crate::output::console::Report;
use crate::output::{json, sanitize, style};
use crate::runtime::exit::Exit;

/// What `connect` found or did.
pub(super) struct ConnectReport {
    /// The configuration of the host; `None` for `--undo`.
    pub(super) config: Option<HostConfig>,
    pub(super) clients: Vec<ClientReport>,
    /// Whether files were written.
    pub(super) is_written: bool,
}

/// What was found in a client's file, or done with it.
pub(super) struct ClientReport {
    pub(super) file: ClientFile,
    pub(super) outcome: Outcome,
}

/// What happens with a client's file.
pub(super) enum Outcome {
    /// It has the host's entry already, and these other servers.
    Connected { others: Vec<String> },
    /// It receives the host's entry. The copy of the file, once it is written.
    Changed { change: ClientChange, backup: Option<PathBuf> },
    /// It is as it was before. `None`: it was removed, because there was none.
    Restored { before: Option<String>, now: String },
    /// Only the host's entry was removed, because the file was changed since. The copy of the file stays.
    EntryRemoved { now: String, after: String, copy: Option<PathBuf> },
    /// It stays as it is, for this reason.
    Failed(String),
}

/// The JSON document of `connect`.
#[derive(Serialize)]
struct ConnectJson<'a> {
    /// The configuration of the host; null for `--undo`.
    config: Option<String>,
    /// Whether files were written.
    written: bool,
    clients: Vec<ClientJson<'a>>,
}

/// A client in the JSON document.
#[derive(Serialize)]
struct ClientJson<'a> {
    /// The name of the program, as it is typed.
    client: String,
    path: String,
    /// `connected`, `changed`, `restored`, `entry_removed` or `failed`.
    outcome: &'static str,
    /// The servers that the configuration of the host receives.
    moved: &'a [String],
    /// The servers that it has already.
    known: &'a [String],
    /// The servers that stay in the client's file, with reasons.
    left: &'a [LeftServer],
    losses: &'a [UnsupportedField],
    /// The moved values that may be secrets, each as `SERVER: FIELD`.
    secrets: &'a [String],
    /// The copy of the file as it was.
    copy: Option<String>,
    /// The change as a unified diff without secrets.
    diff: String,
    error: Option<&'a str>,
}

impl ConnectReport {
    /// The report for the console. It fails if one of the clients did.
    pub(super) fn print(&self, context: &Context) -> Report {
        let out = match context.format {
            Format::Json => json::document(&self.to_json()),
            Format::Text => self.text(context),
        };
        let has_failed = self.clients.iter().any(|it| matches!(it.outcome, Outcome::Failed(_)));
        // A list names clients that cannot be connected, and is a success.
        let exit = if has_failed && self.is_written { Exit::Failure } else { Exit::Success };
        Report { out, exit, ..Report::default() }
    }

    fn to_json(&self) -> ConnectJson<'_> {
        ConnectJson {
            config: self.config.as_ref().map(|it| it.file.path.display().to_string()),
            written: self.is_written,
            clients: self.clients.iter().map(ClientReport::to_json).collect(),
        }
    }

    fn text(&self, context: &Context) -> String {
        let colour = context.console.out_colour;
        let mut text: String =
            self.clients.iter().map(|client| client.text(colour, self.is_written)).collect();
        if self.clients.is_empty() {
            text.push_str("no file of a known program was found on this machine\n");
        }
        if let Some(HostConfig { file, after }) = &self.config {
            let path = file.path.display().to_string();
            text.push_str(&render_diff(&path, file.text.as_deref().unwrap_or_default(), after, colour));
        }
        if !self.is_written {
            let note =
                "nothing was written: `mcp-host connect CLIENT` connects a client, `--undo` disconnects it";
            text.push_str(&format!("{} {note}\n", style::paint(colour, style::NOTE, "·")));
        }
        text
    }
}

impl ClientReport {
    fn to_json(&self) -> ClientJson<'_> {
        let none = ClientJson {
            client: option_name(&self.file.program),
            path: self.file.path.display().to_string(),
            outcome: "failed",
            moved: &[],
            known: &[],
            left: &[],
            losses: &[],
            secrets: &[],
            copy: None,
            diff: self.diff(Colour::Never),
            error: None,
        };
        match &self.outcome {
            Outcome::Connected { .. } => ClientJson { outcome: "connected", ..none },
            Outcome::Changed { change, backup } => {
                let ClientChange { before: _, after: _, moved, known, left, losses, secrets } = change;
                let copy = backup.as_ref().map(|it| it.display().to_string());
                ClientJson { outcome: "changed", moved, known, left, losses, secrets, copy, ..none }
            }
            Outcome::Restored { .. } => ClientJson { outcome: "restored", ..none },
            Outcome::EntryRemoved { copy, .. } => {
                let copy = copy.as_ref().map(|it| it.display().to_string());
                ClientJson { outcome: "entry_removed", copy, ..none }
            }
            Outcome::Failed(message) => ClientJson { error: Some(message), ..none },
        }
    }

    /// The change of the file without secrets; empty if there is none.
    fn diff(&self, colour: Colour) -> String {
        let path = self.file.path.display().to_string();
        let (before, after) = match &self.outcome {
            Outcome::Changed { change, .. } => {
                (change.before.as_deref().unwrap_or_default(), change.after.as_str())
            }
            Outcome::Restored { before, now } => (now.as_str(), before.as_deref().unwrap_or_default()),
            Outcome::EntryRemoved { now, after, .. } => (now.as_str(), after.as_str()),
            Outcome::Connected { .. } | Outcome::Failed(_) => return String::new(),
        };
        render_diff(&path, before, after, colour)
    }

    fn text(&self, colour: Colour, is_written: bool) -> String {
        let ClientReport { file, outcome } = self;
        let (program, path) =
            (sanitize::line(&file.program), sanitize::line(&file.path.display().to_string()));
        let line = |severity, text: &str| {
            format!("{}: {}\n", style::severity(colour, severity), sanitize::line(text))
        };
        let success = style::paint(colour, style::SUCCESS, "✓");
        let note = style::paint(colour, style::NOTE, "·");
        let mut text = self.diff(colour);
        match outcome {
            Outcome::Failed(message) => {
                text.push_str(&line(Severity::Error, &format!("{program}, {path}: {message}")))
            }
            Outcome::Connected { others } => {
                text.push_str(&format!("{success} {program} is connected: {path}\n"));
                if !others.is_empty() {
                    let others = others.join(", ");
                    text.push_str(&line(
                        Severity::Info,
                        &format!("it starts other servers itself: {others}"),
                    ));
                }
            }
            Outcome::Changed { change, backup } => {
                text.push_str(&change_lines(change, colour));
                match (is_written, backup) {
                    (false, _) => text.push_str(&format!("{note} {program} is not connected: {path}\n")),
                    (true, None) => text.push_str(&format!("{success} connected {program}: {path} is new\n")),
                    (true, Some(copy)) => {
                        let copy = sanitize::line(&copy.display().to_string());
                        text.push_str(&format!(
                            "{success} connected {program}; the file as it was: {copy}\n"
                        ));
                    }
                }
            }
            Outcome::Restored { before, .. } => {
                let done = if before.is_some() { "restored" } else { "removed" };
                let what =
                    if is_written { format!("{success} {done}") } else { format!("{note} would be {done}:") };
                text.push_str(&format!(
                    "{what} {path}; the servers stay in the configuration of mcp-host, too\n"
                ));
            }
            Outcome::EntryRemoved { copy, .. } => {
                let copy = copy
                    .as_ref()
                    .map(|it| format!(". The file as it was: {}", it.display()))
                    .unwrap_or_default();
                let message = format!(
                    "{path} was changed since it was connected, so only the entry `mcp-host` is removed{copy}"
                );
                text.push_str(&line(Severity::Warning, &message));
            }
        }
        text
    }
}

/// The servers that move or stay, the losses and the secrets, one per line.
fn change_lines(change: &ClientChange, colour: Colour) -> String {
    let ClientChange { before: _, after: _, moved, known, left, losses, secrets } = change;
    let line =
        |severity, text: &str| format!("{}: {}\n", style::severity(colour, severity), sanitize::line(text));
    let mut text = String::new();
    if !moved.is_empty() {
        text.push_str(&line(
            Severity::Info,
            &format!("moved to the configuration of mcp-host: {}", moved.join(", ")),
        ));
    }
    if !known.is_empty() {
        text.push_str(&line(Severity::Info, &format!("there already: {}", known.join(", "))));
    }
    for LeftServer { server, reason } in left {
        text.push_str(&line(Severity::Warning, &format!("`{server}` stays in the client's file: {reason}")));
    }
    text.push_str(&loss_lines(losses, colour));
    if !secrets.is_empty() {
        let message = format!(
            "moved values that may be secrets: {}; the configuration of mcp-host is readable by its owner only",
            secrets.join(", ")
        );
        text.push_str(&line(Severity::Warning, &message));
    }
    text
}
