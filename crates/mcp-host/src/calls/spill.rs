//! Where results go that are too large for their caller: files that only this user can read, under names that nobody
//! can guess, in a folder of the host's own that goes with it.
//!
//! What is where is known under a lock, and the disk is worked on beside it: a disk that does not answer costs a result
//! its [`PATIENCE`] and then its rest, and nobody else anything; and only so many pieces of work may hang with it. What
//! cannot be written is not lost: its caller gets it cut. A result's own files never make room for each other.

mod disk;
mod whole;

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::fs::blocking_pool::{Bench, End};
use disk::{Disk, Local};
pub(crate) use whole::Whole;

/// How long a disk may take for one result, or for the end of a host.
const PATIENCE: Duration = Duration::from_secs(5);

/// How many results are written at once, and so how many may hang.
const MOST: usize = 8;

/// Where results go that are too large for their caller, and how much of them is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpillPolicy {
    /// The folder in which each host makes one of its own, with its first such result. It is made if it is not there.
    /// One in which others may put something else in the place of ours, or in its own, is not used. Folders that are left
    /// there by a host that was killed are removed when the next one starts.
    pub directory: PathBuf,
    /// How many bytes all files of the host may have together. Those that were written first make room; what is larger
    /// by itself is cut.
    pub max_bytes: u64,
}

impl SpillPolicy {
    /// Files in `directory`, of 256 MiB together.
    pub fn in_directory(directory: impl Into<PathBuf>) -> SpillPolicy {
        SpillPolicy { directory: directory.into(), max_bytes: 256 << 20 }
    }
}

/// Why a part was not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpillError {
    /// It has more bytes than may be kept.
    #[error("it has {bytes} bytes, and the files of this host may have {most} together")]
    TooLarge { bytes: u64, most: u64 },
    /// There is no room beside what is being written, the other files of its result among it.
    #[error("it has {bytes} bytes, and beside what is being written there is room for {left}")]
    NoRoom { bytes: u64, left: u64 },
    /// The host keeps no files, or no more.
    #[error("the host keeps no results")]
    Off,
    /// It could not be done.
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    /// It takes too long, or too much hangs already.
    #[error("{}: the disk did not answer within {} s", .path.display(), .patience.as_secs_f64())]
    Slow { path: PathBuf, patience: Duration },
    /// It failed in a way that is a defect.
    #[error("writing failed")]
    Failed,
}

/// The files of one host.
#[derive(Debug)]
pub(crate) struct Spills {
    files: Arc<Files>,
    patience: Duration,
    bench: Bench,
    /// Held by work that is under way, also by such that nobody waits for any more.
    room: Arc<Semaphore>,
}

#[derive(Debug)]
struct Files {
    state: Mutex<State>,
    disk: Box<dyn Disk>,
    /// Work was given up, and none has come to its end since.
    hangs: AtomicBool,
}

#[derive(Debug)]
struct State {
    /// `None` where nothing is written, or nothing any more.
    policy: Option<SpillPolicy>,
    /// Whoever writes in it holds it as well; the last one removes it.
    folder: Option<Arc<TempDir>>,
    /// What is there, the oldest first.
    kept: VecDeque<Kept>,
    /// What is there has so many bytes, and what is being written.
    bytes: u64,
    /// How many results have files, or had.
    results: u64,
}

#[derive(Debug)]
struct Kept {
    path: PathBuf,
    bytes: u64,
    /// The result that it belongs to.
    result: u64,
}

impl Spills {
    /// No files yet; never any without a policy.
    pub(crate) fn new(policy: Option<SpillPolicy>) -> Spills {
        Spills::on(Box::new(Local), PATIENCE, policy)
    }

    fn on(disk: Box<dyn Disk>, patience: Duration, policy: Option<SpillPolicy>) -> Spills {
        let state = State { policy, folder: None, kept: VecDeque::new(), bytes: 0, results: 0 };
        Spills {
            files: Arc::new(Files { state: Mutex::new(state), disk, hangs: AtomicBool::new(false) }),
            patience,
            // Room is made for results; an end and a beginning may hang beside them.
            bench: Bench::new(patience, MOST + 2),
            room: Arc::new(Semaphore::new(MOST)),
        }
    }

