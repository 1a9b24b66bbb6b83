//! The state of all followed files: new content of files becomes a configuration and events. Does no I/O and reads no
//! clock.
//!
//! Each file keeps its last usable content. It remains in effect while the file is refused: while it cannot be read, or
//! has an error that concerns the whole file (DM-121; in HoloDeck files every error does). It also remains in effect
//! until the file has been empty for the settle time, because an editor may truncate a file before it writes it. A file
//! of Dominds that does not exist is an empty configuration (DM-094). Another file that disappears is refused.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use mcp_host_config::{Profile, detect};
use mcp_host_model::{Dialect, ErrorKind};
use mcp_host_registry::Problem;
use tokio::time::Instant;

use super::event::{FilePresence, RefusedFile, ReloadedFile, ShadowedServer};
use super::lock::{FollowLock, FollowedLock, LockSnapshot, LockUpdate};
use super::merge::{UsableConfig, merge};
use super::request::FileProfile;
use super::snapshot::{FileContent, FileSnapshot, SourceContents};
use crate::config::desired::DesiredServers;
use crate::config::load::{LoadError, LoadRequest, LoadedConfig};
use crate::error::HostError;

/// The followed files.
pub(crate) struct FollowedFiles {
    files: Vec<FollowedFile>,
    /// The time for which a file must be empty or missing before its servers are removed.
    settle: Duration,
    /// The entries that are hidden by an entry of the same name in an earlier file.
    shadowed: Vec<ShadowedServer>,
    /// The followed lock file.
    lock: Option<FollowedLock>,
}

/// The files to read, with the content that was last processed.
pub(crate) struct ReadRequest {
    /// The configuration files.
    pub(crate) files: Vec<(LoadRequest, Option<SourceContents>)>,
    /// The lock file.
    pub(crate) lock: Option<(PathBuf, Option<FileContent>)>,
}

/// One followed file.
struct FollowedFile {
    request: LoadRequest,
    path: String,
    /// The content that was last processed, usable or not.
    seen: Option<SourceContents>,
    /// The profile by which the content was last read.
    last_profile: Option<Profile>,
    /// A removal that has not taken effect yet, because the content may come back.
    removal: Option<PendingRemoval>,
    /// The last usable content.
    usable: Option<UsableConfig>,
    /// The reason why the current content is not used.
    refusal: Option<HostError>,
}

/// A file whose content disappeared, before the removal takes effect.
#[derive(Debug, Clone, Copy)]
struct PendingRemoval {
    /// The first read without it.
    first: Instant,
    /// The start of the settle time. It starts again with each reported change, because the content may have been
    /// back in between.
    settle_from: Instant,
}

impl PendingRemoval {
    /// Returns the time at which the removal takes effect. The wait is limited, because changes of other files restart
    /// it too.
    fn end(self, settle: Duration) -> Instant {
        (self.settle_from + settle).min(self.first + settle * MAX_SETTLE_FACTOR)
    }
}

/// The maximum wait for a removal, in multiples of the settle time.
const MAX_SETTLE_FACTOR: u32 = 8;

/// Whether a change was reported since the last read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeHint {
    /// A change was reported.
    Reported,
    /// No change was reported. Without a watch, the file may still have changed.
    NotReported,
}

/// The result of a read.
#[derive(Debug, Default)]
pub(crate) struct FilesUpdate {
    /// The configuration to apply; `None` if it is unchanged.
    pub(crate) desired: Option<DesiredServers>,
    /// The files that changed and can be used.
    pub(crate) reloaded: Vec<ReloadedFile>,
    /// The files that cannot be used.
    pub(crate) refused: Vec<RefusedFile>,
    /// The time of the next read because of a pending removal.
    pub(crate) recheck_at: Option<Instant>,
}

/// The outcome of reading one file.
enum FileOutcome {
    /// Its content is unchanged.
    Unchanged,
    /// Its content has disappeared, but the removal does not take effect yet.
    RemovalPending,
    Reloaded(ReloadedFile),
    Refused(RefusedFile),
}

