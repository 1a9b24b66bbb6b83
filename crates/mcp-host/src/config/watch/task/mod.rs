//! The task that follows files. It waits for changes and timers, reads the files in the blocking pool, and sends
//! updates to the host.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcp_host_registry::{Problem, ReloadPlan};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinError;
use tokio::time::Instant;

use super::debounce::Debounce;
use super::event::{FollowEvent, Reload, WatchMode};
use super::files::{ChangeHint, FilesUpdate, FollowedFiles, ReadRequest};
use super::lock::{LockSnapshot, LockUpdate, read_lock_file};
use super::reload_trigger::ReloadTrigger;
use super::request::{FileProfile, FollowRequest};
use super::snapshot::{FileSnapshot, SourceContents, absolute, is_unchanged, read_if_changed};
use super::watcher::{ChangeSignal, FolderWatcher, WatchFactory, WatchTrust};
use crate::config::approval::Approval;
use crate::config::desired::{ConfigUpdate, DesiredServers};
use crate::fs::blocking_pool::{BlockingPool, BlockingTask, TaskOutcome};
use crate::notifications::stream::NotificationRouter;
use crate::telemetry::metrics::ReloadOutcome;

/// The maximum number of stalled reads, each of which blocks a thread of the pool.
const MAX_STALLED_READS: usize = 4;

/// The task that follows files.
pub(super) struct Follower {
    files: FollowedFiles,
    updates: mpsc::Sender<ConfigUpdate>,
    events: NotificationRouter<FollowEvent>,
    watch_factory: Option<WatchFactory>,
    changes: Arc<ChangeSignal>,
    pool: BlockingPool,
    /// `None` while a read uses it.
    watcher: Option<FolderWatcher>,
    debounce: Debounce,
    /// The time of the next read because of a pending removal.
    recheck_at: Option<Instant>,
    poll_interval: Duration,
    next_poll: Instant,
    trust: WatchTrust,
    /// Whether a change was reported since the last read.
    hint: ChangeHint,
    watch_mode: Option<WatchMode>,
    /// The problems that were last published.
    published_problems: Vec<Problem>,
}

/// The purpose of a read.
#[derive(Clone, Copy)]
enum ReadPurpose {
    /// Check for changes.
    Poll,
    /// Read the files and apply their changes.
    Reload(WatchTrust, ChangeHint),
}

/// The result of a read.
enum ReadOutcome {
    /// The files were compared: whether any of them has changed.
    Polled(bool),
    /// The files were read: the changed files, the lock file if it has changed, and the hint of the request.
    Snapshots(Vec<Option<FileSnapshot>>, Option<LockSnapshot>, ChangeHint),
}

/// A read in the blocking pool. It returns the watcher.
type ReadTask = BlockingTask<(FolderWatcher, ReadOutcome)>;
/// The result of a [`ReadTask`].
type ReadTaskResult = Result<TaskOutcome<(FolderWatcher, ReadOutcome)>, JoinError>;

impl Follower {
    pub(super) fn new(
        request: FollowRequest,
        updates: mpsc::Sender<ConfigUpdate>,
        events: NotificationRouter<FollowEvent>,
        watch_factory: Option<WatchFactory>,
    ) -> Follower {
        let FollowRequest { files, lock, debounce, max_delay, settle, poll_interval, read_timeout } = request;
        let debounce = debounce.clamp(Duration::from_millis(100), Duration::from_millis(500));
        let changes = Arc::new(ChangeSignal::default());
        Follower {
            files: FollowedFiles::new(files, settle).with_lock(lock),
            updates,
            events,
            watcher: Some(FolderWatcher::new(watch_factory.clone(), Arc::clone(&changes))),
            watch_factory,
            changes,
            pool: BlockingPool::new(read_timeout, MAX_STALLED_READS),
            debounce: Debounce::new(debounce, max_delay),
            recheck_at: None,
            poll_interval: poll_interval.clamp(Duration::from_millis(100), Duration::from_secs(3600)),
            next_poll: Instant::now(),
            trust: WatchTrust::Keep,
            hint: ChangeHint::NotReported,
            watch_mode: None,
            published_problems: Vec::new(),
        }
    }

    /// Follows the files until it is stopped or the host shuts down. Sends the profiles of the files to `begun` after
    /// the first read.
    pub(super) async fn run(
        mut self,
        mut stopped: oneshot::Receiver<()>,
        reload: ReloadTrigger,
        begun: oneshot::Sender<Vec<FileProfile>>,
    ) {
        let mut begun = Some(begun);
        let mut task = Some(self.begin(ReadPurpose::Reload(WatchTrust::Keep, ChangeHint::NotReported)));
        loop {
            let next_read = self.next_read();
            tokio::select! {
                biased;
                // A dropped sender stops as well.
                _ = &mut stopped => break,
                () = self.updates.closed() => return,
                Some(joined) = wait_for_task(&mut task) => {
                    task = None;
                    self.finish_read(joined).await;
                    // The receiver may have been dropped.
                    begun.take().map(|it| it.send(self.files.profiles()));
                }
                purpose = next_read.wait(), if task.is_none() => task = Some(self.begin(purpose)),
                () = reload.requested() => {
                    // A change may have been missed, so the watches are set again too.
                    self.trust = WatchTrust::Renew;
                    self.debounce = self.debounce.record(Instant::now());
                }
                () = self.changes.changed() => {
                    self.hint = ChangeHint::Reported;
                    self.debounce = self.debounce.record(Instant::now());
                }
            }
        }
        // Withdraws the problems of the files.
        self.publish(None, None, Vec::new(), None).await;
    }

