//! The state of a followed lock file: new content becomes an approval. Only `read_lock_file` does I/O.
//!
//! An approval remains in effect until a new lock file is read. A missing or unreadable lock file approves nothing
//! more.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcp_host_model::ErrorKind;
use mcp_host_registry::{DriftPolicy, LockFile};

use super::event::{FollowEvent, RefusedFile};
use super::snapshot::FileContent;
use crate::config::approval::Approval;
use crate::config::load::{parse_lock, read_lock_text};
use crate::error::HostError;

/// A lock file to follow.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FollowLock {
    /// The file. It may be missing; its approvals apply from when it is created.
    pub path: PathBuf,
    /// The policy for drift.
    pub policy: DriftPolicy,
}

impl FollowLock {
    /// Creates a lock file to follow, with the policy for drift.
    pub fn new(path: impl Into<PathBuf>, policy: DriftPolicy) -> FollowLock {
        FollowLock { path: path.into(), policy }
    }
}

/// The state of the lock file.
pub(super) struct FollowedLock {
    request: FollowLock,
    /// The content that was last processed; `None` before the first read.
    content: Option<FileContent>,
    /// Whether a valid lock file was ever read.
    was_read: bool,
    /// The reason why the current content is not used.
    refusal: Option<HostError>,
}

/// A lock file as it was read at one time.
pub(super) struct LockSnapshot {
    content: FileContent,
    /// The parsed file; `None` if it does not exist. The error is a message.
    lock: Result<Option<LockFile>, String>,
}

/// The effects of new content.
#[derive(Default)]
pub(super) struct LockUpdate {
    /// The new approval.
    pub(super) approval: Option<Approval>,
    /// The event.
    pub(super) event: Option<FollowEvent>,
}

/// Reads a lock file; `None` if it is unchanged. Blocks.
pub(super) fn read_lock_file(path: &Path, seen: Option<&FileContent>) -> Option<LockSnapshot> {
    let text = read_lock_text(path);
    let content = match &text {
        Ok(None) => FileContent::Absent,
        Ok(Some(text)) => FileContent::Text(blake3::hash(text.as_bytes())),
        Err(error) => FileContent::Unreadable(error.to_string()),
    };
    if seen == Some(&content) {
        return None;
    }
    let lock = text.and_then(|it| it.map(|it| parse_lock(path, &it)).transpose());
    Some(LockSnapshot { content, lock: lock.map_err(|it| it.to_string()) })
}

impl FollowedLock {
    /// Creates a lock file that was not read yet.
    pub(super) fn new(request: FollowLock) -> FollowedLock {
        FollowedLock { request, content: None, was_read: false, refusal: None }
    }

    /// Returns the path and the content that was last processed.
    pub(super) fn request(&self) -> (PathBuf, Option<FileContent>) {
        (self.request.path.clone(), self.content.clone())
    }

    /// Returns the reason why the current content is not used.
    pub(super) fn refusal(&self) -> Option<&HostError> {
        self.refusal.as_ref()
    }

    /// Handles new content.
    pub(super) fn update(&mut self, snapshot: LockSnapshot) -> LockUpdate {
        let LockSnapshot { content, lock } = snapshot;
        self.content = Some(content);
        let path = self.request.path.display().to_string();
        match lock {
            Ok(Some(lock)) => {
                (self.was_read, self.refusal) = (true, None);
                let approval = Approval { lock: Arc::new(lock), policy: self.request.policy };
                LockUpdate { approval: Some(approval), event: Some(FollowEvent::Approved(path)) }
            }
            // Nothing was approved yet, or an unusable file was deleted.
            Ok(None) if !self.was_read => {
                self.refusal = None;
                LockUpdate::default()
            }
            Ok(None) => self.refuse(path.clone(), format!("{path} was deleted")),
            Err(why) => self.refuse(path, why),
        }
    }

    /// Refuses the content, and keeps the previous approval.
    fn refuse(&mut self, path: String, why: String) -> LockUpdate {
        let failure =
            HostError::new(ErrorKind::Config, format!("{why}; the previous approvals remain in effect"));
        self.refusal = Some(failure.clone());
        let refused = RefusedFile { path, error: failure, diagnostics: Vec::new() };
        LockUpdate { approval: None, event: Some(FollowEvent::Refused(refused)) }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Writes these contents (`-` for no file); expects the results of following them.
    #[track_caller]
    fn check(texts: &[&str], want: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.lock");
        let mut locked = FollowedLock::new(FollowLock { path: path.clone(), policy: DriftPolicy::default() });
        let mut got = Vec::new();
        for text in texts {
            match *text {
                "-" => drop(fs::remove_file(&path)),
                "lock" => fs::write(&path, LockFile::default().to_text()).unwrap(),
                text => fs::write(&path, text).unwrap(),
            }
            let (path, content) = locked.request();
            let news = read_lock_file(&path, content.as_ref()).map(|it| locked.update(it));
            let news = news.map(|it| match it {
                LockUpdate { approval: Some(_), event: Some(FollowEvent::Approved(_)) } => {
                    "approved".to_owned()
                }
                LockUpdate { approval: None, event: Some(FollowEvent::Refused(file)) } => {
                    let failure = file.error.message.replace(&path.display().to_string(), "F");
                    assert_eq!(locked.refusal().map(|it| &it.message), Some(&file.error.message));
                    failure
                }
                LockUpdate { approval: None, event: None } => "nothing".to_owned(),
                LockUpdate { .. } => panic!("an approval without an event"),
            });
            assert!(news.as_deref() != Some("approved") || locked.refusal().is_none());
            got.push(news.unwrap_or_else(|| "same".to_owned()));
        }
        assert_eq!(got, want);
    }

    #[test]
    fn approvals_remain_until_new_lock_file() {
        let gone = "F was deleted; the previous approvals remain in effect";
        let wrong = "F: line 1, column 2: missing field `format`; the previous approvals remain in effect";
        check(
            &["-", "-", "lock", "lock", "-", "-", "lock"],
            &["nothing", "same", "approved", "same", gone, "same", "approved"],
        );
        check(&["lock", "{}", "{}", "lock"], &["approved", wrong, "same", "approved"]);
        // An unusable file may disappear.
        check(&["-", "{}", "-", "lock"], &["nothing", wrong, "nothing", "approved"]);
    }
}
