//! The task that follows files: waits for changes and timers, reads the files in the blocking pool, and sends updates
//! to the host.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mcp_registry::Problem;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::task::JoinError;
use tokio::time::Instant;

use super::FollowRequest;
use super::debounce::Debounce;
use super::event::{FollowEvent, WatchMode};
use super::files::{ChangeHint, FilesUpdate, FollowedFiles, ReadRequest};
use super::lock::{LockReading, LockUpdate, read_lock_file};
use super::snapshot::{FileSnapshot, SourceContents, absolute, is_unchanged, read_config};
use super::watcher::{ChangeSignal, FolderWatcher, Trust, WatchFactory};
use crate::config::approval::Approval;
use crate::config::desired::{ConfigUpdate, DesiredServers};
use crate::config::load::LoadRequest;
use crate::fs::blocking_pool::{BlockingPool, BlockingTask, TaskOutcome};
use crate::telemetry::metrics::ReloadOutcome;

/// The maximum number of stalled reads.
const MAX_STALLED_READS: usize = 4;

/// The state of the task.
pub(super) struct Follower {
    files: FollowedFiles,
    updates: mpsc::Sender<ConfigUpdate>,
    events: broadcast::Sender<FollowEvent>,
    make: Option<WatchFactory>,
    changes: Arc<ChangeSignal>,
    pool: BlockingPool,
    /// `None` while a read uses it.
    watcher: Option<FolderWatcher>,
    debounce: Debounce,
    /// When to read again because of a pending removal.
    recheck_at: Option<Instant>,
    poll: Duration,
    next_poll: Instant,
    trust: Trust,
    /// Whether a change was reported since the last read.
    hint: ChangeHint,
    watching: Option<WatchMode>,
    /// The problems last published.
    published_problems: Vec<Problem>,
}

/// The purpose of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadPurpose {
    /// Check for changes.
    Poll,
    /// Read the files and apply their changes.
    Judge(Trust, ChangeHint),
}

/// The result of a read.
struct ReadRound {
    watcher: FolderWatcher,
    purpose: ReadPurpose,
    news: ReadOutcome,
}

enum ReadOutcome {
    /// Whether anything has changed.
    Changed(bool),
    /// Readings of changed files.
    Looks(Vec<Option<FileSnapshot>>, Option<LockReading>, ChangeHint),
}

impl Follower {
    pub(super) fn new(
        request: FollowRequest,
        updates: mpsc::Sender<ConfigUpdate>,
        events: broadcast::Sender<FollowEvent>,
        make: Option<WatchFactory>,
    ) -> Follower {
        let FollowRequest {
            files,
            lock,
            debounce,
            max_delay: longest_wait,
            settle,
            poll_interval: poll,
            read_timeout: patience,
        } = request;
        let debounce = debounce.clamp(Duration::from_millis(100), Duration::from_millis(500));
        let changes = Arc::new(ChangeSignal::default());
        Follower {
            files: FollowedFiles::new(files, settle).with_lock(lock),
            updates,
            events,
            watcher: Some(FolderWatcher::new(make.clone(), Arc::clone(&changes))),
            make,
            changes,
            pool: BlockingPool::new(patience, MAX_STALLED_READS),
            debounce: Debounce::new(debounce, longest_wait),
            recheck_at: None,
            poll: poll.clamp(Duration::from_millis(100), Duration::from_secs(3600)),
            next_poll: Instant::now(),
            trust: Trust::Keep,
            hint: ChangeHint::Silent,
            watching: None,
            published_problems: Vec::new(),
        }
    }

    /// Follows the files until it is stopped or the host shuts down. `begun` is notified after the first read.
    pub(super) async fn run(mut self, mut stopped: oneshot::Receiver<()>, begun: oneshot::Sender<()>) {
        let mut begun = Some(begun);
        let mut job = Some(self.begin(ReadPurpose::Judge(Trust::Keep, ChangeHint::Silent)));
        loop {
            let due = self.due();
            tokio::select! {
                biased;
                // A dropped sender stops as well.
                _ = &mut stopped => break,
                () = self.updates.closed() => return,
                Some(joined) = finished(&mut job) => {
                    job = None;
                    self.take(joined).await;
                    // The receiver may have been dropped.
                    begun.take().map(|it| it.send(()));
                }
                purpose = until(due), if job.is_none() => job = Some(self.begin(purpose)),
                () = self.changes.changed() => {
                    self.hint = ChangeHint::Told;
                    self.debounce = self.debounce.record(Instant::now());
                }
            }
        }
        // Withdraws the problems, because nothing would do so later.
        self.publish((None, None), Vec::new(), None).await;
    }

