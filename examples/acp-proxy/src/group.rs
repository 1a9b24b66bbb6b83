//! The agent process, started in its own process group, which ends with the proxy.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// The timeout for the agent's exit, by itself and after SIGTERM, and for reading its last output.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// The timeout for the exit of the remaining processes after SIGTERM.
const LEFTOVER: Duration = Duration::from_secs(1);

/// The interval of checks whether the group is empty.
const LOOK: Duration = Duration::from_millis(10);

/// A running agent.
pub(crate) struct Agent(Child);

impl Agent {
    /// Starts the agent. Both streams must be piped.
    pub(crate) fn start(program: &mut Command) -> io::Result<(Agent, ChildStdin, ChildStdout)> {
        let mut child = program.process_group(0).spawn()?;
        let input = child.stdin.take().expect("it is piped");
        let output = child.stdout.take().expect("it is piped");
        Ok((Agent(child), input, output))
    }

    /// Waits for its exit on a thread, which then reports the exit code.
    pub(crate) fn watch(mut self, say: impl FnOnce(u8) + Send + 'static) -> Exit {
        let group = i32::try_from(self.0.id()).ok().filter(|it| *it > 1).map(Pid::from_raw);
        let ended = Arc::new((Mutex::new(None), Condvar::new()));
        let told = Arc::clone(&ended);
        thread::spawn(move || {
            let code = self.0.wait().map_or(1, code);
            *told.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(code);
            told.1.notify_all();
            say(code);
        });
        Exit { group, ended }
    }
}

/// The termination of an agent and its child processes.
pub(crate) struct Exit {
    group: Option<Pid>,
    ended: Arc<(Mutex<Option<u8>>, Condvar)>,
}

impl Exit {
    /// Ends the rest of the group: with SIGTERM, then with SIGKILL.
    pub(crate) fn end(&self) {
        let Some(group) = self.group else { return };
        if killpg(group, Signal::SIGTERM) == Err(Errno::ESRCH) {
            return;
        }
        let _ = self.code();
        let until = Instant::now() + LEFTOVER;
        while Instant::now() < until {
            if killpg(group, None) == Err(Errno::ESRCH) {
                return;
            }
            thread::sleep(LOOK);
        }
        // A group that is gone needs no signal.
        let _ = killpg(group, Signal::SIGKILL);
    }

    /// Returns the agent's exit code if it exits within [`GRACE`].
    pub(crate) fn code(&self) -> Option<u8> {
        let (code, changed) = &*self.ended;
        let code = code.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_timeout_while(code, GRACE, |it| it.is_none());
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// The exit code as a shell reports it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|it| 128 + it));
    code.and_then(|it| u8::try_from(it).ok()).unwrap_or(1)
}
