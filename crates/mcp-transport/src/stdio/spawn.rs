//! Starts child processes so that they die with us.
//!
//! On Linux a child asks the kernel for SIGKILL when its parent dies. The kernel means the parent *thread*: a child
//! started on a runtime's worker or blocking thread would die when that thread is retired. So all children are started
//! by one thread that lives as long as the process.
//!
//! This is the one file of the workspace with `unsafe`: asking for that signal has to be done between fork and exec.

#![expect(unsafe_code, reason = "`pre_exec` is the only way to run something between fork and exec")]

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::mpsc;

use nix::sys::signal::Signal;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::group::Group;
use super::receipt;

/// A child with its group. Dropping it kills the leader, then whatever is left of the group.
pub(crate) struct Started {
    pub(crate) child: Child,
    pub(crate) group: Group,
    pub(crate) pid: u32,
}

struct Job {
    command: Command,
    token: String,
    runtime: Handle,
    reply: oneshot::Sender<io::Result<Started>>,
}

/// Starts `command`, whose environment carries `token`, as the leader of a process group of its own. Wherever the
/// caller goes meanwhile, nothing is left running that nobody holds.
pub(crate) async fn spawn(mut command: Command, token: String) -> io::Result<Started> {
    command.process_group(0).kill_on_drop(true);
    #[cfg(target_os = "linux")]
    die_with_parent(&mut command);
    let (reply, started) = oneshot::channel();
    let job = Job { command, token, runtime: Handle::current(), reply };
    spawner()?.send(job).map_err(|_| io::Error::other("the thread that starts processes is gone"))?;
    started.await.map_err(|_| io::Error::other("the thread that starts processes is gone"))?
}

fn spawner() -> io::Result<mpsc::Sender<Job>> {
    static SPAWNER: OnceLock<mpsc::Sender<Job>> = OnceLock::new();
    if let Some(sender) = SPAWNER.get() {
        return Ok(sender.clone());
    }
    let (sender, jobs) = mpsc::channel::<Job>();
    // Two first callers may both get here; the loser's thread ends as its sender is dropped.
    std::thread::Builder::new().name("mcp-spawner".to_owned()).spawn(move || {
        for Job { command, token, runtime, reply } in jobs {
            // Nothing may unwind here: the end of this thread would be the end of every child that it started.
            let started = catch_unwind(AssertUnwindSafe(|| start(command, &token, &runtime)));
            let unwound =
                || Err(io::Error::other("this runtime cannot start processes: it has no I/O driver"));
            // A caller that has gone takes no child: it is dropped here, and with it its whole group.
            let _ = reply.send(started.unwrap_or_else(|_| {
                receipt::end(&token);
                unwound()
            }));
        }
    })?;
    Ok(SPAWNER.get_or_init(|| sender).clone())
}

fn start(mut command: Command, token: &str, runtime: &Handle) -> io::Result<Started> {
    let _inside = runtime.enter();
    let child = command.spawn().inspect_err(|error| {
        // A runtime that is shutting down cannot take the child it has just started: it is found by its token.
        if error.kind() != io::ErrorKind::NotFound {
            receipt::end(token);
        }
    })?;
    let pid = child.id().ok_or_else(|| io::Error::other("it ended at once"))?;
    Ok(Started { child, group: Group::of(pid), pid })
}

#[cfg(target_os = "linux")]
fn die_with_parent(command: &mut Command) {
    let parent = nix::unistd::getpid();
    let ask = move || {
        nix::sys::prctl::set_pdeathsig(Signal::SIGKILL)?;
        // The parent may have died before the kernel was asked.
        match nix::unistd::getppid() == parent {
            true => Ok(()),
            false => Err(io::Error::from(io::ErrorKind::BrokenPipe)),
        }
    };
    // SAFETY: between fork and exec only async-signal-safe functions may be called. `prctl` and `getppid` are plain
    // system calls; the closure allocates nothing, takes no lock, and an `io::Error` made from a kind or from an
    // errno holds no heap memory.
    unsafe {
        command.pre_exec(ask);
    }
}