    /// Returns the time and the purpose of the next read.
    fn next_read(&self) -> ScheduledRead {
        let reload = self.debounce.due().into_iter().chain(self.recheck_at).min();
        match reload {
            Some(at) if at <= self.next_poll => {
                ScheduledRead { at, purpose: ReadPurpose::Reload(self.trust, self.hint) }
            }
            Some(_) | None => ScheduledRead { at: self.next_poll, purpose: ReadPurpose::Poll },
        }
    }

    /// Starts a read in the blocking pool.
    fn begin(&mut self, purpose: ReadPurpose) -> ReadTask {
        match purpose {
            ReadPurpose::Poll => {}
            ReadPurpose::Reload(..) => {
                self.hint = ChangeHint::NotReported;
                self.debounce = self.debounce.reset();
                self.recheck_at = None;
                self.trust = WatchTrust::Keep;
            }
        }
        let watcher = self
            .watcher
            .take()
            .unwrap_or_else(|| FolderWatcher::new(self.watch_factory.clone(), Arc::clone(&self.changes)));
        let request = self.files.read_request();
        self.pool.spawn(move || read_files(watcher, &request, purpose))
    }

    /// Applies the result of a read.
    async fn finish_read(&mut self, ended: ReadTaskResult) {
        let now = Instant::now();
        self.next_poll = now + self.poll_interval;
        let (watcher, outcome) = match ended {
            Ok(TaskOutcome::Done(done)) => done,
            // The previous content remains; the next read may succeed.
            Ok(TaskOutcome::TimedOut) => {
                return self.handle_read_failure("the file system does not respond").await;
            }
            Ok(TaskOutcome::Failed) => {
                return self.handle_read_failure("the read failed because of a bug in this host").await;
            }
            Err(error) => return self.handle_read_failure(&error.to_string()).await,
        };
        let watch_mode = match (&self.watch_factory, watcher.failure()) {
            (None, _) => WatchMode::PollOnly(None),
            (Some(_), None) => WatchMode::System,
            (Some(_), Some(why)) => WatchMode::PollOnly(Some(why.to_owned())),
        };
        self.watcher = Some(watcher);
        let (files, LockUpdate { approval, event }) = match outcome {
            ReadOutcome::Snapshots(files, lock, hint) => {
                (self.files.update(files, hint, now), self.files.update_lock(lock))
            }
            ReadOutcome::Polled(changed) => {
                if changed {
                    // The watches missed a change that polling found.
                    self.trust = WatchTrust::Renew;
                    self.debounce = self.debounce.record(now);
                }
                (FilesUpdate { recheck_at: self.recheck_at, ..FilesUpdate::default() }, LockUpdate::default())
            }
        };
        let FilesUpdate { desired, reloaded, refused, recheck_at } = files;
        tracing::debug!(
            reload = desired.is_some(),
            removal = recheck_at.is_some(),
            "followed files were read"
        );
        self.recheck_at = recheck_at;
        let problems = self.files.problems(None).into_iter().chain(watch_problem(&watch_mode)).collect();
        let outcome = match (&desired, refused.is_empty()) {
            (Some(_), _) => Some(ReloadOutcome::Applied),
            (None, false) => Some(ReloadOutcome::Refused),
            (None, true) => None,
        };
        // A new lock file may approve servers that did not start.
        let desired = desired.or_else(|| approval.as_ref().and_then(|_| self.files.desired()));
        let mut plan = ReloadPlan::default();
        if outcome.is_some() || approval.is_some() || self.published_problems != problems {
            plan = self.publish(desired, approval, problems, outcome).await;
        }
        let reload = (!reloaded.is_empty()).then(|| {
            FollowEvent::Reloaded(Reload { files: reloaded, plan, shadowed: self.files.shadowed().to_vec() })
        });
        let mode_changed = (self.watch_mode.as_ref() != Some(&watch_mode))
            .then(|| FollowEvent::WatchModeChanged(watch_mode.clone()));
        self.watch_mode = Some(watch_mode);
        let refused = refused.into_iter().map(FollowEvent::Refused);
        for event in mode_changed.into_iter().chain(refused).chain(reload).chain(event) {
            self.events.publish(|| event);
        }
    }

