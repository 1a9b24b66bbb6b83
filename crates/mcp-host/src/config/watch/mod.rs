//! Follows configuration files: whatever a user saves is what runs, and what he breaks changes nothing.
//!
//! A task of its own hears of changes from the system ([`ear`]) and looks at the files now and then besides. Events
//! are gathered until it is quiet ([`debounce`]); then the files are read ([`look`]), judged and merged ([`files`],
//! [`merge`]), and what they want is applied like anything else that a host is asked for. What decides is pure and
//! knows neither disk nor clock; the content of the files decides, and never their times.

mod approved;
mod debounce;
mod ear;
mod event;
mod files;
mod look;
mod merge;
mod places;
mod task;

use std::time::Duration;

use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::config::load::LoadRequest;
use crate::supervisor::committer::Command;
use task::Follower;

pub use approved::FollowLock;
pub use event::{FilePresence, FollowEvent, RefusedFile, Reload, ReloadedFile, ShadowedServer, WatchMode};

/// How many events wait for whoever fetches them.
const EVENTS: usize = 256;

/// Which files to follow, and how closely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowRequest {
    /// The files, the one that counts most first: of two entries with one name that of the earlier file is taken, and
    /// servers stand in the order of the files. A file need not be there, nor its folder.
    pub files: Vec<LoadRequest>,
    /// What is approved of their servers, as a lock says it, from when it is there on and whenever it changes; it is given
    /// to the host as by [`Host::set_approval`](crate::host::Host::set_approval). One that cannot be used, or is gone, changes nothing, and is a problem until it
    /// can.
    pub lock: Option<FollowLock>,
    /// How long it must be quiet before files are read (DM-093); brought within 100 to 500 ms.
    pub debounce: Duration,
    /// After which time they are read although it is not quiet; at least `debounce`.
    pub max_delay: Duration,
    /// How long a file that had something in it must have nothing in it, or be gone, before that is believed.
    pub settle: Duration,
    /// How often they are looked at without being told (DM-092); brought within 100 ms to 1 hour.
    pub poll_interval: Duration,
    /// How long reading them may take before it is given up, and tried again by the next look. Meanwhile what was read
    /// before stays, and a problem says so.
    pub read_timeout: Duration,
}

impl FollowRequest {
    /// These files and no lock, read 200 ms after the last change but at the latest 1 s after the first; 1 s of patience with what
    /// has vanished, a look every 2 s, 10 s for the disk to answer.
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

/// Files that are being followed; it ends when this is dropped. What runs then goes on, and nothing is said of the
/// files any more.
#[derive(Debug)]
pub struct FollowHandle {
    events: broadcast::Receiver<FollowEvent>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl FollowHandle {
    /// Begins; returns when the files were read once, and what they want is published, or cannot be read for now.
    pub(crate) async fn begin(request: FollowRequest, commands: mpsc::Sender<Command>) -> FollowHandle {
        let (tell, events) = broadcast::channel(EVENTS);
        let (stop, stopped) = oneshot::channel();
        let (begun, first) = oneshot::channel();
        let follower = Follower::new(request, commands, tell, ear::system_watch());
        let task = tokio::spawn(follower.run(stopped, begun));
        let res = FollowHandle { events, stop, task };
        // It fails only for a host that was shut down, which follows nothing.
        let _ = first.await;
        res
    }

    /// The next event; `None` once the host has shut down. The first ones tell of the first reading. Cancel-safe.
    pub async fn next(&mut self) -> Option<FollowEvent> {
        match self.events.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(count)) => Some(FollowEvent::Lagged(count)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }

    /// Follows no longer, and returns when nothing of it is left. What runs goes on.
    pub async fn stop(self) {
        let FollowHandle { events: _, stop, task } = self;
        // It fails when the host was shut down already.
        let _ = stop.send(());
        if let Err(error) = task.await {
            tracing::error!(%error, "following files failed");
        }
    }
}
