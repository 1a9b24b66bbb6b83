//! Events of followed configuration files.

use std::fmt;

use mcp_host_config::Diagnostic;
use mcp_host_registry::ReloadPlan;

use crate::error::HostError;
use crate::notifications::stream::QueuedNotification;

/// An event of followed files.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum FollowEvent {
    /// Changed content was applied and published. New and changed servers still start:
    /// [`Host::wait_until_ready`](crate::Host::wait_until_ready) waits for them.
    Reloaded(Reload),
    /// The lock file at this path was applied and published.
    Approved(String),
    /// A file or the lock file cannot be used (DM-121, HD-134). Its previous content remains in effect.
    Refused(RefusedFile),
    /// The way in which changes are detected has changed.
    WatchModeChanged(WatchMode),
    /// The number of events lost because the receiver was slow.
    Lagged(u64),
}

impl QueuedNotification for FollowEvent {}

/// The result of a reload.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Reload {
    /// The changed files, in order.
    pub files: Vec<ReloadedFile>,
    /// The plan, by server. A server that keeps running because its entry is now invalid counts as unchanged.
    pub plan: ReloadPlan,
    /// The entries that are hidden by an entry of the same name in an earlier file.
    pub shadowed: Vec<ShadowedServer>,
}

/// A file whose content was applied.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ReloadedFile {
    /// The path as requested.
    pub path: String,
    /// Whether it exists.
    pub presence: FilePresence,
    /// Its diagnostics, in order; errors concern single servers.
    pub diagnostics: Vec<Diagnostic>,
}

impl ReloadedFile {
    /// Creates a file without diagnostics.
    pub fn new(path: impl Into<String>, presence: FilePresence) -> ReloadedFile {
        ReloadedFile { path: path.into(), presence, diagnostics: Vec::new() }
    }
}

/// Whether a file exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilePresence {
    /// It exists.
    Present,
    /// It does not exist, which has the meaning of an empty file (DM-094). A file of an editor that had servers is
    /// refused instead.
    Absent,
}

/// A file that cannot be used.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RefusedFile {
    /// The path as requested.
    pub path: String,
    /// The reason.
    pub error: HostError,
    /// Its diagnostics; empty if it could not be read.
    pub diagnostics: Vec<Diagnostic>,
}

impl RefusedFile {
    /// Creates a file without diagnostics.
    pub fn new(path: impl Into<String>, error: HostError) -> RefusedFile {
        RefusedFile { path: path.into(), error, diagnostics: Vec::new() }
    }
}

/// An entry that is hidden by an entry of the same name in an earlier file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShadowedServer {
    /// The server's name.
    pub server: String,
    /// The file of the hidden entry.
    pub file: String,
    /// The earlier file whose entry counts.
    pub by: String,
}

impl ShadowedServer {
    /// Creates a server of `file`, hidden by that of the same name in the file `by`.
    pub fn new(server: impl Into<String>, file: impl Into<String>, by: impl Into<String>) -> ShadowedServer {
        ShadowedServer { server: server.into(), file: file.into(), by: by.into() }
    }
}

impl fmt::Display for ShadowedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShadowedServer { server, file, by } = self;
        write!(f, "server '{server}' of {file} is shadowed by that of {by}, which takes precedence")
    }
}

/// The way in which changes are detected.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WatchMode {
    /// Notifications of the operating system, and polling.
    System,
    /// Only polling, for this reason; `None` without the feature `watch`.
    PollOnly(Option<String>),
}