    /// The next read and its time.
    fn due(&self) -> (Instant, ReadPurpose) {
        let judge = self.debounce.due().into_iter().chain(self.recheck_at).min();
        match judge {
            Some(at) if at <= self.next_poll => (at, ReadPurpose::Judge(self.trust, self.hint)),
            Some(_) | None => (self.next_poll, ReadPurpose::Poll),
        }
    }

    /// Starts a read in the blocking pool.
    fn begin(&mut self, purpose: ReadPurpose) -> BlockingTask<ReadRound> {
        match purpose {
            ReadPurpose::Poll => {}
            ReadPurpose::Judge(..) => {
                self.hint = ChangeHint::Silent;
                self.debounce = self.debounce.reset();
                self.recheck_at = None;
                self.trust = Trust::Keep;
            }
        }
        let watcher = self
            .watcher
            .take()
            .unwrap_or_else(|| FolderWatcher::new(self.make.clone(), Arc::clone(&self.changes)));
        let request = self.files.read_request();
        self.pool.spawn(move || read(watcher, &request, purpose))
    }

    async fn take(&mut self, ended: Result<TaskOutcome<ReadRound>, JoinError>) {
        let now = Instant::now();
        self.next_poll = now + self.poll;
        let ReadRound { watcher, purpose, news } = match ended {
            Ok(TaskOutcome::Done(round)) => round,
            // The previous content remains; the next read may succeed.
            Ok(TaskOutcome::TimedOut) => return self.read_failed("they do not answer").await,
            Ok(TaskOutcome::Failed) => return self.read_failed("a defect of this host ended it").await,
            Err(error) => return self.read_failed(&error.to_string()).await,
        };
        let watching = match (&self.make, watcher.failure()) {
            (None, _) => WatchMode::PollOnly(None),
            (Some(_), None) => WatchMode::System,
            (Some(_), Some(why)) => WatchMode::PollOnly(Some(why.to_owned())),
        };
        self.watcher = Some(watcher);
        let (judgement, LockUpdate { approval, event }) = match news {
            ReadOutcome::Looks(looks, lock, hint) => {
                (self.files.update(looks, hint, now), self.files.update_lock(lock))
            }
            ReadOutcome::Changed(changed) => {
                if changed {
                    // The watches missed a change that polling found.
                    self.trust = Trust::Renew;
                    self.debounce = self.debounce.record(now);
                }
                (FilesUpdate { recheck_at: self.recheck_at, ..FilesUpdate::default() }, LockUpdate::default())
            }
        };
        let FilesUpdate { wanted, events, recheck_at } = judgement;
        tracing::debug!(
            ?purpose,
            reload = wanted.is_some(),
            doubted = recheck_at.is_some(),
            "looked at the files"
        );
        self.recheck_at = recheck_at;
        let problems = self.files.problems(None).into_iter().chain(unwatched(&watching)).collect();
        let refused = events.iter().any(|it| matches!(it, FollowEvent::Refused(_)));
        let outcome = match (&wanted, refused) {
            (Some(_), _) => Some(ReloadOutcome::Taken),
            (None, true) => Some(ReloadOutcome::Refused),
            (None, false) => None,
        };
        if outcome.is_some() || approval.is_some() || self.published_problems != problems {
            self.publish((wanted, approval), problems, outcome).await;
        }
        let changed = self.watching.as_ref() != Some(&watching);
        let news = changed.then(|| FollowEvent::WatchModeChanged(watching.clone()));
        self.watching = Some(watching);
        for event in news.into_iter().chain(events).chain(event) {
            // There may be no receivers.
            let _ = self.events.send(event);
        }
    }

    /// Publishes that the files could not be read. Reports of the stalled watch are ignored from now on.
    async fn read_failed(&mut self, why: &str) {
        tracing::error!(why, "reading the files that are followed failed");
        self.changes = Arc::new(ChangeSignal::default());
        self.watcher = None;
        let watching = self.watching.as_ref().and_then(unwatched);
        let problems = self.files.problems(Some(why)).into_iter().chain(watching).collect();
        if self.published_problems != problems {
            self.publish((None, None), problems, Some(ReloadOutcome::Unreadable)).await;
        }
    }

