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
pub(crate) const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// The timeout for the exit of the remaining processes after SIGTERM.
const GROUP_EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// The interval of checks whether the group is empty.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A running agent.
pub(crate) struct Agent(Child);

impl Agent {
    /// Starts the agent. Both streams must be piped.
    pub(crate) fn start(program: &mut Command) -> io::Result<(Agent, ChildStdin, ChildStdout)> {
        let mut child = program.process_group(0).spawn()?;
        let input = child.stdin.take().expect("the stream is piped");
        let output = child.stdout.take().expect("the stream is piped");
        Ok((Agent(child), input, output))
    }

    /// Waits for its exit on a thread, which then reports the exit code.
    pub(crate) fn watch(mut self, report: impl FnOnce(u8) + Send + 'static) -> AgentExit {
        let group = i32::try_from(self.0.id()).ok().filter(|id| *id > 1).map(Pid::from_raw);
        let exit_code = Arc::new((Mutex::new(None), Condvar::new()));
        let shared = Arc::clone(&exit_code);
        thread::spawn(move || {
            let code = self.0.wait().map_or(1, code);
            *shared.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(code);
            shared.1.notify_all();
            report(code);
        });
        AgentExit { group, exit_code }
    }
}

/// The termination of an agent and its child processes.
pub(crate) struct AgentExit {
    group: Option<Pid>,
    exit_code: Arc<(Mutex<Option<u8>>, Condvar)>,
}

impl AgentExit {
    /// Ends the rest of the group: with SIGTERM, then with SIGKILL.
    pub(crate) fn end(&self) {
        let Some(group) = self.group else { return };
        if killpg(group, Signal::SIGTERM) == Err(Errno::ESRCH) {
            return;
        }
        let _ = self.code();
        let until = Instant::now() + GROUP_EXIT_TIMEOUT;
        while Instant::now() < until {
            if killpg(group, None) == Err(Errno::ESRCH) {
                return;
            }
            thread::sleep(POLL_INTERVAL);
        }
        // A group that has ended needs no signal.
        let _ = killpg(group, Signal::SIGKILL);
    }

    /// Returns the agent's exit code if it exits within [`EXIT_TIMEOUT`].
    pub(crate) fn code(&self) -> Option<u8> {
        let (code, changed) = &*self.exit_code;
        let code = code.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_timeout_while(code, EXIT_TIMEOUT, |code| code.is_none());
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// The exit code as a shell reports it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