    /// Publishes that the files could not be read. Changes that the stalled watcher reports later are ignored.
    async fn handle_read_failure(&mut self, why: &str) {
        tracing::error!(why, "cannot read the followed files");
        self.changes = Arc::new(ChangeSignal::default());
        self.watcher = None;
        let watch_problem = self.watch_mode.as_ref().and_then(watch_problem);
        let problems = self.files.problems(Some(why)).into_iter().chain(watch_problem).collect();
        if self.published_problems != problems {
            self.publish(None, None, problems, Some(ReloadOutcome::Unreadable)).await;
        }
    }

    /// Sends an update to the host: new servers and approvals, problems, and the outcome of a reload. Returns the
    /// reload plan.
    async fn publish(
        &mut self,
        desired: Option<DesiredServers>,
        approval: Option<Approval>,
        problems: Vec<Problem>,
        outcome: Option<ReloadOutcome>,
    ) -> ReloadPlan {
        self.published_problems.clone_from(&problems);
        let (published, plan) = oneshot::channel();
        let update = ConfigUpdate { desired, approval, problems, outcome, published };
        // No reply means that the host has shut down, which the next wait detects.
        match self.updates.send(update).await {
            Ok(()) => plan.await.unwrap_or_default(),
            Err(_) => ReloadPlan::default(),
        }
    }
}

/// The next read of the files.
struct ScheduledRead {
    at: Instant,
    purpose: ReadPurpose,
}

impl ScheduledRead {
    /// Waits until the read is due, and returns its purpose.
    async fn wait(self) -> ReadPurpose {
        tokio::time::sleep_until(self.at).await;
        self.purpose
    }
}

/// Waits for the outcome of a read. Returns `None` at once if none runs.
async fn wait_for_task(task: &mut Option<ReadTask>) -> Option<ReadTaskResult> {
    Some(task.as_mut()?.outcome().await)
}

/// Returns the problem of a watch mode without notifications of the operating system.
fn watch_problem(mode: &WatchMode) -> Option<Problem> {
    match mode {
        WatchMode::PollOnly(Some(why)) => Some(Problem::workspace_unwatched(why)),
        WatchMode::System | WatchMode::PollOnly(None) => None,
    }
}

/// Sets the watches, then reads the files, so that no change is missed. Blocks.
fn read_files(
    mut watcher: FolderWatcher,
    request: &ReadRequest,
    purpose: ReadPurpose,
) -> (FolderWatcher, ReadOutcome) {
    let requests = request.files.as_slice();
    let (trust, hint) = match purpose {
        ReadPurpose::Poll => {
            let has_changed =
                |seen: &Option<SourceContents>| seen.as_ref().is_none_or(|it| !is_unchanged(it));
            let changed = requests.iter().any(|(_, seen)| has_changed(seen)) || read_lock(request).is_some();
            // A failed watcher is retried.
            if !changed && watcher.failure().is_some() {
                watcher.watch_paths(&source_paths(request, &[]), WatchTrust::Keep);
            }
            return (watcher, ReadOutcome::Polled(changed));
        }
        ReadPurpose::Reload(trust, hint) => (trust, hint),
    };
    let watched = source_paths(request, &[]);
    watcher.watch_paths(&watched, trust);
    let read_changed = || -> Vec<Option<FileSnapshot>> {
        requests.iter().map(|(request, seen)| read_if_changed(request, seen.as_ref())).collect()
    };
    let mut snapshots = read_changed();
    let needed = source_paths(request, &snapshots);
    if watched != needed {
        watcher.watch_paths(&needed, WatchTrust::Keep);
        // If referenced files were not yet watched during the read, changes of them may have been missed.
        if !watched.is_superset(&needed) {
            snapshots = read_changed();
        }
    }
    (watcher, ReadOutcome::Snapshots(snapshots, read_lock(request), hint))
}

/// Reads the lock file, if one is followed.
fn read_lock(request: &ReadRequest) -> Option<LockSnapshot> {
    let (path, seen) = request.lock.as_ref()?;
    read_lock_file(path, seen.as_ref())
}

/// Returns the absolute paths of all files that the configurations consist of.
fn source_paths(request: &ReadRequest, snapshots: &[Option<FileSnapshot>]) -> BTreeSet<PathBuf> {
    let requests = request.files.as_slice();
    let named = requests.iter().flat_map(|(request, _)| [Some(&request.path), request.env_file.as_ref()]);
    let named = named.flatten().chain(request.lock.as_ref().map(|it| &it.0));
    let mut paths: BTreeSet<PathBuf> = named.map(|it| absolute(it)).collect();
    let seen = |at: usize| match snapshots.get(at) {
        Some(Some(snapshot)) => Some(&snapshot.sources),
        Some(None) | None => requests[at].1.as_ref(),
    };
    paths.extend((0..requests.len()).filter_map(seen).flat_map(|it| it.keys().cloned()));
    paths
}

#[cfg(test)]
mod tests;
