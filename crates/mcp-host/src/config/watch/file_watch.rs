//! The watch of a single file that is not a configuration, such as a list of tokens. It does not read the file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::debounce::Debounce;
use super::snapshot::absolute;
use super::watcher::{ChangeSignal, FolderWatcher, WatchTrust, system_watch};

/// The time without changes after which a change is reported.
const QUIET_PERIOD: Duration = Duration::from_millis(200);
/// The maximum delay of a report.
const MAX_DELAY: Duration = Duration::from_secs(1);
/// The polling interval, because not every file system reports changes.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// A watch of a file, by notifications of the operating system and by polling. The file may be missing.
pub struct FileWatch {
    paths: BTreeSet<PathBuf>,
    changes: Arc<ChangeSignal>,
    /// `None` until the first use, and after a wait was dropped.
    watcher: Option<FolderWatcher>,
}

impl FileWatch {
    /// Creates a watch of this file.
    pub fn new(path: &Path) -> FileWatch {
        FileWatch { paths: BTreeSet::from([absolute(path)]), changes: Arc::default(), watcher: None }
    }

    /// Waits until the file may have changed; the caller compares contents. Waits until a write seems complete.
    /// Cancel-safe.
    pub async fn changed(&mut self) {
        let changes = Arc::clone(&self.changes);
        let mut watcher = self.watcher.take().unwrap_or_else(|| FolderWatcher::new(system_watch(), changes));
        let paths = self.paths.clone();
        let watched = tokio::task::spawn_blocking(move || {
            watcher.watch_paths(&paths, WatchTrust::Keep);
            watcher
        });
        self.watcher = watched.await.ok();
        let poll = Instant::now() + POLL_INTERVAL;
        let mut debounce = Debounce::new(QUIET_PERIOD, MAX_DELAY);
        loop {
            tokio::select! {
                biased;
                () = sleep_until(debounce.due().unwrap_or(poll)) => return,
                () = self.changes.changed() => debounce = debounce.record(Instant::now()),
            }
        }
    }
}

impl std::fmt::Debug for FileWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileWatch").field("paths", &self.paths).finish_non_exhaustive()
    }
}
