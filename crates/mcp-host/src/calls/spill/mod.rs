//! Private files for results above their limit, in a folder of the host that is removed with it.
//!
//! A lock protects the index of files; disk operations run outside of the lock. If the disk does not respond, a
//! result waits for [`IO_TIMEOUT`] and is then cut; nothing else is delayed. The number of stalled writes is
//! limited. A part that cannot be written is cut. The files of one result never evict each other.

mod disk;
mod part;

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::fs::blocking_pool::{BlockingPool, TaskOutcome};
use disk::{Disk, LocalDisk};
pub(crate) use part::SpillPart;

/// The time limit for writing the files of one result, and for removing all files at shutdown.
const IO_TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum number of concurrent writes, stalled ones included.
const MAX_CONCURRENT_WRITES: usize = 8;

/// Where overflow of results is stored, and how much of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpillPolicy {
    /// The folder in which each host creates its own subfolder with its first overflow. It is created if missing. A
    /// folder in which other users could replace ours is refused. Subfolders of killed hosts are removed at the next
    /// start.
    pub directory: PathBuf,
    /// The maximum size of all files of the host. The oldest files are removed first; a larger part is cut.
    pub max_bytes: u64,
}

impl SpillPolicy {
    /// Files in `directory`, limited to 256 MiB.
    pub fn in_directory(directory: impl Into<PathBuf>) -> SpillPolicy {
        SpillPolicy { directory: directory.into(), max_bytes: 256 << 20 }
    }
}

/// Why a part was not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpillError {
    /// It exceeds the limit.
    #[error("it has {bytes} bytes; all files of this host are limited to {most} bytes")]
    TooLarge { bytes: u64, most: u64 },
    /// The running writes leave too little room.
    #[error("it has {bytes} bytes; the files that are being written leave room for {left} bytes")]
    NoRoom { bytes: u64, left: u64 },
    /// The host writes no files, or has stopped writing.
    #[error("the host writes no results to files")]
    Off,
    /// The operation failed.
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    /// The disk is too slow, or too many writes are stalled.
    #[error("{}: the disk did not respond within {} s", .path.display(), .timeout.as_secs_f64())]
    Slow { path: PathBuf, timeout: Duration },
    /// The operation panicked.
    #[error("writing failed")]
    Failed,
}

/// The overflow files of one host.
#[derive(Debug)]
pub(crate) struct SpillStore {
    files: Arc<SpillFiles>,
    timeout: Duration,
    pool: BlockingPool,
    /// Held by each write until it ends, also after its timeout.
    room: Arc<Semaphore>,
}

#[derive(Debug)]
struct SpillFiles {
    state: Mutex<SpillState>,
    disk: Box<dyn Disk>,
    /// Whether a write timed out and none has finished since.
    stalled: AtomicBool,
}

#[derive(Debug)]
struct SpillState {
    /// `None`: the host writes no files, or has stopped writing.
    policy: Option<SpillPolicy>,
    /// Also held by each write; the last holder removes the folder.
    folder: Option<Arc<TempDir>>,
    /// The files, oldest first.
    files: VecDeque<SpillFile>,
    /// The bytes of existing files and running writes.
    bytes: u64,
    /// The number of results with files so far.
    results: u64,
}

#[derive(Debug)]
struct SpillFile {
    path: PathBuf,
    bytes: u64,
    /// The result it belongs to.
    result: u64,
}

impl SpillStore {
    /// Creates a store. Without a policy it never writes.
    pub(crate) fn new(policy: Option<SpillPolicy>) -> SpillStore {
        SpillStore::on(Box::new(LocalDisk), IO_TIMEOUT, policy)
    }

    fn on(disk: Box<dyn Disk>, timeout: Duration, policy: Option<SpillPolicy>) -> SpillStore {
        let state = SpillState { policy, folder: None, files: VecDeque::new(), bytes: 0, results: 0 };
        SpillStore {
            files: Arc::new(SpillFiles { state: Mutex::new(state), disk, stalled: AtomicBool::new(false) }),
            timeout,
            // Two more than the writes, for the cleanups at start and at shutdown.
            pool: BlockingPool::new(timeout, MAX_CONCURRENT_WRITES + 2),
            room: Arc::new(Semaphore::new(MAX_CONCURRENT_WRITES)),
        }
    }

