//! What whoever follows files is told.

use std::fmt;

use mcp_config::Diagnostic;
use mcp_registry::ReloadPlan;

use crate::failure::HostError;

/// Something that happened to the files that are followed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum FollowEvent {
    /// Other content was taken, and is published.
    Reloaded(Reload),
    /// The lock at this path says what is approved from now on, and that is published.
    Approved(String),
    /// A file, or the lock, cannot be used as it is now (DM-121, HD-134). What it said before stays.
    Refused(RefusedFile),
    /// Changes are noticed in another way than until now.
    WatchModeChanged(WatchMode),
    /// So many events were not fetched in time and are gone.
    Lagged(u64),
}

/// What a reload brought.
#[derive(Debug, Clone)]
pub struct Reload {
    /// The files whose content is another one, in their order.
    pub files: Vec<ReloadedFile>,
    /// What becomes of each server. One whose entry is wrong now, and that goes on as it was, is among the unchanged.
    pub plan: ReloadPlan,
    /// Entries that do not count because an earlier file has one of that name.
    pub shadowed: Vec<ShadowedServer>,
}

/// A file whose content was taken.
#[derive(Debug, Clone)]
pub struct ReloadedFile {
    /// Its name as it was asked for.
    pub path: String,
    /// Whether it is there.
    pub presence: FilePresence,
    /// What is to be said about it, in its order; errors are of single servers.
    pub diagnostics: Vec<Diagnostic>,
}

/// Whether a file is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilePresence {
    /// It is.
    Present,
    /// It is not, which means what an empty one would (DM-094).
    Absent,
}

/// A file that is not used as it is now.
#[derive(Debug, Clone)]
pub struct RefusedFile {
    /// Its name as it was asked for.
    pub path: String,
    /// Why not, in one sentence.
    pub error: HostError,
    /// Everything that is to be said about it; empty where it could not be read.
    pub diagnostics: Vec<Diagnostic>,
}

/// An entry that does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShadowedServer {
    /// The server's name.
    pub server: String,
    /// The file whose entry does not count.
    pub file: String,
    /// The earlier file whose entry counts.
    pub by: String,
}

impl fmt::Display for ShadowedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShadowedServer { server, file, by } = self;
        write!(f, "server '{server}' of {file} is shadowed by that of {by}, which stands before it")
    }
}

/// How changes are noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchMode {
    /// The system tells of them; besides, the files are looked at now and then.
    System,
    /// Only by looking at the files now and then, for this reason; `None` where the feature `watch` is switched off.
    PollOnly(Option<String>),
}
