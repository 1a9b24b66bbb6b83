//! A configuration file that was read: its servers and its diagnostics.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use mcp_host_config::{Colour, Diagnostic, Document, Profile, ServerEntry, render};
use mcp_host_model::Severity;
use mcp_host_runtime::{DesiredServers, LoadError, LoadedConfig, load};

use crate::config::approval::ask_about_servers;
use crate::config::command_line_server::CommandLineServer;
use crate::config::context::Context;
use crate::config::file_error::ConfigFileError;
use crate::config::locate::{ConfigPath, locate_config};
use crate::output::console::{Report, Verbosity};
use crate::output::error_chain;
use crate::runtime::run_blocking;

/// The servers that a command uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UsedServers<'a> {
    /// All of the file.
    All,
    /// The one with this name.
    Named(&'a str),
    /// Those that can have this tool.
    OwnersOf(&'a str),
}

impl<'a> UsedServers<'a> {
    /// The server with this name; without one, all.
    pub(crate) fn named(server: Option<&'a str>) -> UsedServers<'a> {
        server.map_or(UsedServers::All, UsedServers::Named)
    }
}

/// A configuration file that was read, with or without errors in it.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    /// The content.
    pub(crate) loaded: LoadedConfig,
    /// The path.
    pub(crate) path: PathBuf,
    /// Whether it belongs to a project, and no command named it.
    pub(crate) is_of_project: bool,
    /// Whether the file was found by search.
    is_discovered: bool,
    context: Context,
}

/// Reads the configuration that `path` selects. Blocks.
pub(crate) fn open(path: &Path, context: &Context) -> Result<ConfigFile, ConfigFileError> {
    let file_error = |message, help| ConfigFileError { path: path.display().to_string(), message, help };
    let config = match &context.command_line {
        Some(server) => ConfigPath::of_command_line(server),
        None => locate_config(path).map_err(|message| file_error(message, None))?,
    };
    load_file(config, context).map_err(|error| file_error(error_chain(&error), load_error_help(&error)))
}

fn load_file(config: ConfigPath, context: &Context) -> Result<ConfigFile, LoadError> {
    let loaded = load(&context.load_request(&config))?;
    let ConfigPath { path, is_discovered, is_of_project, text: _ } = config;
    Ok(ConfigFile { loaded, path, is_of_project, is_discovered, context: context.clone() })
}

impl Context {
    /// Reads the configuration that `path` selects.
    pub(crate) async fn open(&self, path: &Path) -> Result<ConfigFile, ConfigFileError> {
        let (context, path) = (self.clone(), path.to_owned());
        run_blocking(move || open(&path, &context)).await
    }

    /// Reads the configuration that `path` selects, or the nearest one, and prints its diagnostics.
    pub(crate) async fn open_and_report(&self, path: Option<&Path>) -> Result<ConfigFile, ConfigFileError> {
        self.open_and_report_about(path, UsedServers::All).await
    }

    /// Asks for missing approvals of the servers of a file. Reads it again if they now receive secrets.
    pub(crate) async fn ask_for_approval(&self, file: ConfigFile) -> Result<ConfigFile, ConfigFileError> {
        if !ask_about_servers(self, &file.loaded.desired.servers).await {
            return Ok(file);
        }
        let context = self.clone();
        run_blocking(move || file.reload(&context)).await
    }

    /// Like [`Context::open_and_report`], without what concerns only servers that are not used.
    pub(crate) async fn open_and_report_about(
        &self,
        path: Option<&Path>,
        used: UsedServers<'_>,
    ) -> Result<ConfigFile, ConfigFileError> {
        let file = self.open(path.unwrap_or(Path::new(""))).await?;
        let colour = self.console.err_colour;
        let text = match file.used_names(used) {
            None => file.disabled_note() + &file.diagnostics_text(colour),
            Some(names) => {
                let is_about_used = |it: &&Diagnostic| it.server.as_ref().is_none_or(|it| names.contains(it));
                let diagnostics: Vec<_> =
                    file.loaded.diagnostics.iter().filter(is_about_used).cloned().collect();
                file.render(&diagnostics, colour)
            }
        };
        self.print(Report::err(file.detection_notes() + &text)).await;
        Ok(file)
    }
}

fn load_error_help(error: &LoadError) -> Option<String> {
    match error {
        LoadError::UnknownDialect { .. } | LoadError::Empty { .. } => Some(
            "add `--dialect holodeck`, `--dialect dominds`, `--dialect mcp-json` or `--dialect acp`"
                .to_owned(),
        ),
        LoadError::UnsupportedFormat { format, .. } => {
            Some(format!("{}: `mcp-host add`, with `--server-json` for a server.json", format.help))
        }
        _ => None,
    }
}

/// A message with the profile of a file, if it is not the dialect's default and the user did not request it.
pub(crate) fn profile_note(context: &Context, path: &str, profile: Profile) -> Option<String> {
    let is_noted = context.dialect.profile.is_none() && context.console.verbosity != Verbosity::Quiet;
    (is_noted && profile == Profile::HoloDeck07).then(|| {
        format!(
            "{path} is read by the rules of HoloDeck 0.7, because no tool has the key `server`; \
             `--profile holodeck` reads it by the configuration contract"
        )
    })
}

impl ConfigFile {
    /// Reads the file again. Blocks.
    fn reload(self, context: &Context) -> Result<ConfigFile, ConfigFileError> {
        let ConfigFile { path, is_of_project, is_discovered, .. } = self;
        let name = path.display().to_string();
        load_file(ConfigPath { path, is_discovered, is_of_project, text: None }, context).map_err(|error| {
            ConfigFileError { path: name, message: error_chain(&error), help: load_error_help(&error) }
        })
    }

    /// The names of the used servers; `None` if they are all, or if an error concerns all.
    fn used_names(&self, used: UsedServers<'_>) -> Option<BTreeSet<String>> {
        let LoadedConfig { refused, desired, reading, .. } = &self.loaded;
        match used {
            _ if *refused => None,
            UsedServers::All => None,
            UsedServers::Named(name) => {
                let exists = reading.entries.iter().any(|it| it.name == name);
                exists.then(|| BTreeSet::from([name.to_owned()]))
            }
            UsedServers::OwnersOf(tool) => {
                let DesiredServers { servers, failed, .. } = desired.possible_owners(tool);
                let is_part = servers.len() + failed.len() < desired.servers.len() + desired.failed.len();
                let names = servers.iter().map(|it| it.spec.id.to_string());
                is_part.then(|| names.chain(failed.iter().map(|it| it.id.to_string())).collect())
            }
        }
    }

    /// The server of the command line, if the configuration has only it, and there is no file.
    pub(crate) fn command_line(&self) -> Option<&CommandLineServer> {
        self.context.command_line.as_ref()
    }

    /// Whether the server of this entry may be started.
    pub(crate) fn accepts(&self, entry: &ServerEntry) -> bool {
        let LoadedConfig { refused, desired, .. } = &self.loaded;
        entry.accepted && !refused && !desired.failed.iter().any(|it| it.id == *entry.name)
    }

    /// The text with its path and profile.
    pub(crate) fn document(&self) -> Document<'_> {
        let LoadedConfig { path, text, profile, .. } = &self.loaded;
        let mut document = Document::new(path, text, *profile);
        document.max_servers = self.context.max_servers;
        document
    }

    /// Notes with the path, if the user did not name the file, and the profile, if it is not the dialect's default and
    /// the user did not request it.
    pub(crate) fn detection_notes(&self) -> String {
        let ConfigFile { loaded, path, is_of_project: _, is_discovered, context } = self;
        let note = if *is_discovered { context.console.discovery_note(path) } else { String::new() };
        note + &profile_note(context, &loaded.path, loaded.profile)
            .map_or_else(String::new, |it| context.console.note(&it))
    }

    /// A note with the names of disabled servers, without those that a diagnostic is about. Empty if there are none.
    pub(crate) fn disabled_note(&self) -> String {
        let LoadedConfig { path, reading, diagnostics, .. } = &self.loaded;
        let is_reported = |name: &str| diagnostics.iter().any(|it| it.server.as_deref() == Some(name));
        let disabled = reading.entries.iter().filter(|it| it.disabled && !is_reported(&it.name));
        let names: Vec<_> = disabled.map(|it| it.name.as_str()).collect();
        if names.is_empty() || self.context.console.verbosity == Verbosity::Quiet {
            return String::new();
        }
        self.context.console.note(&format!("disabled in {path}: {}", names.join(", ")))
    }

    /// All diagnostics of the file as text, including variables without a value.
    pub(crate) fn diagnostics_text(&self, colour: Colour) -> String {
        self.render(&self.loaded.diagnostics, colour)
    }

    /// The diagnostics of the text alone, for commands that start no server and need no values of variables.
    pub(crate) fn syntax_diagnostics_text(&self, colour: Colour) -> String {
        self.render(&self.loaded.reading.diagnostics, colour)
    }

    fn render(&self, diagnostics: &[Diagnostic], colour: Colour) -> String {
        let LoadedConfig { path, text, .. } = &self.loaded;
        // What is wrong with a server of the command line is the error of its start. It has no line.
        if self.command_line().is_some() {
            return String::new();
        }
        let is_printed = |diagnostic: &&Diagnostic| match self.context.console.verbosity {
            Verbosity::Normal | Verbosity::Verbose => true,
            Verbosity::Quiet => diagnostic.severity == Severity::Error,
        };
        let printed: Vec<Diagnostic> = diagnostics.iter().filter(is_printed).cloned().collect();
        if printed.is_empty() { String::new() } else { render(path, text, &printed, colour) }
    }
}
