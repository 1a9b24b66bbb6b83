//! From a file to servers that can be started. All the reading of files and of the environment that a configuration
//! needs happens here; what it means is mcp-config's business.

mod environment;
mod files;
mod locked;
mod save;

use std::fmt;
use std::path::{Path, PathBuf};

use mcp_config::{
    Diagnostic, Document, Profile, Reading, ResolveContext, ResolveError, detect, read, resolve,
};
use mcp_model::{Dialect, ErrorKind, Severity};

use crate::config::desired::{DesiredServers, FailedServer};
use crate::failure::HostError;
use environment::Environment;
pub(crate) use files::read_text;
pub use files::{FileError, Utf16};
pub use locked::{LockFileError, lock_path, read_lock};
pub(crate) use locked::{lock_text, parse_lock};
pub use save::{SaveError, create, create_new, replace, save};

/// What to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadRequest {
    /// The configuration file.
    pub path: PathBuf,
    /// How it is written; found out where `None`.
    pub dialect: Option<Dialect>,
    /// The rules it is read by; the dialect's own where `None`.
    pub profile: Option<Profile>,
    /// A `.env` file with variables for those that our own environment does not have.
    pub env_file: Option<PathBuf>,
}

impl LoadRequest {
    /// The file, with everything else found out.
    pub fn new(path: impl Into<PathBuf>) -> LoadRequest {
        LoadRequest { path: path.into(), dialect: None, profile: None, env_file: None }
    }
}

/// A file as it was read.
#[derive(Clone)]
pub struct LoadedConfig {
    /// The file's name as it was asked for.
    pub path: String,
    /// Its text.
    pub text: String,
    /// The rules it was read by.
    pub profile: Profile,
    /// What was read.
    pub reading: Reading,
    /// Everything there is to say, in the file's order: the reading's own, and variables that have no value.
    pub diagnostics: Vec<Diagnostic>,
    /// Nothing of the file may be started. To be looked at before `wanted` is.
    pub refused: bool,
    /// What a [`Host`](crate::host::Host) is to run.
    ///
    /// Empty when the file is `refused`, and then not to be applied: wanting nothing stops every server. A host keeps
    /// the last good configuration whole by not hearing of a refused one.
    pub desired: DesiredServers,
}

impl LoadedConfig {
    /// What a [`Host`](crate::host::Host) is to run; an error where nothing of the file may be started.
    pub fn into_desired(self) -> Result<DesiredServers, HostError> {
        match self.refused {
            true => Err(HostError::new(ErrorKind::Config, self.refusal())),
            false => Ok(self.desired),
        }
    }

    /// Why nothing of the file is used, and where to begin with mending it.
    pub(crate) fn refusal(&self) -> String {
        let errors: Vec<_> = self.diagnostics.iter().filter(|it| it.severity == Severity::Error).collect();
        let first =
            errors.first().map(|it| format!(": line {}: {}", it.line, it.message)).unwrap_or_default();
        let noun = if errors.len() == 1 { "error" } else { "errors" };
        format!("{} has {} {noun} and is not used as it is{first}", self.path, errors.len())
    }
}

impl fmt::Debug for LoadedConfig {
    /// Without the text, which may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LoadedConfig { path, text, profile, reading, diagnostics, refused, desired: wanted } = self;
        f.debug_struct("Loaded")
            .field("path", path)
            .field("text", &format_args!("{} bytes", text.len()))
            .field("profile", profile)
            .field("reading", reading)
            .field("diagnostics", diagnostics)
            .field("refused", refused)
            .field("wanted", wanted)
            .finish()
    }
}

/// Why a file could not be read at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file itself.
    #[error("cannot read {path}")]
    File {
        /// The file.
        path: String,
        /// Why not.
        #[source]
        source: FileError,
    },
    /// The file given for variables.
    #[error("cannot read the environment file {path}")]
    EnvFile {
        /// The file.
        path: String,
        /// Why not.
        #[source]
        source: FileError,
    },
    /// Neither name nor content tell how it is written.
    #[error(
        "{path}: no MCP configuration is recognised: it is named neither agent.yaml (HoloDeck) nor .minds/mcp.yaml \
         (Dominds) nor mcp.json (editors), and holds neither HoloDeck's `tools` nor Dominds' `version` and `servers`, \
         nor an object `mcpServers` or `servers` in JSON, nor the `mcpServers` of an ACP session; name the dialect"
    )]
    UnknownDialect {
        /// The file.
        path: String,
    },
    /// The profile is another dialect's.
    #[error("the profile {} is not one of the dialect {}", .profile.as_str(), .dialect.as_str())]
    ProfileMismatch {
        /// The profile.
        profile: Profile,
        /// The dialect.
        dialect: Dialect,
    },
}

impl LoadError {
    /// The kind of failure.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Config
    }
}

/// Reads a file and resolves its servers. Blocks while it reads.
pub fn load(request: &LoadRequest) -> Result<LoadedConfig, LoadError> {
    load_through(request, &read_text)
}

