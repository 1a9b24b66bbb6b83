//! `connect`: makes this host the only MCP server of other programs on this machine, and undoes it.
//!
//! The servers of a client move to the configuration of the host, and its file receives one entry that starts
//! `mcp-host serve`. Comments and formatting of the file stay, and a copy of it is kept. The configuration of the host
//! is written first, so a failure loses no server.

mod clients;
mod plan;
mod record;
mod report;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use mcp_host_config::{Profile, remove_server};
use mcp_host_runtime::{create_private, save};
use mcp_host_transport::{ProgramSearch, ProgramSearchResult, find_program};

use crate::args::ConnectArgs;
use crate::commands::files::new_file::TargetFile;
use crate::config::context::Context;
use crate::config::file::open;
use crate::config::views::Views;
use crate::output::console::Report;
use crate::output::error_chain;
use crate::output::failure::Failure;
use crate::runtime::bounded_read::read_file;
use crate::runtime::system::make_private;
use clients::{ClientFile, existing_clients, find_clients};
use plan::{ClientPlan, ENTRY_NAME, HostConfig, HostEntry, plan, plan_new};
use record::{ConnectRecord, MAX_CLIENT_BYTES, RecordFolder};
use report::{ClientReport, ConnectReport, Outcome};

/// Connects clients with the host, or disconnects them. Blocks.
pub(crate) fn run(context: &Context, args: &ConnectArgs) -> Result<Report, Failure> {
    let ConnectArgs { clients, config, view, shared: _, undo, dry_run } = args;
    let is_list = clients.is_empty();
    if is_list && *undo {
        return Err(Failure::usage("which clients? `mcp-host connect` lists them"));
    }
    let files = if is_list {
        existing_clients()
    } else {
        let found = clients.iter().map(|word| find_clients(word)).collect::<Result<Vec<_>, _>>();
        found.map_err(Failure::usage)?.concat()
    };
    let is_written = !is_list && !dry_run;
    if *undo {
        let clients = files.into_iter().map(|file| undo_client(context, file, is_written)).collect();
        return Ok(ConnectReport { config: None, clients, is_written }.print(context));
    }
    let path = match config {
        Some(path) => {
            std::path::absolute(path).map_err(|error| Failure::new(format!("--config: {error}")))?
        }
        None => default_config()?,
    };
    let target =
        TargetFile::open(context, &path).map_err(|error| Failure::new(error.message).help(error.help))?;
    let mut host = HostConfig::new(target);
    if let Some(view) = view {
        Views::read(&path)?.find(view)?;
    }
    let entry = host_entry(&path, args)?;
    let plans: Vec<ClientReport> =
        files.into_iter().map(|file| plan_client(context, file, &mut host, &entry)).collect();
    if is_written {
        write_config(&host)?;
    }
    let clients =
        plans.into_iter().map(|client| if is_written { write_client(client) } else { client }).collect();
    Ok(ConnectReport { config: Some(host), clients, is_written }.print(context))
}

/// The configuration of the host: `mcp-host/mcp.json` in the user's folder of settings.
fn default_config() -> Result<PathBuf, Failure> {
    let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| absolute("APPDATA"));
    let folder = folder.or_else(|| Some(absolute("HOME")?.join(".config")));
    let folder = folder.ok_or_else(|| {
        Failure::new("the user has no folder of settings: HOME is not set")
            .help(Some("name the file with `--config`"))
    })?;
    Ok(folder.join("mcp-host/mcp.json"))
}

/// The entry that starts this host with the configuration and the options.
fn host_entry(config: &Path, options: &ConnectArgs) -> Result<HostEntry, Failure> {
    let text = |path: &Path| {
        let text = path.to_str().map(str::to_owned);
        text.ok_or_else(|| {
            Failure::new(format!("{} is no text, as the file of a client needs it", path.display()))
        })
    };
    let (folders, here) = (env::var("PATH").unwrap_or_default(), env::current_dir().unwrap_or_default());
    let command = match find_program("mcp-host", ProgramSearch::new(&folders, &here)) {
        ProgramSearchResult::Found(_) => "mcp-host".to_owned(),
        _ => {
            let own = env::current_exe();
            text(
                &own.map_err(|error| Failure::new(format!("the path of this program is unknown: {error}")))?,
            )?
        }
    };
    let mut args = vec!["serve".to_owned(), text(config)?, "--stdio".to_owned()];
    args.extend(options.shared.then(|| "--shared".to_owned()));
    args.extend(options.view.iter().flat_map(|name| ["--view".to_owned(), name.clone()]));
    Ok(HostEntry { command, args })
}

