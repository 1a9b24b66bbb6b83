//! A child process in a job object, which ends with it: the system ends all processes of a job when its last handle is
//! closed, however this process ends.
//!
//! A child is created suspended and runs only when it is in its job, so nothing that it starts is outside.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Once;

use process_wrap::tokio::{ChildWrapper, CommandWrap, CreationFlags, JobObject, KillOnDrop};
use tokio::time::Instant;
use windows::Win32::System::Threading::{CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW, PROCESS_CREATION_FLAGS};

use super::console;
use super::files::DEFAULT_PATH;
use super::pipes::{Direction, Pipe, StderrPipe, StdinPipe, StdoutPipe};
use crate::error::disconnect::StartError;
use crate::error::evidence::ProcessExit;
use crate::error::windows::WindowsRefusal;
use crate::stdio::lookup::{ProgramSearch, ProgramSearchResult, find_program};
use crate::stdio::program::ChildCommand;

/// A child with its streams and its job. Dropping it kills all processes of the job.
pub(crate) struct Child {
    process: Box<dyn ChildWrapper>,
    pub(crate) pid: u32,
    pub(crate) stdin: Option<StdinPipe>,
    pub(crate) stdout: Option<StdoutPipe>,
    pub(crate) stderr: Option<StderrPipe>,
}

impl Child {
    /// Starts a program on the calling thread. Panics in a runtime without I/O, without leaving a process.
    pub(in crate::stdio) fn start(program: &ChildCommand) -> io::Result<Child> {
        static KEEP_STREAMS: Once = Once::new();
        KEEP_STREAMS.call_once(console::keep_standard_streams);
        let ChildCommand { command: _, args, env, cwd, sandbox } = program;
        debug_assert!(sandbox.is_none(), "a server with a sandbox is refused before");
        let file = find_file(program)?;
        let stdin = Pipe::new(Direction::ToChild)?;
        let stdout = Pipe::new(Direction::FromChild)?;
        let stderr = Pipe::new(Direction::FromChild)?;
        // Dropped at the end with the child's ends of the pipes.
        let mut command = CommandWrap::with_new(file, |command| {
            command.args(args).env_clear().envs(env);
            command.stdin(stdin.child_end).stdout(stdout.child_end).stderr(stderr.child_end);
            if let Some(cwd) = cwd {
                command.current_dir(cwd);
            }
        });
        let process =
            command.wrap(CreationFlags(creation_flags())).wrap(KillOnDrop).wrap(JobObject).spawn()?;
        let pid = process.id().ok_or_else(|| io::Error::other("the process has no id"))?;
        let (stdin, stdout, stderr) = (Some(stdin.ours), Some(stdout.ours), Some(stderr.ours));
        Ok(Child { process, pid, stdin, stdout, stderr })
    }

    /// Waits for the exit. Cancel-safe; may be called again. `None` if the status is unknown.
    pub(crate) async fn wait(&mut self) -> Option<ExitStatus> {
        // The process itself, not its job: another process may hold the job for long.
        self.process.inner_mut().wait().await.ok()
    }

    /// Asks the group to end, with Ctrl-Break. Does nothing if this process has no console.
    pub(crate) fn terminate(&self) {
        console::send_break(self.pid);
    }

    /// Kills all processes of the job.
    pub(crate) fn kill(&mut self) {
        // It fails only if the job has ended.
        let _ = self.process.start_kill();
    }

    /// Ends the rest of the job after the process was waited for, at once.
    pub(crate) async fn end_group(mut self, _: Instant) {
        self.kill();
    }
}

/// The flags for a new process: a process group of its own, which receives Ctrl-Break. If this process has no console,
/// the child gets none either; otherwise the system would open a window for it.
fn creation_flags() -> PROCESS_CREATION_FLAGS {
    if console::has_console() {
        CREATE_NEW_PROCESS_GROUP
    } else {
        CREATE_NEW_PROCESS_GROUP | CREATE_NO_WINDOW
    }
}

/// Finds the file of the program. The system would search in more folders, and for `.exe` files only.
fn find_file(program: &ChildCommand) -> io::Result<PathBuf> {
    let path = program.env.get(OsStr::new("PATH")).map(|it| it.to_string_lossy());
    let directory = program.cwd.clone().map_or_else(std::env::current_dir, Ok)?;
    let search = ProgramSearch::new(path.as_deref().unwrap_or(DEFAULT_PATH), &directory);
    match find_program(&program.command, search) {
        ProgramSearchResult::Found(file) | ProgramSearchResult::NoInterpreter { script: file, .. } => {
            Ok(file)
        }
        ProgramSearchResult::NotExecutable(_) | ProgramSearchResult::Directory(_) => {
            Err(io::ErrorKind::PermissionDenied.into())
        }
        ProgramSearchResult::NotFound => Err(io::ErrorKind::NotFound.into()),
    }
}

/// Why the system refused to start a program, if its error number has a meaning of its own.
pub(in crate::stdio) fn start_error(error: &io::Error) -> Option<StartError> {
    let refusal = match error.raw_os_error() {
        Some(number) => WindowsRefusal::from_error_number(number),
        // The standard library refuses to quote an argument. NUL bytes were refused before.
        None => (error.kind() == io::ErrorKind::InvalidInput).then_some(WindowsRefusal::BatchArguments),
    };
    refusal.map(StartError::Windows)
}

/// How a process ended.
pub(in crate::stdio) fn process_exit(status: ExitStatus) -> Option<ProcessExit> {
    status.code().map(ProcessExit::Status)
}

/// Does nothing: a process runs only once it is in its job, so none has to be found by its token.
pub(in crate::stdio) fn kill_by_token(_: &str) {}

/// Does nothing: the system ends all processes of a host with it. Returns the number of ended processes, 0.
pub(in crate::stdio) fn end_processes(_: Option<u32>, _: &str) -> usize {
    0
}

/// Windows has no limit of open files that a program could raise. Returns the greatest number.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    Ok(u64::MAX)
}
