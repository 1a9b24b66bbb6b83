//! Loading of configuration files: a path becomes resolved servers. All files and variables that a configuration needs
//! are read here; mcp-config interprets them.

mod environment;
mod files;
mod lock_file;
mod save;

use std::fmt;
use std::path::{Component, Path, PathBuf};

use mcp_host_config::{
    DetectedReading, Diagnostic, Document, Profile, Reading, ResolveContext, ResolveError, ResolveErrors,
    ResolvedServer, SecretAccess, UnsupportedFormat, detect, detect_unsupported_format,
    parse_editor_env_file, read, read_detecting, resolve,
};
use mcp_host_model::{Dialect, ErrorKind, Secret, ServerSpec, Severity};

use crate::config::desired::{DesiredServers, FailedServer};
use crate::error::HostError;
use crate::state::approved_servers::ApprovedServers;
use crate::state::secrets::SecretSources;
pub(crate) use files::read_regular_file;
use files::read_text;
pub use files::{FileError, Utf16};
pub use lock_file::{LoadedLock, LockFileError, lock_path, read_lock};
pub(crate) use lock_file::{parse_lock, read_lock_text};
pub use save::{SaveError, create_like, create_private, replace_private, save};

/// A configuration file to load.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadRequest {
    /// The file.
    pub path: PathBuf,
    /// The text of the configuration, instead of that of the file; `path` is then its name in messages. It may contain
    /// secrets. A [follower](crate::host::Host::follow) does not support it.
    pub text: Option<Secret>,
    /// The dialect; detected if `None`.
    pub dialect: Option<Dialect>,
    /// The profile; detected if `None` (see [`read_detecting`](mcp_host_config::read_detecting())).
    pub profile: Option<Profile>,
    /// A `.env` file for variables that the process environment does not have.
    pub env_file: Option<PathBuf>,
    /// Whether a host starts the servers of the file only after the user approved them
    /// ([`HostOptions::approvals`](crate::host::options::HostOptions::approvals)): the file belongs to a
    /// project, and the user did not name it.
    pub needs_approval: bool,
    /// The file of the approvals. A [follower](crate::host::Host::follow) applies the configuration again when it
    /// changes.
    pub approvals: Option<PathBuf>,
    /// The user's secrets; without them none is stored. A server that needs an approval receives those that it names
    /// once it has one.
    pub secrets: Option<SecretSources>,
    /// The maximum number of servers of the file; [`Document::DEFAULT_MAX_SERVERS`] unless set.
    pub max_servers: usize,
}

impl LoadRequest {
    /// Creates a request whose dialect and profile are detected.
    pub fn new(path: impl Into<PathBuf>) -> LoadRequest {
        LoadRequest {
            path: path.into(),
            text: None,
            dialect: None,
            profile: None,
            env_file: None,
            needs_approval: false,
            approvals: None,
            secrets: None,
            max_servers: Document::DEFAULT_MAX_SERVERS,
        }
    }
}

/// A loaded configuration file.
#[derive(Clone)]
#[non_exhaustive]
pub struct LoadedConfig {
    /// The path as requested.
    pub path: String,
    /// The text.
    pub text: String,
    /// The profile.
    pub profile: Profile,
    /// The parsed content.
    pub reading: Reading,
    /// All diagnostics in the order of the file, including unresolved variables.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether the file is refused: none of its servers may be started. Check it before using `desired`.
    pub refused: bool,
    /// The servers for a [`Host`](crate::host::Host).
    ///
    /// Empty if the file is `refused`. Do not apply it then, because that stops every server; the host keeps the last
    /// valid configuration.
    pub desired: DesiredServers,
}

impl LoadedConfig {
    /// Returns the servers for a [`Host`](crate::host::Host); an error if the file is refused.
    pub fn into_desired(self) -> Result<DesiredServers, HostError> {
        match self.refused {
            true => Err(HostError::new(ErrorKind::Config, self.refusal())),
            false => Ok(self.desired),
        }
    }

    /// Returns the reason for a refused file, with the first error.
    pub(crate) fn refusal(&self) -> String {
        let errors: Vec<_> = self.diagnostics.iter().filter(|it| it.severity == Severity::Error).collect();
        let first =
            errors.first().map(|it| format!(": line {}: {}", it.line, it.message)).unwrap_or_default();
        let noun = if errors.len() == 1 { "error" } else { "errors" };
        format!("{} has {} {noun} and is not used{first}", self.path, errors.len())
    }
}

impl fmt::Debug for LoadedConfig {
    /// Omits the text, which may contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LoadedConfig { path, text, profile, reading, diagnostics, refused, desired } = self;
        f.debug_struct("LoadedConfig")
            .field("path", path)
            .field("text", &format_args!("{} bytes", text.len()))
            .field("profile", profile)
            .field("reading", reading)
            .field("diagnostics", diagnostics)
            .field("refused", refused)
            .field("desired", desired)
            .finish()
    }
}

