//! Starts processes with the standard library, on systems without a parent-death signal.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use tokio::io::unix::AsyncFd;

use super::child_status::ChildStatus;
use crate::stdio::program::ChildCommand;

/// A child process that was not waited for yet.
#[derive(Debug)]
pub(super) struct UnreapedChild(Child);

impl UnreapedChild {
    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Checks whether the child has exited, and waits for it if so. Afterwards its process id may be reused.
    pub(super) fn try_wait(&mut self) -> ChildStatus {
        match self.0.try_wait() {
            Ok(None) => ChildStatus::Running,
            Ok(Some(status)) => ChildStatus::Exited(Some(status)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => ChildStatus::Running,
            Err(_) => ChildStatus::Exited(None),
        }
    }

    /// There is no pidfd on these systems.
    pub(super) fn pidfd(&self) -> Option<AsyncFd<OwnedFd>> {
        None
    }
}

/// Starts the program as the leader of a process group of its own, with these descriptors as standard input, output and
/// error.
pub(super) fn launch(program: &ChildCommand, streams: &[OwnedFd; 3]) -> io::Result<UnreapedChild> {
    let ChildCommand { command, args, env, cwd, sandbox } = program;
    debug_assert!(sandbox.is_none(), "a server with a sandbox is refused before");
    let [stdin, stdout, stderr] = streams;
    let mut command = Command::new(command);
    command.args(args).env_clear().envs(env).process_group(0);
    command.stdin(stdin.try_clone()?).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
    if let Some(cwd) = cwd {
        command.current_dir(cwd);
    }
    command.spawn().map(UnreapedChild)
}
