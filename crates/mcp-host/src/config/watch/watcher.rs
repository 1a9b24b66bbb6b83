//! The watcher of folders, which reports changes of relevant paths.
//!
//! The kind of change does not matter: the files are read, and their content is compared. A failed watcher reports its
//! error, and is created again at the next read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::watch_plan::{PathEntry, WatchNeed, WatchPlan};

/// The maximum number of times that the watch plan is computed. It is computed again if links change while watches
/// are set.
const MAX_PLAN_ATTEMPTS: usize = 4;

/// A watch of folders, such as that of the operating system. Its functions may block.
pub(crate) trait FolderWatch: Send {
    /// Starts or restarts watching a folder, without subfolders.
    fn watch(&mut self, folder: &Path) -> Result<(), String>;
    /// Stops watching a folder, if it is watched.
    fn unwatch(&mut self, folder: &Path);
}

/// A function that creates a watch, which reports changes to the signal.
pub(crate) type WatchFactory =
    Arc<dyn Fn(Arc<ChangeSignal>) -> Result<Box<dyn FolderWatch>, String> + Send + Sync>;

/// A signal for changes of relevant paths. Any thread can report a change.
#[derive(Debug, Default)]
pub(crate) struct ChangeSignal {
    reported: Notify,
    state: Mutex<SignalState>,
}

/// The changes that were reported.
#[derive(Debug, Default)]
struct SignalState {
    /// The relevant paths.
    names: BTreeSet<PathBuf>,
    /// The relevant paths that changed.
    changed: BTreeSet<PathBuf>,
    /// The error of a watch that has failed.
    failed: Option<String>,
}

/// The functions that a watch calls.
#[cfg(any(feature = "watch", test))]
impl ChangeSignal {
    /// Reports that this path changed.
    pub(crate) fn report_path(&self, path: &Path) {
        let mut state = self.state.lock();
        if state.names.contains(path) {
            state.changed.insert(path.to_owned());
            drop(state);
            self.reported.notify_one();
        }
    }

    /// Reports that something changed, without a path.
    pub(crate) fn report_unknown_path(&self) {
        self.reported.notify_one();
    }

    /// Reports that the watch has failed.
    pub(crate) fn report_failure(&self, error: String) {
        self.state.lock().failed = Some(error);
        self.reported.notify_one();
    }
}

impl ChangeSignal {
    /// Waits for a change since the last call. Cancel-safe.
    pub(crate) async fn changed(&self) {
        self.reported.notified().await;
    }
}

/// The watcher of folders, with its current watches.
pub(crate) struct FolderWatcher {
    changes: Arc<ChangeSignal>,
    /// `None`: this build cannot watch folders, which is not an error.
    factory: Option<WatchFactory>,
    watch: Option<Box<dyn FolderWatch>>,
    /// The folders that are watched.
    folders: BTreeSet<PathBuf>,
    /// The error because of which changes may be missed.
    failure: Option<String>,
}

/// Whether existing watches are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchTrust {
    /// Keep them.
    Keep,
    /// They missed a change, so they are set again.
    Renew,
}

impl FolderWatcher {
    pub(crate) fn new(factory: Option<WatchFactory>, changes: Arc<ChangeSignal>) -> FolderWatcher {
        FolderWatcher { changes, factory, watch: None, folders: BTreeSet::new(), failure: None }
    }