/// The error of a file that could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The configuration file.
    #[error("cannot read {path}")]
    File {
        /// The file.
        path: String,
        /// The cause.
        #[source]
        source: FileError,
    },
    /// The `.env` file.
    #[error("cannot read the environment file {path}")]
    EnvFile {
        /// The file.
        path: String,
        /// The cause.
        #[source]
        source: FileError,
    },
    /// The dialect cannot be detected from name and content.
    #[error(
        "{path}: no MCP configuration is recognised: it is named neither agent.yaml (HoloDeck) nor .minds/mcp.yaml \
         (Dominds) nor mcp.json (editors), and holds neither HoloDeck's `tools` nor Dominds' `version` and `servers`, \
         nor an object `mcpServers` or `servers` in JSON, nor the `mcpServers` of an ACP session; name the dialect"
    )]
    UnknownDialect {
        /// The file.
        path: String,
    },
    /// The file is empty, and its name determines no dialect.
    #[error("{path} is empty, and its name does not determine the dialect")]
    Empty {
        /// The file.
        path: String,
    },
    /// The format of the file is known but not supported.
    #[error("{path}: this is {}, which is not read yet", .format.name)]
    UnsupportedFormat {
        /// The file.
        path: String,
        /// The format.
        format: UnsupportedFormat,
    },
    /// The profile belongs to another dialect.
    #[error("the profile {} is not one of the dialect {}", .profile.as_str(), .dialect.as_str())]
    ProfileMismatch {
        /// The profile.
        profile: Profile,
        /// The dialect.
        dialect: Dialect,
    },
}

impl LoadError {
    /// Returns the kind of error.
    pub fn kind(&self) -> ErrorKind {
        ErrorKind::Config
    }
}

/// Reads a file and resolves its servers. Blocks. The files of the request may be streams of this process, such as
/// `/dev/stdin`; all others must be regular files.
pub fn load(request: &LoadRequest) -> Result<LoadedConfig, LoadError> {
    load_with(request, &|file| {
        let is_requested = file == request.path || request.env_file.as_deref() == Some(file);
        if is_requested { read_text(file) } else { read_regular_file(file) }
    })
}

/// Loads a file like [`load`], with a function that reads files: the configuration first, then those it refers to.
pub(crate) fn load_with(
    request: &LoadRequest,
    read_text: &dyn Fn(&Path) -> Result<String, FileError>,
) -> Result<LoadedConfig, LoadError> {
    let LoadRequest {
        path,
        text,
        dialect,
        profile,
        env_file,
        needs_approval,
        approvals,
        secrets,
        max_servers,
    } = request;
    let path_text = path.display().to_string();
    let text = match text {
        Some(text) => text.expose().to_owned(),
        None => read_text(path).map_err(|source| LoadError::File { path: path_text.clone(), source })?,
    };
    let variables = match env_file {
        None => Vec::new(),
        Some(file) => {
            let failed = |source| LoadError::EnvFile { path: file.display().to_string(), source };
            parse_editor_env_file(&read_text(file).map_err(failed)?)
        }
    };
    let (profile, reading) = match (*dialect, *profile) {
        (Some(dialect), Some(profile)) if profile.dialect() != dialect => {
            return Err(LoadError::ProfileMismatch { profile, dialect });
        }
        (_, Some(profile)) => {
            let mut document = Document::new(&path_text, &text, profile);
            document.max_servers = *max_servers;
            (profile, read(&document))
        }
        (dialect, None) => {
            let dialect = dialect.map_or_else(|| detect_dialect(&path_text, &text), Ok)?;
            let DetectedReading { profile, reading, .. } =
                read_detecting(dialect, &path_text, &text, *max_servers);
            (profile, reading)
        }
    };
    let variable = |name: &str| environment::variable(&variables, name);
    let names = || environment::variable_names(&variables);
    let read_file = |file: &Path| read_text(file).map_err(|it| it.to_string());
    let directory = directory(path);
    let mut context = ResolveContext::new(&variable, &directory, &read_file);
    context.names = &names;
    if let Some(secrets) = secrets {
        context.secrets = SecretAccess::Granted(secrets);
    }
    let (desired, unresolved) = if *needs_approval {
        let approved = approvals.as_ref().map(ApprovedServers::new);
        resolve_servers(&reading, |spec| resolve_if_approved(spec, &context, approved.as_ref()))
    } else {
        resolve_servers(&reading, |spec| resolve(spec, &context))
    };
    if let Some(approvals) = approvals.as_ref().filter(|_| *needs_approval) {
        // Only its content as a source of the configuration matters: each start reads the approvals itself.
        let _ = read_text(approvals);
    }

    let mut diagnostics = reading.diagnostics.clone();
    diagnostics.extend(unresolved.iter().map(|it| reading.diagnose(it)));
    diagnostics.sort_by_key(|it| it.span.start);
    let refused = reading.refused || (!unresolved.is_empty() && refuses_file(profile));
    let desired = if refused { DesiredServers::default() } else { desired };
    Ok(LoadedConfig { path: path_text, text, profile, reading, diagnostics, refused, desired })
}