    /// Is anything written?
    pub(crate) fn is_on(&self) -> bool {
        self.files.state().policy.is_some()
    }

    /// Removes what hosts have left that were killed. Returns at once, and is nothing that a host waits for.
    pub(crate) fn tidy(&self) {
        let Some(policy) = self.files.state().policy.clone() else { return };
        drop(self.bench.begin(move || {
            if let Err(error) = disk::tidy(&policy.directory) {
                tracing::warn!(%error, "what an earlier host has left could not be removed");
            }
        }));
    }

    /// Writes the parts of a result to files of their own, as far as possible. Waits for no disk longer than its
    /// patience. Cancel-safe: what was begun goes on.
    pub(crate) async fn write(
        &self,
        parts: Vec<Whole>,
    ) -> Result<Vec<Result<PathBuf, SpillError>>, SpillError> {
        let room = self.room().await?;
        let files = Arc::clone(&self.files);
        let work = move || {
            let written = files.write_all(&parts);
            files.hangs.store(false, Ordering::Relaxed);
            drop(room);
            written
        };
        match self.bench.begin(work).end().await {
            Ok(End::Done(written)) => Ok(written),
            Ok(End::GivenUp) => {
                self.files.hangs.store(true, Ordering::Relaxed);
                Err(self.slow())
            }
            Ok(End::Failed) | Err(_) => Err(SpillError::Failed),
        }
    }

    /// Waits until one more result may be written; not at all where what is under way hangs.
    async fn room(&self) -> Result<OwnedSemaphorePermit, SpillError> {
        match Arc::clone(&self.room).try_acquire_owned() {
            Ok(room) => Ok(room),
            Err(_) if self.files.hangs.load(Ordering::Relaxed) => Err(self.slow()),
            Err(_) => {
                let room = tokio::time::timeout(self.patience, Arc::clone(&self.room).acquire_owned()).await;
                Ok(room.map_err(|_| self.slow())?.expect("the semaphore is never closed"))
            }
        }
    }

    fn slow(&self) -> SpillError {
        let path = self.files.state().policy.as_ref().map(|it| it.directory.clone()).unwrap_or_default();
        SpillError::Slow { path, patience: self.patience }
    }

    /// Removes every file, and writes none from now on. Waits no longer than for one result.
    pub(crate) async fn close(&self) {
        if let Some(folder) = self.files.close() {
            let files = Arc::clone(&self.files);
            // Fails only when the runtime goes, and the work goes on without it.
            let _ = self.bench.begin(move || files.clear(folder)).end().await;
        }
    }

    /// The same for those who cannot wait but by blocking.
    pub(crate) fn close_blocking(&self) {
        if let Some(folder) = self.files.close() {
            let files = Arc::clone(&self.files);
            let (tell, told) = mpsc::channel();
            let clear = move || {
                files.clear(folder);
                // Nobody may wait any more.
                let _ = tell.send(());
            };
            if let Err(error) = std::thread::Builder::new().name("mcp-host-files".to_owned()).spawn(clear) {
                tracing::warn!(%error, "no thread can be had to remove the folder of large results on");
            }
            // At its end, or never told: in either case there is nothing more to wait for.
            let _ = told.recv_timeout(self.patience);
        }
    }
}

