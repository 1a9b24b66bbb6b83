//! The agent as a process: started in a group of its own, which is gone when this is over.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// How long an agent may take to end, by itself and when it is asked to, and its last words to be read.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// How long what an agent leaves behind may take to end when it is asked to.
const LEFTOVER: Duration = Duration::from_secs(1);

/// How often it is looked whether the group is empty.
const LOOK: Duration = Duration::from_millis(10);

/// A running agent.
pub(crate) struct Agent(Child);

impl Agent {
    /// Starts it. Both its streams have to be piped.
    pub(crate) fn start(program: &mut Command) -> io::Result<(Agent, ChildStdin, ChildStdout)> {
        let mut child = program.process_group(0).spawn()?;
        let input = child.stdin.take().expect("it is piped");
        let output = child.stdout.take().expect("it is piped");
        Ok((Agent(child), input, output))
    }

    /// Waits for its end on a thread of its own, which then says the exit code.
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

/// The end of an agent, and of what it has started.
pub(crate) struct Exit {
    group: Option<Pid>,
    ended: Arc<(Mutex<Option<u8>>, Condvar)>,
}

impl Exit {
    /// Ends what is left of the group: politely, then by force.
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
        // A group that is already gone needs no signal.
        let _ = killpg(group, Signal::SIGKILL);
    }

    /// The agent's exit code, if there is one within [`GRACE`].
    pub(crate) fn code(&self) -> Option<u8> {
        let (code, changed) = &*self.ended;
        let code = code.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = changed.wait_timeout_while(code, GRACE, |it| it.is_none());
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// As a shell tells it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|it| 128 + it));
    code.and_then(|it| u8::try_from(it).ok()).unwrap_or(1)
}