/// Finds what changes in a client's file, and takes its servers into the configuration of the host.
fn plan_client(
    context: &Context,
    file: ClientFile,
    host: &mut HostConfig,
    entry: &HostEntry,
) -> ClientReport {
    let planned = if file.path.exists() {
        open(&file.path, context).map_err(|error| error.message).and_then(|client| {
            if client.loaded.profile != Profile::McpJson {
                return Err("it is no file of a client: its program is a host itself".to_owned());
            }
            plan(&client, host, entry)
        })
    } else {
        plan_new(&file.path.display().to_string(), entry)
    };
    let outcome = match planned {
        Ok(ClientPlan::Connected { others }) => Outcome::Connected { others },
        Ok(ClientPlan::Change(change)) => Outcome::Changed { change, backup: None },
        Err(message) => Outcome::Failed(message),
    };
    ClientReport { file, outcome }
}

/// Writes the configuration of the host if it receives servers. Its owner alone may read it.
fn write_config(host: &HostConfig) -> Result<(), Failure> {
    let HostConfig { file: TargetFile { path, text, .. }, after } = host;
    let failed = |error: &dyn std::error::Error| Failure::new(error_chain(error));
    match text {
        // A configuration without servers is written too: the entry of the clients names it.
        None => {
            let text = if after.is_empty() { "{\n  \"mcpServers\": {}\n}\n" } else { after };
            create_private(path, text).map_err(|error| failed(&error))
        }
        Some(before) if before == after => Ok(()),
        Some(before) => {
            save(path, before, after).map_err(|error| failed(&error))?;
            make_private(path).map_err(|error| {
                Failure::new(format!("cannot make {} readable by its owner only: {error}", path.display()))
            })
        }
    }
}

/// Keeps a copy of the client's file, and writes the file.
fn write_client(client: ClientReport) -> ClientReport {
    let ClientReport { file, outcome } = client;
    let outcome = match outcome {
        Outcome::Changed { change, .. } => {
            let (path, before) = (&file.path, change.before.as_deref());
            let written = RecordFolder::of(path).and_then(|folder| {
                let backup = folder.write(path, before, &change.after)?;
                let saved = match before {
                    Some(before) => save(path, before, &change.after),
                    None => create_private(path, &change.after),
                };
                saved.map_err(|error| {
                    folder.remove(backup.as_deref());
                    error_chain(&error)
                })?;
                Ok(backup)
            });
            match written {
                Ok(backup) => Outcome::Changed { change, backup },
                Err(message) => Outcome::Failed(message),
            }
        }
        other @ (Outcome::Connected { .. }
        | Outcome::Restored { .. }
        | Outcome::EntryRemoved { .. }
        | Outcome::Failed(_)) => other,
    };
    ClientReport { file, outcome }
}

/// Restores a client's file. If it was changed since, only the host's entry is removed.
fn undo_client(context: &Context, file: ClientFile, is_written: bool) -> ClientReport {
    let outcome = try_undo(context, &file, is_written).unwrap_or_else(Outcome::Failed);
    ClientReport { file, outcome }
}

fn try_undo(context: &Context, file: &ClientFile, is_written: bool) -> Result<Outcome, String> {
    let path = &file.path;
    let folder = RecordFolder::of(path)?;
    let record = folder.read();
    let read = |path: &Path| {
        read_file(path, MAX_CLIENT_BYTES).map_err(|error| format!("cannot read {}: {error}", path.display()))
    };
    let now = read(path)?;
    if let Some(ConnectRecord { backup, written, .. }) = &record
        && *written == now
    {
        let before = backup.as_deref().map(read).transpose()?;
        if is_written {
            match &before {
                Some(before) => save(path, &now, before).map_err(|error| error_chain(&error))?,
                None => fs::remove_file(path)
                    .map_err(|error| format!("cannot remove {}: {error}", path.display()))?,
            }
            folder.remove(backup.as_deref());
        }
        return Ok(Outcome::Restored { before, now });
    }
    let client = open(path, context).map_err(|error| error.message)?;
    if !client.loaded.reading.entries.iter().any(|it| it.name == ENTRY_NAME) {
        return Err("it is not connected: it has no entry `mcp-host`".to_owned());
    }
    let after = remove_server(&client.document(), ENTRY_NAME).map_err(|error| error.to_string())?;
    if is_written {
        save(path, &now, &after).map_err(|error| error_chain(&error))?;
        folder.remove(None);
    }
    Ok(Outcome::EntryRemoved { now, after, copy: record.and_then(|it| it.backup) })
}
