//! `secret`: stores, lists and removes the user's secrets. No value is an argument, and none is printed.

use std::io::{self, IsTerminal};

use mcp_host_model::Secret;
use mcp_host_runtime::{MAX_SECRET_BYTES, SecretPlace, SecretStore, StateFolderError};
use serde::Serialize;

use crate::args::{Format, SecretArgs, SecretCommandArgs};
use crate::config::context::Context;
use crate::config::user_secrets::open_secret_store;
use crate::output::console::Report;
use crate::output::failure::Failure;
use crate::output::json;
use crate::runtime::bounded_read::read_bytes;
use crate::runtime::exit::Exit;

/// The JSON document of the command.
#[derive(Serialize)]
struct SecretsJson {
    /// Where secrets are stored: `keyring` or `files`.
    stored_in: &'static str,
    /// The names of the secrets, or of the one that was changed.
    names: Vec<String>,
}

/// Runs the command. Blocks.
pub(crate) fn run(context: &Context, args: &SecretArgs) -> Result<Report, Failure> {
    let store = open_secret_store().map_err(no_folder)?;
    let failed = |error: mcp_host_runtime::SecretError| Failure::new(error.to_string());
    match &args.command {
        SecretCommandArgs::Set { name } => {
            let place = store.set(name, &read_value(name)?).map_err(failed)?;
            let text =
                format!("`{name}` is stored {}; refer to it as `${{secret:{name}}}`\n", place_text(&place));
            Ok(report(context, &place, vec![name.clone()], text))
        }
        SecretCommandArgs::List => {
            let names = store.names().map_err(failed)?;
            let place = store.place();
            let text: String = names.iter().map(|it| format!("{it}\n")).collect();
            let note = context.console.note(&format!("new secrets are stored {}", place_text(&place)));
            Ok(Report { err: note, ..report(context, &place, names, text) })
        }
        SecretCommandArgs::Remove { name } => remove(context, &store, name),
    }
}

fn remove(context: &Context, store: &SecretStore, name: &str) -> Result<Report, Failure> {
    if !store.remove(name).map_err(|error| Failure::new(error.to_string()))? {
        let help = "`mcp-host secret list` shows the names";
        return Err(Failure::new(format!("there is no secret `{name}`")).help(Some(help)));
    }
    Ok(report(context, &store.place(), vec![name.to_owned()], format!("`{name}` is removed\n")))
}

/// Reads a value: at a terminal without showing it, else all of standard input without the line end.
fn read_value(name: &str) -> Result<Secret, Failure> {
    let failed = |error: io::Error| Failure::new(format!("cannot read the secret: {error}"));
    if io::stdin().is_terminal() {
        let value = rpassword::prompt_password(format!("value of `{name}` (not shown): ")).map_err(failed)?;
        return Ok(Secret::new(value));
    }
    // One byte more than allowed, and a line end: the store reports a secret that is too long.
    let limit = u64::try_from(MAX_SECRET_BYTES + 3).unwrap_or(u64::MAX);
    let bytes = read_bytes(io::stdin().lock(), limit)
        .map_err(|_| Failure::new(format!("the secret is longer than {MAX_SECRET_BYTES} bytes")))?;
    let text = String::from_utf8(bytes).map_err(|_| Failure::new("the secret is no text in UTF-8"))?;
    Ok(Secret::new(text.strip_suffix('\n').map_or(text.as_str(), |it| it.strip_suffix('\r').unwrap_or(it))))
}

/// Where a secret is stored, after a verb.
pub(crate) fn place_text(place: &SecretPlace) -> String {
    match place {
        SecretPlace::Keyring => "in the keyring of the system".to_owned(),
        SecretPlace::File { folder, reason, .. } => {
            format!("in a private file in {}, because there is no keyring ({reason})", folder.display())
        }
        _ => "here".to_owned(),
    }
}

fn report(context: &Context, place: &SecretPlace, names: Vec<String>, text: String) -> Report {
    let stored_in = if *place == SecretPlace::Keyring { "keyring" } else { "files" };
    Report {
        exit: Exit::Success,
        ..Report::out(match context.format {
            Format::Json => json::document(&SecretsJson { stored_in, names }),
            Format::Text => text,
        })
    }
}

fn no_folder(error: StateFolderError) -> Failure {
    Failure::new(format!("there is no folder for secrets: {error}")).help(Some(error.help()))
}
