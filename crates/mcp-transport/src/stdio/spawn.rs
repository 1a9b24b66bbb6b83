//! Starts child processes so that they die with us.
//!
//! On Linux a child asks the kernel for SIGKILL when its parent dies. The kernel means the parent *thread*: a child
//! started on a runtime's worker or blocking thread would die when that thread is retired. So all children are started
//! by one thread that lives as long as the process.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::child::Child;
use super::group::Group;
use super::program::Program;
use super::receipt;

/// A child with its group. Dropping it kills the leader, then whatever is left of the group.
pub(crate) struct Started {
    pub(crate) child: Child,
    pub(crate) group: Group,
}

struct Job {
    program: Program,
    token: String,
    runtime: Handle,
    reply: oneshot::Sender<io::Result<Started>>,
    done: Arc<Done>,
}

/// Whether a job is done: its child is somebody's, or ended.
#[derive(Default)]
struct Done(Mutex<bool>, Condvar);

/// Who asked for a child and may stop waiting for it. Then this thread waits instead, for the moment that a start takes:
/// a process that ends in between would leave the child's own children behind.
struct Asker {
    done: Arc<Done>,
    has_answer: bool,
}

/// How long a start is waited for that nobody waits for any more. It takes longer only where the disk hangs.
const LONGEST_START: Duration = Duration::from_secs(1);

impl Done {
    fn tell(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.1.notify_all();
    }
}

impl Drop for Asker {
    fn drop(&mut self) {
        if self.has_answer {
            return;
        }
        let Done(is_done, told) = &*self.done;
        let is_done = is_done.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = told.wait_timeout_while(is_done, LONGEST_START, |it| !*it);
    }
}

/// Starts `program`, whose environment carries `token`, as the leader of a process group of its own. Wherever the
/// caller goes meanwhile, nothing is left running that nobody holds.
pub(crate) async fn spawn(program: Program, token: String) -> io::Result<Started> {
    let (reply, started) = oneshot::channel();
    let done = Arc::new(Done::default());
    let job = Job { program, token, runtime: Handle::current(), reply, done: Arc::clone(&done) };
    spawner()?.send(job).map_err(|_| io::Error::other("the thread that starts processes is gone"))?;
    let mut asker = Asker { done, has_answer: false };
    let started = started.await;
    asker.has_answer = true;
    started.map_err(|_| io::Error::other("the thread that starts processes is gone"))?
}

fn spawner() -> io::Result<mpsc::Sender<Job>> {
    static SPAWNER: OnceLock<mpsc::Sender<Job>> = OnceLock::new();
    if let Some(sender) = SPAWNER.get() {
        return Ok(sender.clone());
    }
    let (sender, jobs) = mpsc::channel::<Job>();
    // Two first callers may both get here; the loser's thread ends as its sender is dropped.
    std::thread::Builder::new().name("mcp-spawner".to_owned()).spawn(move || {
        for Job { program, token, runtime, reply, done } in jobs {
            // Nothing may unwind here: the end of this thread would be the end of every child that it started.
            let started = catch_unwind(AssertUnwindSafe(|| start(&program, &token, &runtime)));
            let unwound =
                || Err(io::Error::other("this runtime cannot start processes: it has no I/O driver"));
            // A caller that has gone takes no child: it is dropped here, and with it its whole group.
            let _ = reply.send(started.unwrap_or_else(|_| {
                receipt::end(&token);
                unwound()
            }));
            done.tell();
        }
    })?;
    Ok(SPAWNER.get_or_init(|| sender).clone())
}

fn start(program: &Program, token: &str, runtime: &Handle) -> io::Result<Started> {
    let _inside = runtime.enter();
    let child = Child::start(program).inspect_err(|error| {
        // A runtime that is shutting down cannot take the child it has just started: it is found by its token.
        if error.kind() != io::ErrorKind::NotFound {
            receipt::end(token);
        }
    })?;
    let group = Group::of(child.pid);
    Ok(Started { child, group })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// The processes in whose environment this is.
    #[cfg(target_os = "linux")]
    fn with(token: &str) -> Vec<String> {
        let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let has = |it: &std::fs::DirEntry| {
            let environment = std::fs::read(it.path().join("environ")).unwrap_or_default();
            String::from_utf8_lossy(&environment).contains(token)
        };
        processes.filter(has).map(|it| it.file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn who_stops_waiting_goes_on_when_the_job_is_done() {
        let (done, told) = (Arc::new(Done::default()), Arc::new(AtomicBool::new(false)));
        let (other, telling) = (Arc::clone(&done), Arc::clone(&told));
        let spawner = std::thread::spawn(move || {
            telling.store(true, Ordering::SeqCst);
            other.tell();
        });
        drop(Asker { done, has_answer: false });
        assert!(told.load(Ordering::SeqCst));
        spawner.join().unwrap();
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn who_stops_waiting_for_a_child_leaves_none() {
        for _ in 0..20 {
            let token = receipt::token();
            let program = Program {
                command: "sh".to_owned(),
                args: ["-c", "sleep 1000 & exec sleep 1000"].map(str::to_owned).into(),
                env: BTreeMap::from([(receipt::TOKEN.into(), token.clone().into())]),
                cwd: None,
            };
            {
                let spawning = spawn(program, token.clone());
                tokio::pin!(spawning);
                tokio::select! {
                    biased;
                    // Where this thread was held up it is there already, and goes with its group.
                    _ = &mut spawning => {}
                    () = std::future::ready(()) => {}
                }
            }
            // What was killed may still be in the table for a moment.
            let begun = std::time::Instant::now();
            while !with(&token).is_empty() && begun.elapsed() < Duration::from_secs(20) {
                tokio::task::yield_now().await;
            }
            assert_eq!(with(&token), Vec::<String>::new());
        }
    }
}
