//! From a program to a process on systems where a child cannot ask to die with its parent: the standard library's way.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use tokio::io::unix::AsyncFd;

use super::program::{Life, Program};

/// A child of this process that somebody has to wait for.
#[derive(Debug)]
pub(super) struct Process(Child);

impl Process {
    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Whether it has ended. Its number may be another's as soon as this has said so.
    pub(super) fn look(&mut self) -> Life {
        match self.0.try_wait() {
            Ok(None) => Life::Runs,
            Ok(Some(status)) => Life::Ended(Some(status)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Life::Runs,
            Err(_) => Life::Ended(None),
        }
    }

    /// There is nothing to watch.
    pub(super) fn news(&self) -> Option<AsyncFd<OwnedFd>> {
        None
    }
}

/// Starts the program as the leader of a process group of its own, with these as standard input, output and error.
pub(super) fn launch(program: &Program, streams: &[OwnedFd; 3]) -> io::Result<Process> {
    let Program { command, args, env, cwd } = program;
    let [stdin, stdout, stderr] = streams;
    let mut command = Command::new(command);
    command.args(args).env_clear().envs(env).process_group(0);
    command.stdin(stdin.try_clone()?).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
    if let Some(cwd) = cwd {
        command.current_dir(cwd);
    }
    command.spawn().map(Process)
}
