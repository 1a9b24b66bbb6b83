//! Overflow files: private files for results above their limit, in a folder that is removed with the host.
//!
//! A lock protects the index of files; disk operations run outside of the lock. If the disk does not respond, a result
//! waits for [`IO_TIMEOUT`] and is then cut; nothing else is delayed. The number of stalled writes is limited. A part
//! that cannot be written is cut. The files of one result never evict each other.

mod disk;
mod part;
pub(crate) mod policy;

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
use policy::{SpillLifetime, SpillPolicy};

/// The time limit for writing the files of one result, and for removing all files at shutdown.
const IO_TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum number of concurrent writes, stalled ones included.
const MAX_CONCURRENT_WRITES: usize = 8;

/// The reason why a part was not written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpillError {
    /// It exceeds the limit.
    #[error("it has {bytes} bytes; all files of this host are limited to {limit} bytes")]
    TooLarge { bytes: u64, limit: u64 },
    /// The running writes leave too little room.
    #[error("it has {bytes} bytes; the files that are being written leave room for {remaining} bytes")]
    NoRoom { bytes: u64, remaining: u64 },
    /// The host writes no files, or has stopped writing.
    #[error("the host writes no results to files")]
    Disabled,
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
    /// Has a permit for each write. A write that timed out keeps its permit until it ends.
    write_permits: Arc<Semaphore>,
}

/// The files and the disk, which running writes share with the store.
#[derive(Debug)]
struct SpillFiles {
    state: Mutex<SpillState>,
    disk: Box<dyn Disk>,
    /// Whether a write timed out and none has finished since.
    stalled: AtomicBool,
}

/// The index of the files.
#[derive(Debug)]
struct SpillState {
    /// `None`: the host writes no files, or has stopped writing.
    policy: Option<SpillPolicy>,
    /// The folder, which each running write shares. The last one that drops it removes the folder.
    folder: Option<Arc<TempDir>>,
    /// The files, oldest first.
    files: VecDeque<SpillFile>,
    /// The bytes of existing files and running writes.
    bytes: u64,
    /// The id of the last result with files.
    last_result: u64,
}

/// An existing file.
#[derive(Debug)]
struct SpillFile {
    path: PathBuf,
    bytes: u64,
    /// The id of the result to which it belongs.
    result: u64,
}

impl SpillStore {
    /// Creates a store. Without a policy it never writes.
    pub(crate) fn new(policy: Option<SpillPolicy>) -> SpillStore {
        SpillStore::with_disk(Box::new(LocalDisk), IO_TIMEOUT, policy)
    }

    /// Creates a store on `disk`. An operation of the disk may take `timeout`.
    fn with_disk(disk: Box<dyn Disk>, timeout: Duration, policy: Option<SpillPolicy>) -> SpillStore {
        let state = SpillState { policy, folder: None, files: VecDeque::new(), bytes: 0, last_result: 0 };
        SpillStore {
            files: Arc::new(SpillFiles { state: Mutex::new(state), disk, stalled: AtomicBool::new(false) }),
            timeout,
            // Two more than the writes, for the cleanups at start and at shutdown.
            pool: BlockingPool::new(timeout, MAX_CONCURRENT_WRITES + 2),
            write_permits: Arc::new(Semaphore::new(MAX_CONCURRENT_WRITES)),
        }
    }

    /// Returns whether files are written.
    pub(crate) fn is_enabled(&self) -> bool {
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
        let permit = self.acquire_permit().await?;
        let files = Arc::clone(&self.files);
        let work = move || {
            let written = files.write_all(&parts);
            files.stalled.store(false, Ordering::Relaxed);
            drop(permit);
            written
        };
        match self.pool.spawn(work).outcome().await {
            Ok(TaskOutcome::Done(written)) => Ok(written),
            Ok(TaskOutcome::TimedOut) => {
                self.files.stalled.store(true, Ordering::Relaxed);
                Err(self.slow_error())
            }
            Ok(TaskOutcome::Failed) | Err(_) => Err(SpillError::Failed),
        }
    }

