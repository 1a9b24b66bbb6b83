//! `convert`: writes the servers of a file in another dialect and reports what that dialect cannot express.
//!
//! The result is written to standard output or a new file, the report to standard error. JSON output contains both. The
//! result contains the literal values of the file, secrets included; the report contains none of them.

use std::env;

use mcp_host_config::{
    Colour, FieldFallback, InputDeclarations, Profile, UnsupportedField, WrittenFile, write_editor_file,
    write_servers,
};
use mcp_host_model::Severity;
use mcp_host_runtime::create_like;
use serde::Serialize;

use crate::args::{ConvertArgs, Format};
use crate::config::context::Context;
use crate::config::file::{ConfigFile, open};
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::{count, error_chain, json, sanitize, style};
use crate::render::suggestions::quote_path;
use crate::runtime::exit::Exit;

/// The JSON document of `convert`.
#[derive(Serialize)]
struct ConvertJson<'a> {
    /// The target dialect.
    dialect: &'a str,
    /// The file that was written; null without `--output`.
    path: Option<String>,
    /// The result; null if it was written to a file or the conversion failed.
    text: Option<&'a str>,
    /// The servers in the result.
    servers: Vec<&'a str>,
    /// What the dialect cannot express.
    losses: &'a [UnsupportedField],
    /// Why the conversion failed, or that servers are left out.
    error: Option<String>,
}

/// Converts a file. Blocks.
pub(crate) fn run(context: &Context, args: &ConvertArgs) -> Result<Report, Failure> {
    let ConvertArgs { file, to, output, lossy } = args;
    let target = *to;
    let source = open(file, context)
        .map_err(|error| conversion_failure(context, target, error.message, error.help, ""))?;
    let colour = context.console.err_colour;
    let mut err = source.detection_notes() + &source.syntax_diagnostics_text(colour);
    if source.loaded.reading.refused {
        return Err(conversion_failure(context, target, "the file cannot be used".to_owned(), None, &err));
    }
    let servers = &source.loaded.reading.servers;
    let WrittenFile { text, unsupported: mut losses, .. } = match output {
        // The file name identifies the editor, and so the variable syntax.
        Some(path) => {
            let declared = InputDeclarations::parse(&source.loaded.text);
            write_editor_file(&path.to_string_lossy(), &declared, servers, target, &find_on_path)
        }
        None => write_servers(servers, target, &find_on_path),
    };
    losses.extend(disabled_server_losses(&source));
    err.push_str(&loss_lines(&losses, colour));
    if let Some(path) = output {
        create_like(path, &text, &source.path)
            .map_err(|error| conversion_failure(context, target, error_chain(&error), None, &err))?;
    }
    let omitted: Vec<&str> = losses
        .iter()
        .filter(|it| it.fallback == FieldFallback::ServerOmitted)
        .map(|it| it.server.as_str())
        .collect();
    let refusal =
        (!lossy && !omitted.is_empty()).then(|| format!("{} left out", count(omitted.len(), "server")));
    if let Some(message) = &refusal {
        err.push_str(&style::error(colour, message, Some("`--lossy` accepts the loss")));
    }
    let servers = source.loaded.reading.servers.iter().map(|it| it.id.as_str());
    let out = match (context.format, output) {
        (Format::Json, _) => json::document(&ConvertJson {
            dialect: target.as_str(),
            path: output.as_ref().map(|it| it.display().to_string()),
            text: output.is_none().then_some(text.as_str()),
            servers: servers.filter(|name| !omitted.contains(name)).collect(),
            losses: &losses,
            error: refusal.clone(),
        }),
        (Format::Text, None) => text,
        (Format::Text, Some(path)) => format!("wrote {}\n", sanitize::line(&path.display().to_string())),
    };
    let after = match (output, context.format) {
        (Some(path), Format::Text) => {
            context.console.suggestion(&format!("`mcp-host check {}` checks the result", quote_path(path)))
        }
        (_, _) => String::new(),
    };
    // The loss of a field is not an error; the loss of a server and an invalid entry are.
    let is_complete = refusal.is_none() && source.loaded.reading.entries.iter().all(|it| it.accepted);
    Ok(Report { out, err, exit: if is_complete { Exit::Success } else { Exit::Failure }, after })
}

/// A loss for each disabled server: disabled servers are not written.
fn disabled_server_losses(source: &ConfigFile) -> Vec<UnsupportedField> {
    let loss = |it: &mcp_host_config::ServerEntry| {
        let reason = "the server is disabled";
        UnsupportedField::new(&*it.name, "enabled", reason, FieldFallback::ServerOmitted)
    };
    source.loaded.reading.entries.iter().filter(|it| it.disabled).map(loss).collect()
}

/// The failure of the conversion, with the `notes` that precede its message.
fn conversion_failure(
    context: &Context,
    target: Profile,
    message: String,
    help: Option<String>,
    notes: &str,
) -> Failure {
    let mut report = Failure::new(&message).help(help).report(&context.console);
    report.err.insert_str(0, notes);
    if context.format == Format::Json {
        report.out = json::document(&ConvertJson {
            dialect: target.as_str(),
            path: None,
            text: None,
            servers: Vec::new(),
            losses: &[],
            error: Some(message),
        });
    }
    report.into()
}

/// The losses as text, one per line.
pub(super) fn loss_lines(losses: &[UnsupportedField], colour: Colour) -> String {
    let mut res = String::new();
    for UnsupportedField { server, field, reason, fallback, .. } in losses {
        let severity = match fallback {
            FieldFallback::ServerOmitted => Severity::Warning,
            FieldFallback::FieldOmitted | FieldFallback::Replaced(_) | _ => Severity::Info,
        };
        let text = sanitize::line(&format!("{server}: {field}: {reason}; {fallback}"));
        res.push_str(&format!("{}: {text}\n", style::severity(colour, severity)));
    }
    res
}

/// Looks up the path of a program on `PATH`.
fn find_on_path(name: &str) -> Option<String> {
    if name.contains('/') {
        return None;
    }
    let folders = env::var_os("PATH")?;
    let found =
        env::split_paths(&folders).map(|it| it.join(name)).find(|it| it.is_absolute() && it.is_file())?;
    found.to_str().map(str::to_owned)
}
