//! `convert`: the servers of a file in another dialect, and a report of what that dialect cannot say.
//!
//! What is converted goes to standard output, or into a new file; the report goes to standard error. As JSON both are in
//! one document. Literal values of the file are in the result, secrets included, and never in the report.

use std::env;
use std::path::PathBuf;

use mcp_config::{
    Colour, FieldFallback, InputDeclarations, Profile, UnsupportedField, WrittenFile, write_editor_file,
    write_servers,
};
use mcp_host::create;
use mcp_model::Severity;
use serde::Serialize;

use crate::args::{Format, ProfileName};
use crate::commands::next;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::cause::chain;
use crate::output::console::Report;
use crate::output::{json, paint, plain};
use crate::source::{Source, Unreadable, open};

/// The words of `convert`.
#[derive(Debug, clap::Args)]
pub(crate) struct Words {
    /// The configuration, or the folder it is in
    file: PathBuf,
    /// The dialect to write
    #[arg(long, value_enum, value_name = "DIALECT")]
    to: ProfileName,
    /// A new file for the result; standard output unless given
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The document of `convert`.
#[derive(Serialize)]
struct Document<'a> {
    /// The dialect that was written.
    dialect: &'a str,
    /// The file that was written; null where none was asked for.
    path: Option<String>,
    /// The converted file; null where it was written into a file, or nothing was.
    text: Option<&'a str>,
    /// The servers that are in it.
    servers: Vec<&'a str>,
    /// What the dialect cannot say.
    losses: &'a [UnsupportedField],
    /// Why nothing was written.
    error: Option<String>,
}

/// Converts a file. Blocks.
pub(crate) fn run(context: &Context, words: &Words) -> Report {
    let Words { file, to, output } = words;
    let target = to.profile();
    let source = match open(file, context) {
        Ok(source) => source,
        Err(Unreadable { path: _, message, help }) => {
            return failed(context, target, message, help.as_deref());
        }
    };
    let colour = context.console.err;
    let mut err = source.taken(colour) + &source.mistakes(colour);
    if source.loaded.reading.refused {
        let mut res = failed(context, target, "nothing of the file can be used".to_owned(), None);
        res.err.insert_str(0, &err);
        return res;
    }
    let servers = &source.loaded.reading.servers;
    let WrittenFile { text, unsupported: mut losses } = match output {
        // What is read from a file of this name spells its variables as that program does.
        Some(path) => {
            let declared = InputDeclarations::parse(&source.loaded.text);
            write_editor_file(&path.to_string_lossy(), &declared, servers, target, &on_path)
        }
        None => write_servers(servers, target, &on_path),
    };
    losses.extend(switched_off(&source));
    err.push_str(&report(&losses, colour));
    if let Some(path) = output
        && let Err(error) = create(path, &text, &source.file)
    {
        let mut res = failed(context, target, chain(&error), None);
        res.err.insert_str(0, &err);
        return res;
    }
    let gone =
        |name: &str| losses.iter().any(|it| it.server == name && it.fallback == FieldFallback::ServerOmitted);
    let servers = source.loaded.reading.servers.iter().map(|it| it.id.as_str());
    let out = match (context.format, output) {
        (Format::Json, _) => json::document(&Document {
            dialect: target.as_str(),
            path: output.as_ref().map(|it| it.display().to_string()),
            text: output.is_none().then_some(text.as_str()),
            servers: servers.filter(|it| !gone(it)).collect(),
            losses: &losses,
            error: None,
        }),
        (Format::Text, None) => text,
        (Format::Text, Some(path)) => format!("wrote {}\n", plain::line(&path.display().to_string())),
    };
    let after = match (output, context.format) {
        (Some(path), Format::Text) => {
            context.console.next(&format!("`mcp-host check {}` looks at what was written", next::file(path)))
        }
        (_, _) => String::new(),
    };
    // Losses are no mistakes; an entry that is wrong is one, as for every command.
    let sound = source.loaded.reading.entries.iter().all(|it| it.accepted);
    Report { out, err, exit: if sound { Exit::Done } else { Exit::Wrong }, after }
}

/// Servers that are switched off are no servers, and are not written.
fn switched_off(source: &Source) -> Vec<UnsupportedField> {
    let loss = |it: &mcp_config::ServerEntry| UnsupportedField {
        server: it.name.clone(),
        field: "enabled".to_owned(),
        reason: "it is switched off".to_owned(),
        fallback: FieldFallback::ServerOmitted,
    };
    source.loaded.reading.entries.iter().filter(|it| it.disabled).map(loss).collect()
}

fn failed(context: &Context, target: Profile, message: String, help: Option<&str>) -> Report {
    let mut res = context.console.failure(Exit::Wrong, &plain::line(&message), help);
    if context.format == Format::Json {
        res.out = json::document(&Document {
            dialect: target.as_str(),
            path: None,
            text: None,
            servers: Vec::new(),
            losses: &[],
            error: Some(message),
        });
    }
    res
}

/// Losses for people, the servers in their order.
pub(super) fn report(losses: &[UnsupportedField], colour: Colour) -> String {
    let mut res = String::new();
    for UnsupportedField { server, field, reason, fallback } in losses {
        let severity = match fallback {
            FieldFallback::ServerOmitted => Severity::Warning,
            FieldFallback::FieldOmitted | FieldFallback::Replaced(_) => Severity::Info,
        };
        let text = plain::line(&format!("{server}: {field}: {reason}; {fallback}"));
        res.push_str(&format!("{}: {text}\n", paint::severity(colour, severity)));
    }
    res
}

/// Where a program of this name is, by `PATH`.
fn on_path(name: &str) -> Option<String> {
    if name.contains('/') {
        return None;
    }
    let folders = env::var_os("PATH")?;
    let found =
        env::split_paths(&folders).map(|it| it.join(name)).find(|it| it.is_absolute() && it.is_file())?;
    found.to_str().map(str::to_owned)
}