    /// Whether files are written.
    pub(crate) fn is_on(&self) -> bool {
        self.files.state.lock().policy.is_some()
    }

    /// Removes folders of killed hosts in the background.
    pub(crate) fn remove_stale(&self) {
        let Some(policy) = self.files.state.lock().policy.clone() else { return };
        drop(self.pool.spawn(move || {
            if let Err(error) = disk::remove_stale(&policy.directory) {
                tracing::warn!(%error, "cannot remove the result files of a killed host");
            }
        }));
    }

    /// Writes each part to its own file, as far as possible, within the timeout. Cancel-safe: a started write
    /// continues.
    pub(crate) async fn write(
        &self,
        parts: Vec<SpillPart>,
    ) -> Result<Vec<Result<PathBuf, SpillError>>, SpillError> {
        let room = self.permit().await?;
        let files = Arc::clone(&self.files);
        let work = move || {
            let written = files.write_all(&parts);
            files.stalled.store(false, Ordering::Relaxed);
            drop(room);
            written
        };
        match self.pool.spawn(work).end().await {
            Ok(TaskOutcome::Done(written)) => Ok(written),
            Ok(TaskOutcome::TimedOut) => {
                self.files.stalled.store(true, Ordering::Relaxed);
                Err(self.slow())
            }
            Ok(TaskOutcome::Failed) | Err(_) => Err(SpillError::Failed),
        }
    }

    /// Waits for a free write; fails at once while writes are stalled.
    async fn permit(&self) -> Result<OwnedSemaphorePermit, SpillError> {
        match Arc::clone(&self.room).try_acquire_owned() {
            Ok(room) => Ok(room),
            Err(_) if self.files.stalled.load(Ordering::Relaxed) => Err(self.slow()),
            Err(_) => {
                let room = tokio::time::timeout(self.timeout, Arc::clone(&self.room).acquire_owned()).await;
                Ok(room.map_err(|_| self.slow())?.expect("the semaphore is never closed"))
            }
        }
    }

    fn slow(&self) -> SpillError {
        let path = self.files.state.lock().policy.as_ref().map(|it| it.directory.clone()).unwrap_or_default();
        SpillError::Slow { path, timeout: self.timeout }
    }

    /// Removes all files and writes no more. Waits at most the timeout.
    pub(crate) async fn close(&self) {
        if let Some(folder) = self.files.close() {
            let files = Arc::clone(&self.files);
            // Fails only at the end of the runtime; the operation continues.
            let _ = self.pool.spawn(move || files.clear(folder)).end().await;
        }
    }

    /// The blocking variant of [`SpillStore::close`].
    pub(crate) fn close_blocking(&self) {
        if let Some(folder) = self.files.close() {
            let files = Arc::clone(&self.files);
            let (sender, removed) = mpsc::channel();
            let clear = move || {
                files.clear(folder);
                // The receiver may have been dropped.
                let _ = sender.send(());
            };
            if let Err(error) = std::thread::Builder::new().name("mcp-host-files".to_owned()).spawn(clear) {
                tracing::warn!(%error, "cannot start a thread to remove the folder of large results");
            }
            // Finished or timed out; nothing else to wait for.
            let _ = removed.recv_timeout(self.timeout);
        }
    }
}

impl SpillFiles {
    fn write_all(&self, parts: &[SpillPart]) -> Vec<Result<PathBuf, SpillError>> {
        let result = {
            let mut state = self.state.lock();
            state.results += 1;
            state.results
        };
        parts.iter().map(|it| self.write(it, result)).collect()
    }

    fn write(&self, whole: &SpillPart, result: u64) -> Result<PathBuf, SpillError> {
        let (content, extension) = whole.content();
        let bytes = content.len() as u64;
        let old = self.state.lock().reserve(bytes, result)?;
        old.iter().for_each(|it| self.disk.remove(it));
        let written = self.write_file(&content, extension);
        let mut state = self.state.lock();
        match written {
            Ok((path, folder)) if state.is_in(&folder) => {
                state.files.push_back(SpillFile { path: path.clone(), bytes, result });
                Ok(path)
            }
            other => {
                state.bytes -= bytes;
                drop(state);
                // The host was closed, or the folder replaced. This may be the last holder.
                other.and_then(|(path, _)| {
                    self.disk.remove(&path);
                    Err(SpillError::Off)
                })
            }
        }
    }