fn detect_dialect(path: &str, text: &str) -> Result<Dialect, LoadError> {
    detect(path, text).ok_or_else(|| match detect_unsupported_format(path, text) {
        Some(format) => LoadError::UnsupportedFormat { path: path.to_owned(), format },
        None if text.trim().is_empty() => LoadError::Empty { path: path.to_owned() },
        None => LoadError::UnknownDialect { path: path.to_owned() },
    })
}

/// Returns whether an unresolved variable refuses the whole file (HD-134) or only its server (DM-122).
fn refuses_file(profile: Profile) -> bool {
    match profile.dialect() {
        Dialect::HoloDeck => true,
        Dialect::Dominds | Dialect::Acp | Dialect::McpJson => false,
    }
}

/// Returns the base folder for relative paths of the file. A stream, such as standard input, has the current folder.
fn directory(path: &Path) -> PathBuf {
    if path.starts_with("/dev") || path.starts_with("/proc") {
        return std::env::current_dir().unwrap_or_default();
    }
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let folder = absolute.parent().map(Path::to_owned).unwrap_or_default();
    // Without `..`, the folder and its parents have names.
    if folder.components().any(|it| it == Component::ParentDir) {
        return folder.canonicalize().unwrap_or(folder);
    }
    folder
}

/// Resolves a server that needs an approval. Without one it receives no secret of the user.
fn resolve_if_approved(
    spec: &ServerSpec,
    context: &ResolveContext<'_>,
    approved: Option<&ApprovedServers>,
) -> Result<ResolvedServer, ResolveErrors> {
    let mut withheld = *context;
    withheld.secrets = SecretAccess::Withheld;
    let mut server = resolve(spec, &withheld)?;
    if server.secrets.are_withheld && is_approved(&server, approved) {
        server = resolve(spec, context)?;
    }
    server.needs_approval = true;
    Ok(server)
}

fn is_approved(server: &ResolvedServer, approved: Option<&ApprovedServers>) -> bool {
    approved.is_some_and(|it| it.pending([server]).is_ok_and(|pending| pending.is_empty()))
}

/// Resolves all accepted servers. Returns these with the failed entries, and the errors of unresolved variables.
fn resolve_servers(
    reading: &Reading,
    resolve: impl Fn(&ServerSpec) -> Result<ResolvedServer, ResolveErrors>,
) -> (DesiredServers, Vec<ResolveError>) {
    let mut desired = DesiredServers::default();
    let mut unresolved = Vec::new();
    for spec in &reading.servers {
        match resolve(spec) {
            Ok(server) => desired.servers.push(server),
            Err(errors) => {
                let all = errors.iter().map(|error| EntryError {
                    kind: error.kind,
                    message: &error.message,
                    help: error.help.as_deref(),
                });
                desired.failed.push(FailedServer {
                    id: spec.id.clone().into(),
                    error: summarize_errors(spec.id.as_str(), all),
                });
                unresolved.extend(errors);
            }
        }
    }
    for entry in reading.entries.iter().filter(|it| !it.accepted) {
        if entry.extension.is_some() {
            let detail = "its transport is an extension that this host does not support";
            let error = HostError::of_server(ErrorKind::McpConfig, &entry.name, detail);
            desired.failed.push(FailedServer { id: entry.name.as_str().into(), error });
            continue;
        }
        let is_error_of_entry = |it: &&Diagnostic| {
            it.severity == Severity::Error && it.server.as_deref() == Some(entry.name.as_str())
        };
        let all = reading.diagnostics.iter().filter(is_error_of_entry);
        let all = all.map(|diagnostic| EntryError {
            kind: diagnostic.kind,
            message: &diagnostic.message,
            help: diagnostic.help.as_deref(),
        });
        let error = summarize_errors(&entry.name, all);
        desired.failed.push(FailedServer { id: entry.name.as_str().into(), error });
    }
    (desired, unresolved)
}

/// One error of an entry.
struct EntryError<'a> {
    kind: ErrorKind,
    message: &'a str,
    help: Option<&'a str>,
}

/// Combines all errors of an entry into one, with the kind and help of the first.
fn summarize_errors<'a>(name: &str, errors: impl Iterator<Item = EntryError<'a>>) -> HostError {
    let errors: Vec<_> = errors.collect();
    let Some(EntryError { kind, help, .. }) = errors.first() else {
        return HostError::of_server(ErrorKind::McpConfig, name, "its entry cannot be used");
    };
    let messages: Vec<&str> = errors.iter().map(|error| error.message).collect();
    let help = help.map(str::to_owned);
    HostError { help, ..HostError::of_server(*kind, name, messages.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rpt_083_streams_and_parent_folders_have_a_base_folder() {
        let current = std::env::current_dir().unwrap();
        assert_eq!(directory(Path::new("/dev/stdin")), current);
        assert_eq!(directory(Path::new("/proc/self/fd/0")), current);
        assert_eq!(directory(Path::new("mcp.json")), current);
        let parent = current.parent().unwrap();
        assert_eq!(directory(Path::new("../mcp.json")), parent);
        assert_eq!(directory(Path::new("../no-such-folder/mcp.json")), current.join("../no-such-folder"));
    }
}