    /// Waits until a write may begin. Fails at once if too many writes are stalled.
    async fn acquire_permit(&self) -> Result<OwnedSemaphorePermit, SpillError> {
        match Arc::clone(&self.write_permits).try_acquire_owned() {
            Ok(permit) => Ok(permit),
            Err(_) if self.files.stalled.load(Ordering::Relaxed) => Err(self.slow_error()),
            Err(_) => {
                let permit = Arc::clone(&self.write_permits).acquire_owned();
                let permit = tokio::time::timeout(self.timeout, permit).await;
                Ok(permit.map_err(|_| self.slow_error())?.expect("the semaphore is never closed"))
            }
        }
    }

    /// Returns the error of a write that timed out.
    fn slow_error(&self) -> SpillError {
        let path = self.files.state.lock().policy.as_ref().map(|it| it.directory.clone()).unwrap_or_default();
        SpillError::Slow { path, timeout: self.timeout }
    }

    /// Removes all files and writes no further ones. Waits at most for the timeout.
    pub(crate) async fn close(&self) {
        if let Some(folder) = self.files.close() {
            let files = Arc::clone(&self.files);
            // Fails only at the end of the runtime; the operation continues.
            let _ = self.pool.spawn(move || files.remove_folder(folder)).outcome().await;
        }
    }

    /// The blocking variant of [`SpillStore::close`].
    pub(crate) fn close_blocking(&self) {
        if let Some(folder) = self.files.close() {
            let files = Arc::clone(&self.files);
            let (sender, removed) = mpsc::channel();
            let remove = move || {
                files.remove_folder(folder);
                // The receiver may have been dropped.
                let _ = sender.send(());
            };
            if let Err(error) = std::thread::Builder::new().name("mcp-host-files".to_owned()).spawn(remove) {
                tracing::warn!(%error, "cannot start a thread to remove the folder of large results");
            }
            // After the timeout the thread continues alone.
            let _ = removed.recv_timeout(self.timeout);
        }
    }
}

impl SpillFiles {
    /// Writes each part of one result to its own file.
    fn write_all(&self, parts: &[SpillPart]) -> Vec<Result<PathBuf, SpillError>> {
        let result = {
            let mut state = self.state.lock();
            state.last_result += 1;
            state.last_result
        };
        parts.iter().map(|it| self.write(it, result)).collect()
    }

    /// Writes a part of the result with the id `result`. Removes old files to make room.
    fn write(&self, part: &SpillPart, result: u64) -> Result<PathBuf, SpillError> {
        let (content, extension) = part.file_content();
        let bytes = content.len() as u64;
        let evicted = self.state.lock().reserve(bytes, result)?;
        evicted.iter().for_each(|it| self.disk.remove_file(it));
        let written = self.write_file(&content, extension);
        let mut state = self.state.lock();
        match written {
            Ok((path, folder)) if state.is_current_folder(&folder) => {
                state.files.push_back(SpillFile { path: path.clone(), bytes, result });
                Ok(path)
            }
            other => {
                state.bytes -= bytes;
                drop(state);
                // The host was closed, or the folder replaced. This may drop the old folder.
                other.and_then(|(path, _)| {
                    self.disk.remove_file(&path);
                    Err(SpillError::Disabled)
                })
            }
        }
    }

    /// Writes a file. Returns its path and folder.
    fn write_file(&self, content: &[u8], extension: &str) -> Result<(PathBuf, Arc<TempDir>), SpillError> {
        let write_in = |folder: Arc<TempDir>| match self.disk.write(folder.path(), content, extension) {
            Ok(path) => Ok((path, folder)),
            Err(source) => Err((source, folder)),
        };
        let outcome = match write_in(self.folder()?) {
            // Someone removed the folder: create another one.
            Err((source, folder)) if source.kind() == io::ErrorKind::NotFound => {
                let forgotten = self.state.lock().forget_folder(&folder);
                drop(forgotten);
                write_in(self.folder()?)
            }
            outcome => outcome,
        };
        outcome.map_err(|(source, folder)| io_error(folder.path())(source))
    }