    /// Writes a file; returns its path and folder.
    fn write_file(&self, content: &[u8], extension: &str) -> Result<(PathBuf, Arc<TempDir>), SpillError> {
        let put = |folder: Arc<TempDir>| match self.disk.write(folder.path(), content, extension) {
            Ok(path) => Ok((path, folder)),
            Err(source) => Err((source, folder)),
        };
        let outcome = match put(self.folder()?) {
            // The folder was removed by a cleanup job: create another.
            Err((source, folder)) if source.kind() == io::ErrorKind::NotFound => {
                let lost = self.state.lock().forget_folder(&folder);
                drop(lost);
                put(self.folder()?)
            }
            outcome => outcome,
        };
        outcome.map_err(|(source, folder)| failed(folder.path())(source))
    }

    /// The folder of this host, created if missing.
    fn folder(&self) -> Result<Arc<TempDir>, SpillError> {
        let directory = {
            let state = self.state.lock();
            match (&state.policy, &state.folder) {
                (None, _) => return Err(SpillError::Off),
                (Some(_), Some(folder)) => return Ok(Arc::clone(folder)),
                (Some(policy), None) => policy.directory.clone(),
            }
        };
        // Another thread may do the same; the loser is removed after the lock is released.
        let made = Arc::new(self.disk.create_folder(&directory).map_err(failed(&directory))?);
        let mut state = self.state.lock();
        match (&state.policy, &state.folder) {
            (None, _) => Err(SpillError::Off),
            (Some(_), Some(folder)) => Ok(Arc::clone(folder)),
            (Some(_), None) => {
                state.folder = Some(Arc::clone(&made));
                Ok(made)
            }
        }
    }

    /// Stops writing; returns the folder to remove.
    fn close(&self) -> Option<Arc<TempDir>> {
        let mut state = self.state.lock();
        state.policy = None;
        state.clear_entries();
        state.folder.take()
    }

    /// Removes a folder, unless a write still holds it.
    fn clear(&self, folder: Arc<TempDir>) {
        if let Some(error) = Arc::into_inner(folder).and_then(|it| self.disk.clear(it).err()) {
            tracing::warn!(%error, "cannot remove the folder of large results");
        }
    }
}

impl SpillState {
    /// Reserves room for a file; returns the files to remove for it.
    fn reserve(&mut self, bytes: u64, result: u64) -> Result<Vec<PathBuf>, SpillError> {
        let Some(policy) = &self.policy else { return Err(SpillError::Off) };
        let most = policy.max_bytes;
        if bytes > most {
            return Err(SpillError::TooLarge { bytes, most });
        }
        let others: u64 = self.files.iter().filter(|it| it.result != result).map(|it| it.bytes).sum();
        let left = most.saturating_sub(self.bytes - others);
        if bytes > left {
            return Err(SpillError::NoRoom { bytes, left });
        }
        let mut old = Vec::new();
        while self.bytes + bytes > most
            && let Some(at) = self.files.iter().position(|it| it.result != result)
            && let Some(file) = self.files.remove(at)
        {
            self.bytes -= file.bytes;
            old.push(file.path);
        }
        self.bytes += bytes;
        Ok(old)
    }

    fn is_in(&self, folder: &Arc<TempDir>) -> bool {
        self.folder.as_ref().is_some_and(|it| Arc::ptr_eq(it, folder))
    }

    /// Forgets a folder that no longer exists; returns it to be dropped outside the lock.
    fn forget_folder(&mut self, folder: &Arc<TempDir>) -> Option<Arc<TempDir>> {
        if !self.is_in(folder) {
            return None;
        }
        self.clear_entries();
        self.folder.take()
    }

    /// Forgets all files; running writes remain counted.
    fn clear_entries(&mut self) {
        self.bytes -= self.files.drain(..).map(|it| it.bytes).sum::<u64>();
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> SpillError + use<> {
    let path = path.to_owned();
    |source| SpillError::Io { path, source }
}

#[cfg(test)]
mod tests;
