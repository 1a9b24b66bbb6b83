//! The runtime, built by hand so that it is always taken down: children die with the tasks that own them.
//!
//! Nothing ends the process while a runtime lives. A panic unwinds through [`Runtime`], and its drop is bounded even
//! when a thread is stuck in a read or a write that nobody will ever answer.

use std::future::Future;
use std::io;
use std::time::Duration;

/// How long threads stuck in a blocking call are waited for.
const STUCK: Duration = Duration::from_secs(1);

/// How many threads work at most.
const MOST_WORKERS: usize = 2;

/// A tokio runtime that is shut down within bounds when it is dropped.
pub(crate) struct Runtime(Option<tokio::runtime::Runtime>);

impl Runtime {
    /// Starts the threads. Fails when the system has none to give.
    pub(crate) fn start() -> io::Result<Runtime> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(workers()).enable_all().build()?;
        Ok(Runtime(Some(runtime)))
    }

    /// Runs `work` to its end.
    pub(crate) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.0.as_ref().expect("only drop takes the runtime out").block_on(work)
    }
}

/// How many threads work. One where the servers have the other processor: what is between a client and a server takes a few
/// microseconds, and waking a second thread for it takes as many.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, |it| it.get() / 2).clamp(1, MOST_WORKERS)
}

impl Drop for Runtime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_timeout(STUCK);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_panic_takes_down_what_was_started() {
        let (alive, ended) = mpsc::channel::<()>();
        let res = std::panic::catch_unwind(move || {
            let runtime = Runtime::start().unwrap();
            runtime.block_on(async {
                tokio::spawn(async move {
                    std::future::pending::<()>().await;
                    drop(alive);
                });
                tokio::task::yield_now().await;
                panic!("as a defect would");
            })
        });
        assert!(res.is_err());
        assert_eq!(ended.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    }

    #[test]
    fn a_thread_that_is_stuck_does_not_hold_up_the_end() {
        let (release, held) = mpsc::channel::<()>();
        let begun = Instant::now();
        let runtime = Runtime::start().unwrap();
        runtime.block_on(async { drop(tokio::task::spawn_blocking(move || held.recv())) });
        drop(runtime);
        assert!(begun.elapsed() < 5 * STUCK);
        drop(release);
    }
}