impl FollowedFiles {
    /// Creates the state of files that were not read yet, in order of precedence.
    pub(crate) fn new(requests: Vec<LoadRequest>, settle: Duration) -> FollowedFiles {
        let file = |request: LoadRequest| {
            let path = request.path.display().to_string();
            FollowedFile {
                request,
                path,
                seen: None,
                last_profile: None,
                removal: None,
                usable: None,
                refusal: None,
            }
        };
        FollowedFiles {
            files: requests.into_iter().map(file).collect(),
            settle,
            shadowed: Vec::new(),
            lock: None,
        }
    }

    /// Sets the lock file to follow.
    pub(crate) fn with_lock(self, lock: Option<FollowLock>) -> FollowedFiles {
        FollowedFiles { lock: lock.map(FollowedLock::new), ..self }
    }

    /// Returns the files to read.
    pub(crate) fn read_request(&self) -> ReadRequest {
        ReadRequest {
            files: self.files.iter().map(|it| (it.request.clone(), it.seen.clone())).collect(),
            lock: self.lock.as_ref().map(FollowedLock::request),
        }
    }

    /// Handles a read of the lock file. `snapshot` is `None` if it is unchanged.
    pub(crate) fn update_lock(&mut self, snapshot: Option<LockSnapshot>) -> LockUpdate {
        match (&mut self.lock, snapshot) {
            (Some(lock), Some(snapshot)) => lock.update(snapshot),
            (Some(_), None) | (None, _) => LockUpdate::default(),
        }
    }

    /// Handles a read of the files. `snapshots` has an element for each file, which is `None` if the file is unchanged.
    pub(crate) fn update(
        &mut self,
        snapshots: Vec<Option<FileSnapshot>>,
        hint: ChangeHint,
        now: Instant,
    ) -> FilesUpdate {
        let mut result = FilesUpdate::default();
        for (file, snapshot) in self.files.iter_mut().zip(snapshots) {
            if let (ChangeHint::Reported, Some(removal)) = (hint, &mut file.removal) {
                removal.settle_from = now;
            }
            match file.update(snapshot, now, self.settle) {
                FileOutcome::Unchanged | FileOutcome::RemovalPending => {}
                FileOutcome::Reloaded(reloaded) => result.reloaded.push(reloaded),
                FileOutcome::Refused(refused) => result.refused.push(refused),
            }
        }
        result.recheck_at = self.files.iter().filter_map(|it| it.removal).map(|it| it.end(self.settle)).min();
        if !result.reloaded.is_empty() {
            let usable = self.files.iter().filter_map(|it| Some((it.path.as_str(), it.usable.as_ref()?)));
            let (desired, shadowed) = merge(usable);
            self.shadowed = shadowed;
            result.desired = Some(desired);
        }
        result
    }

    /// Returns the configuration in use; `None` if no file could be used.
    pub(crate) fn desired(&self) -> Option<DesiredServers> {
        let mut usable =
            self.files.iter().filter_map(|it| Some((it.path.as_str(), it.usable.as_ref()?))).peekable();
        usable.peek().is_some().then(|| merge(usable).0)
    }

    /// Returns the files that could be read.
    pub(crate) fn profiles(&self) -> Vec<FileProfile> {
        let profile =
            |it: &FollowedFile| Some(FileProfile { path: it.path.clone(), profile: it.last_profile? });
        self.files.iter().filter_map(profile).collect()
    }

    /// Returns the entries that are hidden by an entry of the same name in an earlier file.
    pub(crate) fn shadowed(&self) -> &[ShadowedServer] {
        &self.shadowed
    }

    /// Returns the problems of the files. `read_error` is the reason why they cannot be read now.
    pub(crate) fn problems(&self, read_error: Option<&str>) -> Vec<Problem> {
        let refused = self.files.iter().filter_map(|it| Some(it.refusal.as_ref()?.message.clone()));
        let unread = read_error.map(|why| {
            let paths: Vec<&str> = self.files.iter().map(|it| it.path.as_str()).collect();
            format!("{} cannot be read now: {why}; the previous content remains in effect", paths.join(", "))
        });
        let lock = self.lock.as_ref().and_then(FollowedLock::refusal).map(|it| it.message.clone());
        let messages: Vec<String> = refused.chain(lock).chain(unread).collect();
        let error = (!messages.is_empty()).then(|| Problem::workspace_config_error(messages.join("; ")));
        error.into_iter().chain(self.shadowing_problems()).collect()
    }

