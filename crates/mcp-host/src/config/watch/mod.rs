//! Follows configuration files: applies every saved change; a broken file changes nothing.
//!
//! A task receives changes from the operating system ([`watcher`]) and polls the files as well. Changes are
//! debounced ([`debounce`]); then the files are read ([`snapshot`]), checked and merged ([`files`], [`merge`]),
//! and applied. Decisions depend on the content only, never on modification times.

mod debounce;
mod event;
mod file_watch;
mod files;
mod lock;
mod merge;
mod snapshot;
mod task;
mod watch_plan;
mod watcher;

use std::sync::Arc;
use std::time::Duration;

use mcp_host_config::Profile;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::config::desired::ConfigUpdate;
use crate::config::load::LoadRequest;
use crate::notifications::stream::{NotificationRouter, NotificationStream, NotificationStreamItem};
use task::Follower;

pub use event::{FilePresence, FollowEvent, RefusedFile, Reload, ReloadedFile, ShadowedServer, WatchMode};
pub use file_watch::FileWatch;
pub use lock::FollowLock;

/// Which files to follow, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FollowRequest {
    /// The files in order of precedence: of entries with the same name the first one counts, and servers are ordered
    /// by file. A missing file is empty if its dialect is known from its name, as that of `mcp.json` and `.minds/mcp.yaml`, or from
    /// [`LoadRequest::dialect`]; another one is refused. Folders may be missing.
    pub files: Vec<LoadRequest>,
    /// The lock file whose approvals apply to their servers from when it exists, as by
    /// [`Host::set_approval`](crate::host::Host::set_approval). A lock file that cannot be used or was deleted
    /// changes nothing and is published as a problem.
    pub lock: Option<FollowLock>,
    /// How long files must be unchanged before they are read (DM-093); clamped to 100..=500 ms.
    pub debounce: Duration,
    /// The maximum delay of a read; at least `debounce`.
    pub max_delay: Duration,
    /// How long a file must be empty or missing before that takes effect.
    pub settle: Duration,
    /// The polling interval (DM-092); clamped to 100 ms..=1 h.
    pub poll_interval: Duration,
    /// How long a read may take. After a timeout the previous content remains in effect, a problem is published, and
    /// the next poll tries again.
    pub read_timeout: Duration,
}

impl FollowRequest {
    /// These files without a lock file: read 200 ms after the last change and at most 1 s after the first; 1 s until
    /// a removal takes effect; polled every 2 s; a read timeout of 10 s.
    pub fn new(files: Vec<LoadRequest>) -> FollowRequest {
        FollowRequest {
            files,
            lock: None,
            debounce: Duration::from_millis(200),
            max_delay: Duration::from_secs(1),
            settle: Duration::from_secs(1),
            poll_interval: Duration::from_secs(2),
            read_timeout: Duration::from_secs(10),
        }
    }
}

/// Followed files; dropping it stops following. Running servers continue, and the problems of the files are removed.
#[derive(Debug)]
pub struct FollowHandle {
    events: NotificationStream<FollowEvent>,
    profiles: Vec<FileProfile>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// A followed file that could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileProfile {
    /// The path.
    pub path: String,
    /// The profile that it was read by.
    pub profile: Profile,
}

impl FollowHandle {
    /// Starts following; returns when the first read is published or has timed out.
    pub(crate) async fn begin(request: FollowRequest, updates: mpsc::Sender<ConfigUpdate>) -> FollowHandle {
        let router = NotificationRouter::new();
        let events = router.subscribe();
        let (stop, stopped) = oneshot::channel();
        let (begun, first) = oneshot::channel();
        let follower = Follower::new(request, updates, router, watcher::system_watch());
        let task = tokio::spawn(follower.run(stopped, begun));
        // Fails only if the host has shut down.
        let profiles = first.await.unwrap_or_default();
        FollowHandle { events, profiles, stop, task }
    }

    /// The files that could be read at first.
    pub fn profiles(&self) -> &[FileProfile] {
        &self.profiles
    }

    /// The next event; `None` after the host has shut down. The first events report the first read. Cancel-safe.
    pub async fn next(&mut self) -> Option<FollowEvent> {
        Some(match self.events.next().await? {
            NotificationStreamItem::Notification(event) => Arc::unwrap_or_clone(event),
            NotificationStreamItem::Lagged(count) => FollowEvent::Lagged(count),
        })
    }

    /// Stops following and waits for its end. Running servers continue.
    pub async fn stop(self) {
        let FollowHandle { events: _, profiles: _, stop, task } = self;
        // Fails if the host has shut down already.
        let _ = stop.send(());
        if let Err(error) = task.await {
            tracing::error!(%error, "following files failed");
        }
    }
}
