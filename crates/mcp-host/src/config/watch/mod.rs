//! Following of configuration files: each saved change is applied, and a broken file changes nothing.
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
mod reload_trigger;
mod request;
mod snapshot;
mod task;
mod watch_plan;
mod watcher;

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::config::desired::ConfigUpdate;
use crate::notifications::stream::{NotificationRouter, NotificationStream, NotificationStreamItem};
use task::Follower;

pub use event::{FilePresence, FollowEvent, RefusedFile, Reload, ReloadedFile, ShadowedServer, WatchMode};
pub use file_watch::FileWatch;
pub use lock::FollowLock;
pub use reload_trigger::ReloadTrigger;
pub use request::{FileProfile, FollowRequest};

/// A handle of followed files. Dropping it stops following: running servers continue, and the problems of the files are
/// withdrawn.
#[derive(Debug)]
pub struct FollowHandle {
    events: NotificationStream<FollowEvent>,
    profiles: Vec<FileProfile>,
    stop: oneshot::Sender<()>,
    reload: ReloadTrigger,
    task: JoinHandle<()>,
}

impl FollowHandle {
    /// Starts following. Returns when the first read is published or has timed out.
    pub(crate) async fn begin(request: FollowRequest, updates: mpsc::Sender<ConfigUpdate>) -> FollowHandle {
        let router = NotificationRouter::new();
        let events = router.subscribe();
        let (stop, stopped) = oneshot::channel();
        let (begun, first) = oneshot::channel();
        let reload = ReloadTrigger::default();
        let follower = Follower::new(request, updates, router, watcher::system_watch());
        let task = tokio::spawn(follower.run(stopped, reload.clone(), begun));
        // Fails only if the host has shut down.
        let profiles = first.await.unwrap_or_default();
        FollowHandle { events, profiles, stop, reload, task }
    }

    /// Returns the files that could be read at first, with their profiles.
    pub fn profiles(&self) -> &[FileProfile] {
        &self.profiles
    }

    /// Returns what makes the task read the files at once.
    pub fn reload_trigger(&self) -> ReloadTrigger {
        self.reload.clone()
    }

    /// Returns the next event; `None` after the host has shut down. The first events report the first read.
    /// Cancel-safe.
    pub async fn next(&mut self) -> Option<FollowEvent> {
        Some(match self.events.next().await? {
            NotificationStreamItem::Notification(event) => Arc::unwrap_or_clone(event),
            NotificationStreamItem::Lagged(count) => FollowEvent::Lagged(count),
        })
    }

    /// Stops following and waits for its end. Running servers continue.
    pub async fn stop(self) {
        let FollowHandle { events: _, profiles: _, stop, reload: _, task } = self;
        // Fails if the host has shut down already.
        let _ = stop.send(());
        if let Err(error) = task.await {
            tracing::error!(%error, "following files failed");
        }
    }
}
