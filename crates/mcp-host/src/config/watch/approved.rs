//! A lock that is followed: looks in, what is approved from now on out. Nothing here waits, but for the look itself.
//!
//! What was approved stays until another lock says otherwise: one that is gone or cannot be read shows nothing that was not
//! shown before.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use mcp_model::ErrorKind;
use mcp_registry::{DriftPolicy, LockFile};

use super::event::{FollowEvent, RefusedFile};
use super::look::Content;
use crate::config::approval::Approval;
use crate::config::load::{lock_text, parse_lock};
use crate::failure::HostError;

/// A lock to follow beside the files that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowLock {
    /// The file. It need not be there: from when it is there on it counts.
    pub path: PathBuf,
    /// How strictly it is kept.
    pub policy: DriftPolicy,
}

/// The lock as it was judged last.
pub(super) struct Locked {
    request: FollowLock,
    seen: Option<Content>,
    /// One that could be used was there.
    counts: bool,
    /// Why it is not used as it is.
    refusal: Option<HostError>,
}

/// What a look at a lock showed.
pub(super) struct LockLook {
    content: Content,
    lock: Result<Option<LockFile>, String>,
}

/// What a look led to.
#[derive(Default)]
pub(super) struct LockNews {
    /// What is approved from now on, where that is something else.
    pub(super) approval: Option<Approval>,
    /// What happened.
    pub(super) event: Option<FollowEvent>,
}

/// Looks at a lock; `None` where it is as it was seen. Blocks.
pub(super) fn look_at_lock(path: &Path, seen: Option<&Content>) -> Option<LockLook> {
    let text = lock_text(path);
    let content = match &text {
        Ok(None) => Content::Absent,
        Ok(Some(text)) => Content::Text(blake3::hash(text.as_bytes())),
        Err(error) => Content::Unreadable(error.to_string()),
    };
    if seen == Some(&content) {
        return None;
    }
    let lock = text.and_then(|it| it.map(|it| parse_lock(path, &it)).transpose());
    Some(LockLook { content, lock: lock.map_err(|it| it.to_string()) })
}

impl Locked {
    /// A lock that was not looked at yet.
    pub(super) fn new(request: FollowLock) -> Locked {
        Locked { request, seen: None, counts: false, refusal: None }
    }

    /// Where it is, and what was seen there last.
    pub(super) fn request(&self) -> (PathBuf, Option<Content>) {
        (self.request.path.clone(), self.seen.clone())
    }

    /// Why it is not used as it is.
    pub(super) fn refusal(&self) -> Option<&HostError> {
        self.refusal.as_ref()
    }

    /// Takes a look.
    pub(super) fn judge(&mut self, look: LockLook) -> LockNews {
        let LockLook { content, lock } = look;
        self.seen = Some(content);
        let path = self.request.path.display().to_string();
        match lock {
            Ok(Some(lock)) => {
                (self.counts, self.refusal) = (true, None);
                let approval = Approval { lock: Arc::new(lock), policy: self.request.policy };
                LockNews { approval: Some(approval), event: Some(FollowEvent::Approved(path)) }
            }
            // Nobody has approved of anything yet, or what could not be used is gone.
            Ok(None) if !self.counts => {
                self.refusal = None;
                LockNews::default()
            }
            Ok(None) => self.refuse(path.clone(), format!("{path} is gone")),
            Err(why) => self.refuse(path, why),
        }
    }

    fn refuse(&mut self, path: String, why: String) -> LockNews {
        let failure = HostError::new(ErrorKind::Config, format!("{why}; what was approved before stays so"));
        self.refusal = Some(failure.clone());
        let refused = RefusedFile { path, error: failure, diagnostics: Vec::new() };
        LockNews { approval: None, event: Some(FollowEvent::Refused(refused)) }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Writes each of these, `-` for no file, and tells what following them comes to.
    #[track_caller]
    fn check(texts: &[&str], want: &[&str]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mcp.lock");
        let mut locked = Locked::new(FollowLock { path: path.clone(), policy: DriftPolicy::default() });
        let mut got = Vec::new();
        for text in texts {
            match *text {
                "-" => drop(fs::remove_file(&path)),
                "lock" => fs::write(&path, LockFile::default().to_text()).unwrap(),
                text => fs::write(&path, text).unwrap(),
            }
            let (path, seen) = locked.request();
            let news = look_at_lock(&path, seen.as_ref()).map(|it| locked.judge(it));
            let news = news.map(|it| match it {
                LockNews { approval: Some(_), event: Some(FollowEvent::Approved(_)) } => {
                    "approved".to_owned()
                }
                LockNews { approval: None, event: Some(FollowEvent::Refused(file)) } => {
                    let failure = file.error.message.replace(&path.display().to_string(), "F");
                    assert_eq!(locked.refusal().map(|it| &it.message), Some(&file.error.message));
                    failure
                }
                LockNews { approval: None, event: None } => "nothing".to_owned(),
                LockNews { .. } => panic!("news that nobody is told of"),
            });
            assert!(news.as_deref() != Some("approved") || locked.refusal().is_none());
            got.push(news.unwrap_or_else(|| "same".to_owned()));
        }
        assert_eq!(got, want);
    }

    #[test]
    fn what_was_approved_stays_until_another_lock_says_otherwise() {
        let gone = "F is gone; what was approved before stays so";
        let wrong = "F: line 1, column 2: missing field `format`; what was approved before stays so";
        check(
            &["-", "-", "lock", "lock", "-", "-", "lock"],
            &["nothing", "same", "approved", "same", gone, "same", "approved"],
        );
        check(&["lock", "{}", "{}", "lock"], &["approved", wrong, "same", "approved"]);
        // What could never be used is no loss.
        check(&["-", "{}", "-", "lock"], &["nothing", wrong, "nothing", "approved"]);
    }
}
