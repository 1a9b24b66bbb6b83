//! A pool for blocking file operations with a timeout and a limit.
//!
//! An operation on a network disk, or on a pipe in place of a file, may never end, and cannot be cancelled. It remains
//! on its own thread; neither the caller nor the shutdown of the runtime waits for it. At the limit no further
//! operation starts.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::task::{JoinError, JoinHandle};

/// The outcome of an operation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TaskOutcome<T> {
    /// The operation returned this.
    Done(T),
    /// The operation panicked, or no thread could be started.
    Failed,
    /// The operation timed out, or the limit was reached.
    TimedOut,
}

/// A pool that runs blocking operations.
#[derive(Debug)]
pub(crate) struct BlockingPool {
    timeout: Duration,
    /// The maximum number of running operations.
    max_running: usize,
    /// The reference count is the number of running operations plus one: each holds a clone.
    running: Arc<()>,
}

/// A running operation. Dropping it stops waiting for it.
pub(crate) struct BlockingTask<T> {
    outcome: JoinHandle<TaskOutcome<T>>,
    _cancel: CancelOnDrop<T>,
}

/// Ends the wait when it is dropped.
struct CancelOnDrop<T>(mpsc::Sender<TaskOutcome<T>>);

impl<T> Drop for CancelOnDrop<T> {
    fn drop(&mut self) {
        // Fails if the wait has ended.
        let _ = self.0.send(TaskOutcome::TimedOut);
    }
}

impl BlockingPool {
    /// Creates a pool with this timeout and limit.
    pub(crate) fn new(timeout: Duration, max_running: usize) -> BlockingPool {
        BlockingPool { timeout, max_running, running: Arc::new(()) }
    }

    /// Starts an operation.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> BlockingTask<T> {
        let (sender, receiver) = mpsc::channel();
        let cancel = CancelOnDrop(sender.clone());
        if Arc::strong_count(&self.running) > self.max_running {
            let _ = sender.send(TaskOutcome::TimedOut);
        } else {
            let (running, failure_sender) = (Arc::clone(&self.running), sender.clone());
            let work = move || {
                let outcome =
                    catch_unwind(AssertUnwindSafe(work)).map_or(TaskOutcome::Failed, TaskOutcome::Done);
                drop(running);
                // The caller may have stopped waiting.
                let _ = sender.send(outcome);
            };
            if let Err(error) = std::thread::Builder::new().name("mcp-host-files".to_owned()).spawn(work) {
                tracing::error!(%error, "cannot start a thread for a file operation");
                let _ = failure_sender.send(TaskOutcome::Failed);
            }
        }
        let timeout = self.timeout;
        let outcome = tokio::task::spawn_blocking(move || {
            receiver.recv_timeout(timeout).unwrap_or(TaskOutcome::TimedOut)
        });
        BlockingTask { outcome, _cancel: cancel }
    }
}

impl<T> BlockingTask<T> {
    /// Waits for the outcome. Cancel-safe.
    pub(crate) async fn outcome(&mut self) -> Result<TaskOutcome<T>, JoinError> {
        (&mut self.outcome).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stalled_operations_time_out_and_are_limited() {
        let patient = BlockingPool::new(Duration::from_secs(600), 4);
        assert_eq!(patient.spawn(|| 1).outcome().await.unwrap(), TaskOutcome::Done(1));
        let fails = || -> i32 { panic!("this is the defect") };
        assert_eq!(patient.spawn(fails).outcome().await.unwrap(), TaskOutcome::Failed);

        let pool = BlockingPool::new(Duration::from_millis(1), 4);
        let (release, hangs) = mpsc::channel::<()>();
        let hangs = Arc::new(std::sync::Mutex::new(hangs));
        let hang = || {
            let hangs = Arc::clone(&hangs);
            move || hangs.lock().unwrap().recv().is_ok()
        };
        for _ in 0..4 {
            assert_eq!(pool.spawn(hang()).outcome().await.unwrap(), TaskOutcome::TimedOut);
        }
        let begun = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let also = Arc::clone(&begun);
        let mut one_more = pool.spawn(move || also.store(true, std::sync::atomic::Ordering::SeqCst));
        assert_eq!(one_more.outcome().await.unwrap(), TaskOutcome::TimedOut);
        drop(release);
        while Arc::strong_count(&pool.running) > 1 {
            tokio::task::yield_now().await;
        }
        assert!(!begun.load(std::sync::atomic::Ordering::SeqCst));
        let pool = BlockingPool { timeout: Duration::from_secs(600), ..pool };
        assert_eq!(pool.spawn(|| 2).outcome().await.unwrap(), TaskOutcome::Done(2));
    }

    #[test]
    fn runtime_shutdown_does_not_wait_for_stalled_operations() {
        let (release, hangs) = mpsc::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let pool = BlockingPool::new(Duration::from_secs(600), 4);
        drop(runtime.block_on(async { pool.spawn(move || hangs.recv().is_ok()) }));
        drop(runtime);
        // The operation can end only now.
        drop(release);
    }
}