    /// Returns the folder of this host, which is created if missing.
    fn folder(&self) -> Result<Arc<TempDir>, SpillError> {
        let SpillPolicy { directory, lifetime, max_bytes: _ } = {
            let state = self.state.lock();
            match (&state.policy, &state.folder) {
                (None, _) => return Err(SpillError::Disabled),
                (Some(_), Some(folder)) => return Ok(Arc::clone(folder)),
                (Some(policy), None) => policy.clone(),
            }
        };
        // Another thread may do the same. The second folder is dropped after the lock is released.
        let created = Arc::new(self.disk.create_folder(&directory, lifetime).map_err(io_error(&directory))?);
        let mut state = self.state.lock();
        match (&state.policy, &state.folder) {
            (None, _) => Err(SpillError::Disabled),
            (Some(_), Some(folder)) => Ok(Arc::clone(folder)),
            (Some(_), None) => {
                state.folder = Some(Arc::clone(&created));
                Ok(created)
            }
        }
    }

    /// Stops writing. Returns the folder to remove.
    fn close(&self) -> Option<Arc<TempDir>> {
        let mut state = self.state.lock();
        let lifetime = state.policy.take()?.lifetime;
        state.forget_files();
        state.folder.take().filter(|_| lifetime == SpillLifetime::Host)
    }

    /// Removes a folder, unless a write still uses it.
    fn remove_folder(&self, folder: Arc<TempDir>) {
        if let Some(error) = Arc::into_inner(folder).and_then(|it| self.disk.remove_folder(it).err()) {
            tracing::warn!(%error, "cannot remove the folder of large results");
        }
    }
}

impl SpillState {
    /// Reserves room for a file. Returns the files to remove for it.
    fn reserve(&mut self, bytes: u64, result: u64) -> Result<Vec<PathBuf>, SpillError> {
        let Some(policy) = &self.policy else { return Err(SpillError::Disabled) };
        let limit = policy.max_bytes;
        if bytes > limit {
            return Err(SpillError::TooLarge { bytes, limit });
        }
        let evictable: u64 = self.files.iter().filter(|it| it.result != result).map(|it| it.bytes).sum();
        let remaining = limit.saturating_sub(self.bytes - evictable);
        if bytes > remaining {
            return Err(SpillError::NoRoom { bytes, remaining });
        }
        let mut evicted = Vec::new();
        while self.bytes + bytes > limit
            && let Some(at) = self.files.iter().position(|it| it.result != result)
            && let Some(file) = self.files.remove(at)
        {
            self.bytes -= file.bytes;
            evicted.push(file.path);
        }
        self.bytes += bytes;
        Ok(evicted)
    }

    /// Returns whether new files are written to this folder.
    fn is_current_folder(&self, folder: &Arc<TempDir>) -> bool {
        self.folder.as_ref().is_some_and(|it| Arc::ptr_eq(it, folder))
    }

    /// Forgets a folder that no longer exists. Returns it, so that it is dropped outside the lock.
    fn forget_folder(&mut self, folder: &Arc<TempDir>) -> Option<Arc<TempDir>> {
        if !self.is_current_folder(folder) {
            return None;
        }
        self.forget_files();
        self.folder.take()
    }

    /// Forgets all files. Running writes remain counted.
    fn forget_files(&mut self) {
        self.bytes -= self.files.drain(..).map(|it| it.bytes).sum::<u64>();
    }
}

/// Returns a function that adds the path to an I/O error.
fn io_error(path: &Path) -> impl FnOnce(io::Error) -> SpillError + use<> {
    let path = path.to_owned();
    |source| SpillError::Io { path, source }
}

#[cfg(test)]
mod tests;
