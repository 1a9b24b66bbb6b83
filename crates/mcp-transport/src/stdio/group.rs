//! A process group that is never left behind.

use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::time::Instant;

/// How often it is looked whether a group is empty.
const LOOK: Duration = Duration::from_millis(10);

/// The process group of a child. Dropping it kills every process that is still in it.
pub(crate) struct Group(Option<Pid>);

impl Group {
    /// The group that process `leader` leads.
    pub(crate) fn of(leader: u32) -> Group {
        let pid = i32::try_from(leader).ok().filter(|it| *it > 1);
        Group(pid.map(Pid::from_raw))
    }

    /// Asks the processes of the group to end.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Ends what is left of the group after its leader has been waited for: politely until `deadline`, then by force.
    pub(crate) async fn sweep(mut self, deadline: Instant) {
        if self.is_empty() {
            self.0 = None;
            return;
        }
        self.terminate();
        while Instant::now() < deadline {
            tokio::time::sleep(LOOK).await;
            if self.is_empty() {
                self.0 = None;
                return;
            }
        }
        // Dropping it kills.
    }

    fn is_empty(&self) -> bool {
        match self.0 {
            Some(pid) => killpg(pid, None) == Err(Errno::ESRCH),
            None => true,
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = self.0 {
            // A group that is already gone needs no signal.
            let _ = killpg(pid, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}
