//! The tokio runtime, signals and exit codes of the process.
//!
//! The runtime is always dropped before the process exits, also when a panic unwinds: dropping the tasks ends the child
//! processes that they own. The drop is bounded even if a thread is stuck in a read or write.

pub(crate) mod bounded_read;
pub(crate) mod browser;
pub(crate) mod exit;
pub(crate) mod signal;
pub(crate) mod signals;
pub(crate) mod system;

use std::future::Future;
use std::io;
use std::time::Duration;

use tokio::task;

/// How long the shutdown waits for threads in a blocking call.
const BLOCKED_THREAD_TIMEOUT: Duration = Duration::from_secs(1);

/// The maximum number of worker threads of a command that has one user.
const MAX_COMMAND_WORKERS: usize = 2;

/// A tokio runtime that shuts down within a bounded time when it is dropped.
pub(crate) struct Runtime(Option<tokio::runtime::Runtime>);

impl Runtime {
    /// Starts this many worker threads. Fails if the system cannot create them.
    pub(crate) fn start(workers: usize) -> io::Result<Runtime> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build()?;
        Ok(Runtime(Some(runtime)))
    }

    /// Runs `work` to its end.
    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.0.as_ref().expect("only drop takes the runtime").block_on(work)
    }
}

/// The number of worker threads for many users: half of the processors, because the servers need the others. One for
/// two processors: a second one would make a single call slower, because each hop to another thread wakes it, and many
/// calls no faster.
pub(crate) fn serving_workers() -> usize {
    std::thread::available_parallelism().map_or(1, |count| count.get() / 2).max(1)
}

/// The number of worker threads for one user. More would not help: forwarding a message takes a few microseconds, about
/// as long as waking another thread.
pub(crate) fn command_workers() -> usize {
    serving_workers().min(MAX_COMMAND_WORKERS)
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_timeout(BLOCKED_THREAD_TIMEOUT);
        }
    }
}

/// Runs blocking work on a thread for blocking work, and awaits its result.
pub(crate) async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match task::spawn_blocking(work).await {
        Ok(result) => result,
        // The task is never aborted, so it can only have panicked.
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Instant;

    use super::*;

    #[test]
    fn panic_drops_running_tasks() {
        let (task_guard, dropped) = mpsc::channel::<()>();
        let result = std::panic::catch_unwind(move || {
            let runtime = Runtime::start(command_workers()).unwrap();
            runtime.block_on(async {
                tokio::spawn(async move {
                    std::future::pending::<()>().await;
                    drop(task_guard);
                });
                tokio::task::yield_now().await;
                panic!("simulated defect");
            })
        });
        assert!(result.is_err());
        assert_eq!(dropped.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    }

    #[test]
    fn blocked_thread_does_not_delay_shutdown() {
        let (release, blocked) = mpsc::channel::<()>();
        let start = Instant::now();
        let runtime = Runtime::start(command_workers()).unwrap();
        runtime.block_on(async { drop(tokio::task::spawn_blocking(move || blocked.recv())) });
        drop(runtime);
        assert!(start.elapsed() < 5 * BLOCKED_THREAD_TIMEOUT);
        drop(release);
    }
}