/// The same, every file that it needs read by `read`: the configuration first, then those it refers to.
pub(crate) fn load_through(
    request: &LoadRequest,
    read_text: &dyn Fn(&Path) -> Result<String, FileError>,
) -> Result<LoadedConfig, LoadError> {
    let LoadRequest { path, dialect, profile, env_file } = request;
    let shown = path.display().to_string();
    let text = read_text(path).map_err(|source| LoadError::File { path: shown.clone(), source })?;
    let environment = match env_file {
        None => Environment::own(),
        Some(file) => {
            let text = read_text(file);
            let text =
                text.map_err(|source| LoadError::EnvFile { path: file.display().to_string(), source })?;
            Environment::with_file(&text)
        }
    };
    let profile = choose(&shown, &text, *dialect, *profile)?;
    let reading = read(&Document { name: &shown, text: &text, profile });
    let variable = |name: &str| environment.variable(name);
    let read_file = |file: &Path| read_text(file).map_err(|it| it.to_string());
    let directory = directory(path);
    let surroundings = ResolveContext { variable: &variable, directory: &directory, read_file: &read_file };
    let (wanted, unresolved) = wanted(&reading, &surroundings);

    let mut diagnostics = reading.diagnostics.clone();
    diagnostics.extend(unresolved.iter().map(|it| reading.diagnose(it)));
    diagnostics.sort_by_key(|it| it.span.start);
    let refused = reading.refused || (!unresolved.is_empty() && refuses_file(profile));
    let wanted = if refused { DesiredServers::default() } else { wanted };
    Ok(LoadedConfig { path: shown, text, profile, reading, diagnostics, refused, desired: wanted })
}

fn choose(
    path: &str,
    text: &str,
    dialect: Option<Dialect>,
    profile: Option<Profile>,
) -> Result<Profile, LoadError> {
    match (dialect, profile) {
        (Some(dialect), Some(profile)) if profile.dialect() != dialect => {
            Err(LoadError::ProfileMismatch { profile, dialect })
        }
        (_, Some(profile)) => Ok(profile),
        (dialect, None) => {
            let unknown = || LoadError::UnknownDialect { path: path.to_owned() };
            let dialect = dialect.or_else(|| detect(path, text)).ok_or_else(unknown)?;
            Ok(Profile::default_for(dialect))
        }
    }
}

/// Does a variable without a value cost the whole file (HD-134), or its server alone (DM-122)?
fn refuses_file(profile: Profile) -> bool {
    match profile.dialect() {
        Dialect::HoloDeck => true,
        Dialect::Dominds | Dialect::Acp | Dialect::McpJson => false,
    }
}

/// The folder that relative paths of the file start from.
fn directory(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.parent().map(Path::to_owned).unwrap_or_default()
}

/// Every accepted server resolved, every other one with its reason, and what could not be resolved.
fn wanted(reading: &Reading, surroundings: &ResolveContext<'_>) -> (DesiredServers, Vec<ResolveError>) {
    let mut res = DesiredServers::default();
    let mut unresolved = Vec::new();
    for spec in &reading.servers {
        match resolve(spec, surroundings) {
            Ok(server) => res.servers.push(server),
            Err(errors) => {
                let id = spec.id.to_string();
                let all = errors.iter().map(|it| (it.kind, it.message.as_str(), it.help.as_deref()));
                res.failed.push(FailedServer { error: summary(&id, all), id });
                unresolved.extend(errors);
            }
        }
    }
    for entry in reading.entries.iter().filter(|it| !it.accepted) {
        if entry.extension.is_some() {
            let message =
                format!("server '{}': its transport is an extension that is not spoken here", entry.name);
            let failure = HostError::new(ErrorKind::McpConfig, message);
            res.failed.push(FailedServer { id: entry.name.clone(), error: failure });
            continue;
        }
        let own = |it: &&Diagnostic| {
            it.severity == Severity::Error && it.server.as_deref() == Some(entry.name.as_str())
        };
        let all = reading.diagnostics.iter().filter(own);
        let all = all.map(|it| (it.kind, it.message.as_str(), it.help.as_deref()));
        res.failed.push(FailedServer { id: entry.name.clone(), error: summary(&entry.name, all) });
    }
    (res, unresolved)
}

/// All of an entry's mistakes as one failure: the first gives its kind and its help.
fn summary<'a>(
    name: &str,
    mistakes: impl Iterator<Item = (ErrorKind, &'a str, Option<&'a str>)>,
) -> HostError {
    let mistakes: Vec<_> = mistakes.collect();
    let Some((kind, _, help)) = mistakes.first() else {
        return HostError::new(ErrorKind::McpConfig, format!("server '{name}': its entry cannot be used"));
    };
    let messages: Vec<&str> = mistakes.iter().map(|it| it.1).collect();
    let message = format!("server '{name}': {}", messages.join("; "));
    HostError { kind: *kind, message, help: help.map(str::to_owned) }
}
