//! Unix: the system searches for programs, and signals end processes.

use std::path::PathBuf;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The path of a command: the system searches for it.
pub(crate) fn program_path(command: &str) -> PathBuf {
    PathBuf::from(command)
}

/// Asks a process to end, with SIGTERM.
pub(crate) fn terminate(process: u32) {
    if let Ok(process) = i32::try_from(process) {
        // It may have exited meanwhile.
        let _ = kill(Pid::from_raw(process), Signal::SIGTERM);
    }
}