impl Files {
    fn state(&self) -> MutexGuard<'_, State> {
        // At worst a file that is there is not counted, and goes with the folder.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_all(&self, parts: &[Whole]) -> Vec<Result<PathBuf, SpillError>> {
        let result = {
            let mut state = self.state();
            state.results += 1;
            state.results
        };
        parts.iter().map(|it| self.write(it, result)).collect()
    }

    fn write(&self, whole: &Whole, result: u64) -> Result<PathBuf, SpillError> {
        let (content, extension) = whole.file();
        let bytes = content.len() as u64;
        let old = self.state().reserve(bytes, result)?;
        old.iter().for_each(|it| self.disk.remove(it));
        let written = self.put(&content, extension);
        let mut state = self.state();
        match written {
            Ok((path, folder)) if state.is_in(&folder) => {
                state.kept.push_back(Kept { path: path.clone(), bytes, result });
                Ok(path)
            }
            other => {
                state.bytes -= bytes;
                drop(state);
                // Meanwhile the host was closed, or its folder given up. This may be the last to hold that.
                other.and_then(|(path, _)| {
                    self.disk.remove(&path);
                    Err(SpillError::Off)
                })
            }
        }
    }

    /// Writes a file, and says in which folder.
    fn put(&self, content: &[u8], extension: &str) -> Result<(PathBuf, Arc<TempDir>), SpillError> {
        let put = |folder: Arc<TempDir>| match self.disk.write(folder.path(), content, extension) {
            Ok(path) => Ok((path, folder)),
            Err(source) => Err((source, folder)),
        };
        let outcome = match put(self.folder()?) {
            // Somebody who tidies up has removed the folder: another one is made.
            Err((source, folder)) if source.kind() == io::ErrorKind::NotFound => {
                let lost = self.state().lose(&folder);
                drop(lost);
                put(self.folder()?)
            }
            outcome => outcome,
        };
        outcome.map_err(|(source, folder)| failed(folder.path())(source))
    }

    /// The folder of this host, made if it is not there.
    fn folder(&self) -> Result<Arc<TempDir>, SpillError> {
        let directory = {
            let state = self.state();
            match (&state.policy, &state.folder) {
                (None, _) => return Err(SpillError::Off),
                (Some(_), Some(folder)) => return Ok(Arc::clone(folder)),
                (Some(policy), None) => policy.directory.clone(),
            }
        };
        // Others may do the same at once. What turns out to be of no use is removed when the lock is free again.
        let made = Arc::new(self.disk.make(&directory).map_err(failed(&directory))?);
        let mut state = self.state();
        match (&state.policy, &state.folder) {
            (None, _) => Err(SpillError::Off),
            (Some(_), Some(folder)) => Ok(Arc::clone(folder)),
            (Some(_), None) => {
                state.folder = Some(Arc::clone(&made));
                Ok(made)
            }
        }
    }

    /// Writes nothing from now on. Gives what is to be removed.
    fn close(&self) -> Option<Arc<TempDir>> {
        let mut state = self.state();
        state.policy = None;
        state.empty();
        state.folder.take()
    }

    /// Removes a folder, unless somebody still writes in it, who does so then.
    fn clear(&self, folder: Arc<TempDir>) {
        if let Some(error) = Arc::into_inner(folder).and_then(|it| self.disk.clear(it).err()) {
            tracing::warn!(%error, "the folder of large results could not be removed");
        }
    }
}

impl State {
    /// Makes room for a file of so many bytes of this result. Gives the files that go for it.
    fn reserve(&mut self, bytes: u64, result: u64) -> Result<Vec<PathBuf>, SpillError> {
        let Some(policy) = &self.policy else { return Err(SpillError::Off) };
        let most = policy.max_bytes;
        if bytes > most {
            return Err(SpillError::TooLarge { bytes, most });
        }
        let others: u64 = self.kept.iter().filter(|it| it.result != result).map(|it| it.bytes).sum();
        let left = most.saturating_sub(self.bytes - others);
        if bytes > left {
            return Err(SpillError::NoRoom { bytes, left });
        }
        let mut old = Vec::new();
        while self.bytes + bytes > most
            && let Some(at) = self.kept.iter().position(|it| it.result != result)
            && let Some(kept) = self.kept.remove(at)
        {
            self.bytes -= kept.bytes;
            old.push(kept.path);
        }
        self.bytes += bytes;
        Ok(old)
    }

    fn is_in(&self, folder: &Arc<TempDir>) -> bool {
        self.folder.as_ref().is_some_and(|it| Arc::ptr_eq(it, folder))
    }

    /// A folder is not there any more. Gives it, to be let go of without the lock.
    fn lose(&mut self, folder: &Arc<TempDir>) -> Option<Arc<TempDir>> {
        if !self.is_in(folder) {
            return None;
        }
        self.empty();
        self.folder.take()
    }

    /// Nothing is there any more; what is being written is counted on.
    fn empty(&mut self) {
        self.bytes -= self.kept.drain(..).map(|it| it.bytes).sum::<u64>();
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> SpillError + use<> {
    let path = path.to_owned();
    |source| SpillError::Io { path, source }
}

#[cfg(test)]
mod tests;