    /// Returns a warning for each server with hidden entries.
    fn shadowing_problems(&self) -> impl Iterator<Item = Problem> {
        let mut servers: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for it in &self.shadowed {
            servers.entry(&it.server).or_default().push(it.to_string());
        }
        servers.into_iter().map(|(server, messages)| Problem::server_shadowed(server, messages.join("; ")))
    }
}

impl FollowedFile {
    /// Handles a read of this file. Delays a removal until the content has been missing for `settle`.
    fn update(&mut self, snapshot: Option<FileSnapshot>, now: Instant, settle: Duration) -> FileOutcome {
        let changed = snapshot.filter(|it| self.seen.as_ref() != Some(&it.sources));
        let Some(FileSnapshot { sources, outcome }) = changed else {
            // Content that had disappeared is back.
            self.removal = None;
            return FileOutcome::Unchanged;
        };
        if self.seen.as_ref().is_some_and(|seen| has_lost_content(seen, &sources)) {
            let removal = *self.removal.get_or_insert(PendingRemoval { first: now, settle_from: now });
            if now < removal.end(settle) {
                return FileOutcome::RemovalPending;
            }
        }
        self.removal = None;
        self.seen = Some(sources);
        self.last_profile = outcome.as_ref().map_or(self.last_profile, |it| Some(it.profile));
        match outcome {
            Ok(loaded) if loaded.refused => self.refuse(loaded.refusal(), loaded.diagnostics),
            Ok(loaded) => self.accept(loaded),
            Err(LoadError::File { source, .. }) if source.is_absent() && self.can_be_absent() => {
                self.usable = Some(UsableConfig::default());
                self.refusal = None;
                FileOutcome::Reloaded(ReloadedFile::new(self.path.clone(), FilePresence::Absent))
            }
            Err(LoadError::File { source, .. }) if source.is_absent() && self.has_servers() => {
                self.refuse(format!("{} does not exist any more", self.path), Vec::new())
            }
            Err(error) => self.refuse(with_cause(&error), Vec::new()),
        }
    }

    /// Uses the content of the file.
    fn accept(&mut self, loaded: LoadedConfig) -> FileOutcome {
        let LoadedConfig { path, text: _, profile: _, reading, diagnostics, refused: _, desired } = loaded;
        let names = reading.entries.into_iter().map(|it| it.name).collect();
        self.usable = Some(UsableConfig { names, desired });
        self.refusal = None;
        FileOutcome::Reloaded(ReloadedFile { path, presence: FilePresence::Present, diagnostics })
    }

    /// Refuses the content of the file, and keeps the previous one.
    fn refuse(&mut self, why: String, diagnostics: Vec<mcp_host_config::Diagnostic>) -> FileOutcome {
        let consequence = if self.usable.is_some() { "; its previous content remains in effect" } else { "" };
        let failure = HostError::new(ErrorKind::Config, format!("{why}{consequence}"));
        self.refusal = Some(failure.clone());
        FileOutcome::Refused(RefusedFile { path: self.path.clone(), error: failure, diagnostics })
    }

    /// Returns whether a missing file counts as empty: always one of Dominds, and one of an editor until it has
    /// servers. A HoloDeck agent requires its `agent.yaml`.
    fn can_be_absent(&self) -> bool {
        let LoadRequest { dialect, profile, .. } = &self.request;
        let known = profile.or(self.last_profile).map(Profile::dialect).or(*dialect);
        match known.or_else(|| detect(&self.path, "")) {
            Some(Dialect::Dominds) => true,
            Some(Dialect::McpJson) => !self.has_servers(),
            Some(Dialect::HoloDeck | Dialect::Acp) | None => false,
        }
    }

    /// Returns whether the last usable content has servers.
    fn has_servers(&self) -> bool {
        self.usable.as_ref().is_some_and(|usable| !usable.names.is_empty())
    }
}

/// Returns whether a file that had content is now empty or missing.
fn has_lost_content(before: &SourceContents, now: &SourceContents) -> bool {
    let had_content = |path| before.get(path).is_some_and(|it| !it.is_empty());
    now.iter().any(|(path, content)| content.is_empty() && had_content(path))
}

/// Returns the message of an error with its cause.
fn with_cause(error: &LoadError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests;