    /// Returns the error because of which changes may be missed.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Watches these absolute paths and no others. All changes after the return are reported. Blocks.
    pub(crate) fn watch_paths(&mut self, paths: &BTreeSet<PathBuf>, trust: WatchTrust) {
        let Some(factory) = &self.factory else { return };
        self.failure = None;
        let SignalState { names: _, changed, failed } = std::mem::take(&mut *self.changes.state.lock());
        if failed.is_some() {
            self.watch = None;
        }
        // A changed folder may have been replaced, and its watch with it.
        self.folders.retain(|it| trust == WatchTrust::Keep && self.watch.is_some() && !changed.contains(it));
        let watch = match &mut self.watch {
            Some(watch) => watch,
            None => match factory(Arc::clone(&self.changes)) {
                Ok(watch) => self.watch.insert(watch),
                Err(error) => {
                    self.failure = Some(error);
                    return;
                }
            },
        };
        let mut plan = compute_watch_plan(paths);
        for _ in 0..MAX_PLAN_ATTEMPTS {
            // Set before the folders are watched, so that early reports are not discarded.
            self.changes.state.lock().names.clone_from(&plan.names);
            self.failure = None;
            for (folder, need) in &plan.folders {
                if self.folders.contains(folder) {
                    continue;
                }
                match (watch.watch(folder), need) {
                    (Ok(()), _) => {
                        self.folders.insert(folder.clone());
                    }
                    (Err(error), WatchNeed::Required) => self.failure = Some(error),
                    (Err(_), WatchNeed::Helpful) => {}
                }
            }
            let current = compute_watch_plan(paths);
            if current == plan {
                break;
            }
            plan = current;
        }
        self.folders.retain(|folder| {
            let is_needed = plan.folders.contains_key(folder);
            if !is_needed {
                watch.unwatch(folder);
            }
            is_needed
        });
    }
}

/// Computes the watch plan for these absolute paths.
fn compute_watch_plan(paths: &BTreeSet<PathBuf>) -> WatchPlan {
    let read_entry = |path: &Path| match path.symlink_metadata() {
        Ok(it) if it.is_symlink() => path.read_link().map_or(PathEntry::Missing, PathEntry::Link),
        Ok(_) => PathEntry::Other,
        Err(_) => PathEntry::Missing,
    };
    let mut plan = WatchPlan::default();
    for path in paths {
        plan.add(path, &read_entry);
    }
    plan
}

/// Returns the watch of the operating system, if compiled in.
#[cfg(not(feature = "watch"))]
pub(crate) fn system_watch() -> Option<WatchFactory> {
    None
}

/// Returns the watch of the operating system, if compiled in.
#[cfg(feature = "watch")]
pub(crate) fn system_watch() -> Option<WatchFactory> {
    Some(Arc::new(|changes| Ok(Box::new(system::SystemWatch::new(changes)?))))
}

#[cfg(feature = "watch")]
mod system {
    use notify::event::{AccessKind, AccessMode};
    use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

    use super::{Arc, ChangeSignal, FolderWatch, Path};

    pub(super) struct SystemWatch(RecommendedWatcher);

    impl SystemWatch {
        pub(super) fn new(changes: Arc<ChangeSignal>) -> Result<SystemWatch, String> {
            let report = move |event: notify::Result<Event>| match event {
                Ok(event) if event.need_rescan() => changes.report_unknown_path(),
                Ok(event) if is_change(event.kind) => {
                    event.paths.iter().for_each(|it| changes.report_path(it))
                }
                Ok(_) => {}
                Err(error) => changes.report_failure(error.to_string()),
            };
            notify::recommended_watcher(report).map(SystemWatch).map_err(|it| it.to_string())
        }
    }

    impl FolderWatch for SystemWatch {
        fn watch(&mut self, folder: &Path) -> Result<(), String> {
            self.0.watch(folder, RecursiveMode::NonRecursive).map_err(|it| it.to_string())
        }

        fn unwatch(&mut self, folder: &Path) {
            // Fails for a removed folder: its watch has ended with it.
            let _ = self.0.unwatch(folder);
        }
    }

    /// Returns whether the event is a change. Reads are none; the end of a write is one.
    fn is_change(kind: EventKind) -> bool {
        match kind {
            EventKind::Access(kind) => kind == AccessKind::Close(AccessMode::Write),
            EventKind::Any
            | EventKind::Create(_)
            | EventKind::Modify(_)
            | EventKind::Remove(_)
            | EventKind::Other => true,
        }
    }
}
