//! Starts child processes on one long-lived thread, on all systems.
//!
//! On Linux a child asks the kernel for SIGKILL when its parent dies, and the kernel means the parent *thread*. A child
//! that was started on a worker or blocking thread of a runtime would die when that thread is retired. Therefore one
//! thread that lives as long as the process starts all children.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::mpsc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::program::ChildCommand;
use super::system::{self, Child};

/// A request to start a process.
struct StartJob {
    program: ChildCommand,
    token: String,
    runtime: Handle,
    reply: oneshot::Sender<io::Result<Child>>,
    /// Dropped when the job is done.
    done: mpsc::Sender<()>,
}

/// Waits for the job when the requesting future is dropped. A start takes only a moment, and a process that exits in
/// between would leave the child's own children behind.
struct StartWaiter {
    /// Disconnected when the job is done: its child has an owner or has been ended.
    done: mpsc::Receiver<()>,
    is_finished: bool,
}

/// How long a dropped request waits for its job. A start takes longer only when the disk hangs.
const MAX_START: Duration = Duration::from_secs(1);

impl Drop for StartWaiter {
    fn drop(&mut self) {
        if !self.is_finished {
            let _ = self.done.recv_timeout(MAX_START);
        }
    }
}

/// Starts `program` as the leader of its own process group. Its environment contains `token`. Dropping the future
/// leaves no process behind.
pub(crate) async fn spawn(program: ChildCommand, token: String) -> io::Result<Child> {
    let (reply, started) = oneshot::channel();
    let (done_sender, done) = mpsc::channel();
    let job = StartJob { program, token, runtime: Handle::current(), reply, done: done_sender };
    spawner_queue()?.send(job).map_err(|_| io::Error::other("the thread that starts processes has ended"))?;
    let mut waiter = StartWaiter { done, is_finished: false };
    let started = started.await;
    waiter.is_finished = true;
    started.map_err(|_| io::Error::other("the thread that starts processes has ended"))?
}

/// The queue of the thread that starts processes. Starts the thread on the first call.
fn spawner_queue() -> io::Result<mpsc::Sender<StartJob>> {
    static SPAWNER: OnceLock<mpsc::Sender<StartJob>> = OnceLock::new();
    if let Some(sender) = SPAWNER.get() {
        return Ok(sender.clone());
    }
    let (sender, jobs) = mpsc::channel::<StartJob>();
    // Two threads may both get here first; the losing thread ends when its sender is dropped.
    std::thread::Builder::new().name("mcp-spawner".to_owned()).spawn(move || {
        for StartJob { program, token, runtime, reply, done } in jobs {
            // Nothing may unwind here: if this thread ended, all its children would be killed.
            let started = catch_unwind(AssertUnwindSafe(|| start(&program, &token, &runtime)));
            let panicked =
                || Err(io::Error::other("this runtime cannot start processes: it has no I/O driver"));
            // If the caller was dropped, the child is dropped here, and its whole group with it.
            let _ = reply.send(started.unwrap_or_else(|_| {
                system::kill_by_token(&token);
                panicked()
            }));
            drop(done);
        }
    })?;
    Ok(SPAWNER.get_or_init(|| sender).clone())
}

/// Starts a process on this thread and registers its streams with the runtime.
fn start(program: &ChildCommand, token: &str, runtime: &Handle) -> io::Result<Child> {
    let _inside = runtime.enter();
    Child::start(program).inspect_err(|error| {
        // A runtime that is shutting down cannot register the child; it is found by its token.
        if error.kind() != io::ErrorKind::NotFound {
            system::kill_by_token(token);
        }
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::stdio::program::TOKEN_VARIABLE;
    use crate::stdio::receipt;

    /// The processes whose environment contains the token.
    #[cfg(target_os = "linux")]
    fn processes_with_token(token: &str) -> Vec<String> {
        let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let has = |it: &std::fs::DirEntry| {
            let environment = std::fs::read(it.path().join("environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(token)
        };
        processes.filter(has).map(|it| it.file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn dropped_request_waits_for_its_job() {
        let (done_sender, done) = mpsc::channel();
        let is_done = Arc::new(AtomicBool::new(false));
        let is_done_of_job = Arc::clone(&is_done);
        let spawner = std::thread::spawn(move || {
            is_done_of_job.store(true, Ordering::SeqCst);
            drop(done_sender);
        });
        drop(StartWaiter { done, is_finished: false });
        assert!(is_done.load(Ordering::SeqCst));
        spawner.join().unwrap();
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn dropped_request_leaves_no_process() {
        for _ in 0..20 {
            let token = receipt::new_token();
            let program = ChildCommand {
                command: "sh".to_owned(),
                args: ["-c", "sleep 1000 & exec sleep 1000"].map(str::to_owned).into(),
                env: BTreeMap::from([(TOKEN_VARIABLE.into(), token.clone().into())]),
                cwd: None,
                sandbox: None,
            };
            {
                let spawning = spawn(program, token.clone());
                tokio::pin!(spawning);
                tokio::select! {
                    biased;
                    // If this thread was delayed, the child is already there and ends with its group.
                    _ = &mut spawning => {}
                    () = std::future::ready(()) => {}
                }
            }
            // A killed process may still be in the process table for a moment.
            let started_at = std::time::Instant::now();
            while !processes_with_token(&token).is_empty() && started_at.elapsed() < Duration::from_secs(20) {
                tokio::task::yield_now().await;
            }
            assert_eq!(processes_with_token(&token), Vec::<String>::new());
        }
    }
}
