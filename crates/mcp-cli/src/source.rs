//! A configuration file from the command line to servers that can be started, or to words about why not.

use std::path::{Path, PathBuf};

use mcp_config::{Colour, Diagnostic, Document, ServerEntry, render};
use mcp_host::{LoadError, LoadRequest, LoadedConfig, load};
use mcp_model::Severity;

use crate::args::Reader;
use crate::context::Context;
use crate::output::cause::chain;
use crate::output::console::Chatter;
use crate::output::{paint, plain};
use crate::target::{Target, locate};

/// A file that could not be read at all.
#[derive(Debug)]
pub(crate) struct Unreadable {
    /// The file, or the folder, as it was named.
    pub(crate) path: String,
    /// Why, in one sentence.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) help: Option<String>,
}

/// A file that was read, whatever is wrong with it.
#[derive(Debug)]
pub(crate) struct Source {
    /// What is in it.
    pub(crate) loaded: LoadedConfig,
    /// Where it is.
    pub(crate) file: PathBuf,
    /// It was found in a folder that was named.
    found: bool,
    /// How much is said of it.
    chatter: Chatter,
}

/// Reads the file that `path` means. Blocks.
pub(crate) fn open(path: &Path, context: &Context) -> Result<Source, Unreadable> {
    let unreadable = |message, help| Unreadable { path: path.display().to_string(), message, help };
    let Target { path: file, found } = locate(path).map_err(|it| unreadable(it, None))?;
    let Reader { dialect, profile } = context.reader;
    let request = LoadRequest { path: file.clone(), dialect, profile, env_file: context.env_file.clone() };
    match load(&request) {
        Ok(loaded) => Ok(Source { loaded, file, found, chatter: context.console.chatter }),
        Err(error) => Err(unreadable(chain(&error), help(&error))),
    }
}

fn help(error: &LoadError) -> Option<String> {
    match error {
        LoadError::UnknownDialect { .. } => Some(
            "say `--dialect holodeck`, `--dialect dominds`, `--dialect mcp-json` or `--dialect acp`"
                .to_owned(),
        ),
        _ => None,
    }
}

impl Source {
    /// May the server of this entry be started?
    pub(crate) fn accepts(&self, entry: &ServerEntry) -> bool {
        let LoadedConfig { refused, desired: wanted, .. } = &self.loaded;
        entry.accepted && !refused && !wanted.failed.iter().any(|it| it.id == entry.name)
    }

    /// What it was read from.
    pub(crate) fn document(&self) -> Document<'_> {
        let LoadedConfig { path, text, profile, .. } = &self.loaded;
        Document { name: path, text, profile: *profile }
    }

    /// Which file was taken, where that is not the one that was named.
    pub(crate) fn taken(&self, colour: Colour) -> String {
        if !self.found || self.chatter == Chatter::Quiet {
            return String::new();
        }
        format!("{}: reading {}\n", paint::paint(colour, paint::NOTE, "note"), plain::line(&self.loaded.path))
    }

    /// Everything that is wrong with the file, each with its line and what to do, and an empty line after it.
    pub(crate) fn complaints(&self, colour: Colour) -> String {
        self.told(&self.loaded.diagnostics, colour)
    }

    /// The same without variables that have no value here: who starts nothing does not need them.
    pub(crate) fn mistakes(&self, colour: Colour) -> String {
        self.told(&self.loaded.reading.diagnostics, colour)
    }

    fn told(&self, diagnostics: &[Diagnostic], colour: Colour) -> String {
        let LoadedConfig { path, text, .. } = &self.loaded;
        let is_told = |it: &&Diagnostic| match self.chatter {
            Chatter::Usual => true,
            Chatter::Quiet => it.severity == Severity::Error,
        };
        let told: Vec<Diagnostic> = diagnostics.iter().filter(is_told).cloned().collect();
        if told.is_empty() { String::new() } else { render(path, text, &told, colour) }
    }
}