    /// Sends an update to the host: new servers and approvals, problems, and the outcome of a reload.
    async fn publish(
        &mut self,
        (desired, approval): (Option<DesiredServers>, Option<Approval>),
        problems: Vec<Problem>,
        outcome: Option<ReloadOutcome>,
    ) {
        self.published_problems.clone_from(&problems);
        let (published, taken) = oneshot::channel();
        let update = ConfigUpdate { desired: desired.map(Box::new), approval, problems, outcome, published };
        if self.updates.send(update).await.is_ok() {
            // No reply means that the host has shut down, which the next wait detects.
            let _ = taken.await;
        }
    }
}

async fn until((at, purpose): (Instant, ReadPurpose)) -> ReadPurpose {
    tokio::time::sleep_until(at).await;
    purpose
}

/// The outcome of the task; `None` without one.
async fn finished(
    job: &mut Option<BlockingTask<ReadRound>>,
) -> Option<Result<TaskOutcome<ReadRound>, JoinError>> {
    match job {
        Some(job) => Some(job.end().await),
        None => None,
    }
}

fn unwatched(watching: &WatchMode) -> Option<Problem> {
    match watching {
        WatchMode::PollOnly(Some(why)) => Some(Problem::workspace_unwatched(why)),
        WatchMode::System | WatchMode::PollOnly(None) => None,
    }
}

/// Sets watches, then reads, so that no change is missed. Blocks.
fn read(mut watcher: FolderWatcher, request: &ReadRequest, purpose: ReadPurpose) -> ReadRound {
    let requests = request.files.as_slice();
    let is_news = |seen: &Option<SourceContents>| seen.as_ref().is_none_or(|it| !is_unchanged(it));
    let (trust, hint) = match purpose {
        ReadPurpose::Poll => {
            let is_new = requests.iter().any(|(_, seen)| is_news(seen)) || look_at(request).is_some();
            // A failed watcher is retried.
            if !is_new && watcher.failure().is_some() {
                watcher.watch_paths(&paths(request, &[]), Trust::Keep);
            }
            return ReadRound { watcher, purpose, news: ReadOutcome::Changed(is_new) };
        }
        ReadPurpose::Judge(trust, hint) => (trust, hint),
    };
    let attended = paths(request, &[]);
    watcher.watch_paths(&attended, trust);
    let looks = |requests: &[(LoadRequest, Option<SourceContents>)]| -> Vec<Option<FileSnapshot>> {
        requests.iter().map(|(request, seen)| is_news(seen).then(|| read_config(request))).collect()
    };
    let mut res = looks(requests);
    let needed = paths(request, &res);
    if attended != needed {
        watcher.watch_paths(&needed, Trust::Keep);
        // If referenced files were not yet watched during the read, changes of them may have been missed.
        if !attended.is_superset(&needed) {
            res = looks(requests);
        }
    }
    ReadRound { watcher, purpose, news: ReadOutcome::Looks(res, look_at(request), hint) }
}

/// Reads the lock file, if one is followed.
fn look_at(request: &ReadRequest) -> Option<LockReading> {
    let (path, seen) = request.lock.as_ref()?;
    read_lock_file(path, seen.as_ref())
}

/// The absolute paths of all relevant files.
fn paths(request: &ReadRequest, looks: &[Option<FileSnapshot>]) -> BTreeSet<PathBuf> {
    let requests = request.files.as_slice();
    let named = requests.iter().flat_map(|(request, _)| [Some(&request.path), request.env_file.as_ref()]);
    let named = named.flatten().chain(request.lock.as_ref().map(|it| &it.0));
    let mut res: BTreeSet<PathBuf> = named.map(|it| absolute(it)).collect();
    let seen = |at: usize| match looks.get(at) {
        Some(Some(look)) => Some(&look.sources),
        Some(None) | None => requests[at].1.as_ref(),
    };
    res.extend((0..requests.len()).filter_map(seen).flat_map(|it| it.keys().cloned()));
    res
}

#[cfg(test)]
mod tests;
