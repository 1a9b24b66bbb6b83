//! A child process with its process group. Dropping it kills the child, which is waited for, and the group.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::{OnceLock, mpsc};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::child_status::ChildStatus;
#[cfg(target_os = "linux")]
use super::linux_launcher::{UnreapedChild, launch};
use super::pipes::{StderrPipe, StdinPipe, StdoutPipe};
use super::process_group::ProcessGroup;
#[cfg(not(target_os = "linux"))]
use super::std_launcher::{UnreapedChild, launch};
use crate::error::evidence::ProcessExit;
use crate::stdio::program::ChildCommand;

/// Delay before the first check for the exit of a killed process; doubled each time, up to one second.
const FIRST_POLL: Duration = Duration::from_millis(1);

/// A child with its streams and its group. Dropping it kills them.
pub(crate) struct Child {
    // Dropped first: the process is killed before it sees the end of its input.
    process: KillOnDrop,
    pub(crate) pid: u32,
    pub(crate) stdin: Option<StdinPipe>,
    pub(crate) stdout: Option<StdoutPipe>,
    pub(crate) stderr: Option<StderrPipe>,
    exit_watch: ExitWatch,
    // Dropped last: the leader is killed first, then the rest of its group.
    group: ProcessGroup,
}

/// How the exit of a child is noticed.
enum ExitWatch {
    /// A pidfd, readable when the child has exited.
    PidFd(AsyncFd<OwnedFd>),
    /// SIGCHLD: some child of this process has exited.
    SigChld(tokio::signal::unix::Signal),
}

/// Kills the process when it is dropped.
struct KillOnDrop {
    /// `None` once the process was waited for.
    process: Option<UnreapedChild>,
    /// The exit status, once it is known.
    status: Option<ExitStatus>,
}

impl Child {
    /// Starts a program on the calling thread. Panics in a runtime without I/O, without leaving a process.
    pub(in crate::stdio) fn start(program: &ChildCommand) -> io::Result<Child> {
        let (child_stdin, stdin) = io::pipe()?;
        let (stdout, child_stdout) = io::pipe()?;
        let (stderr, child_stderr) = io::pipe()?;
        let streams = [
            dup_above_stdio(child_stdin.into())?,
            dup_above_stdio(child_stdout.into())?,
            dup_above_stdio(child_stderr.into())?,
        ];
        let process = launch(program, &streams)?;
        let pid = process.id();
        let process = KillOnDrop { process: Some(process), status: None };
        let pidfd = process.process.as_ref().and_then(UnreapedChild::pidfd);
        Ok(Child {
            pid,
            stdin: Some(StdinPipe::from_std(OwnedFd::from(stdin).into())?),
            stdout: Some(StdoutPipe::from_std(OwnedFd::from(stdout).into())?),
            stderr: Some(StderrPipe::from_std(OwnedFd::from(stderr).into())?),
            exit_watch: match pidfd {
                Some(it) => ExitWatch::PidFd(it),
                None => ExitWatch::SigChld(signal(SignalKind::child())?),
            },
            group: ProcessGroup::with_leader(pid),
            process,
        })
    }

    /// Waits for the exit. Cancel-safe; may be called again. `None` if the status is unknown.
    pub(crate) async fn wait(&mut self) -> Option<ExitStatus> {
        loop {
            if self.process.has_exited() {
                return self.process.status;
            }
            match &mut self.exit_watch {
                ExitWatch::PidFd(pidfd) => match pidfd.readable().await {
                    Ok(mut guard) if !self.process.has_exited() => guard.clear_ready(),
                    Ok(_) => {}
                    Err(_) => return None,
                },
                ExitWatch::SigChld(signal) => drop(signal.recv().await),
            }
        }
    }

    /// Asks the group to end, with SIGTERM.
    pub(crate) fn terminate(&self) {
        self.group.terminate();
    }

    /// Kills the process, which must still be waited for, and the rest of its group.
    pub(crate) fn kill(&mut self) {
        self.process.kill();
        self.group.kill();
    }

    /// Ends the rest of the group after the process was waited for: politely until `deadline`, then by force.
    pub(crate) async fn end_group(self, deadline: Instant) {
        self.group.end_remaining(deadline).await;
    }
}

/// How a process ended.
pub(in crate::stdio) fn process_exit(status: ExitStatus) -> Option<ProcessExit> {
    let signal = |number| {
        let name = Signal::try_from(number).ok().map(Signal::as_str);
        ProcessExit::Signal { number, name }
    };
    status.code().map(ProcessExit::Status).or_else(|| status.signal().map(signal))
}

impl KillOnDrop {
    /// Whether the process has exited. Waits for it if so.
    fn has_exited(&mut self) -> bool {
        if let Some(process) = &mut self.process
            && let ChildStatus::Exited(status) = process.try_wait()
        {
            (self.process, self.status) = (None, status);
        }
        self.process.is_none()
    }

    fn kill(&self) {
        // Before it was waited for, its process id is not reused.
        let pid = self.process.as_ref().and_then(|it| i32::try_from(it.id()).ok());
        if let Some(pid) = pid {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if !self.has_exited() {
            self.kill();
            // Without the reaper thread it stays a zombie until this process ends.
            if let (Some(killed), Ok(reaper)) = (self.process.take(), reaper_queue()) {
                let _ = reaper.send(killed);
            }
        }
    }
}

/// The queue of the thread that waits for killed processes. Starts the thread on the first call.
fn reaper_queue() -> io::Result<mpsc::Sender<UnreapedChild>> {
    static REAPER: OnceLock<mpsc::Sender<UnreapedChild>> = OnceLock::new();
    if let Some(sender) = REAPER.get() {
        return Ok(sender.clone());
    }
    let (sender, killed_processes) = mpsc::channel::<UnreapedChild>();
    // Two threads may both get here first; the losing thread ends when its sender is dropped.
    std::thread::Builder::new().name("mcp-reaper".to_owned()).spawn(move || {
        while let Ok(first) = killed_processes.recv() {
            let (mut killed, mut interval) = (vec![first], FIRST_POLL);
            while !killed.is_empty() {
                std::thread::sleep(interval);
                let before = killed.len();
                killed.extend(killed_processes.try_iter());
                interval = if killed.len() > before {
                    FIRST_POLL
                } else {
                    (interval * 2).min(Duration::from_secs(1))
                };
                killed.retain_mut(|it| it.try_wait() == ChildStatus::Running);
            }
        }
    })?;
    Ok(REAPER.get_or_init(|| sender).clone())
}

/// Duplicates a descriptor below 3, which would collide with the standard streams of a child.
fn dup_above_stdio(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    match descriptor.as_raw_fd() {
        // The duplicate is above 2.
        0..=2 => descriptor.try_clone(),
        _ => Ok(descriptor),
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use tokio::io::AsyncReadExt;

    use super::*;

    fn program(command: &str, args: &[&str]) -> ChildCommand {
        let path = ("PATH".into(), "/usr/bin:/bin".into());
        let args = args.iter().map(|it| (*it).to_owned()).collect();
        ChildCommand { command: command.to_owned(), args, env: [path].into(), cwd: None, sandbox: None }
    }

    /// Written by another process: a file that is open for writing cannot be executed, and a child of another test may
    /// inherit our descriptor for a moment.
    fn write(path: &Path, text: &str, mode: u32) {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "printf %s \"$1\" >\"$0\""]).arg(path).arg(text);
        assert!(shell.status().unwrap().success());
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Runs a program; returns its output and exit status.
    async fn run(program: &ChildCommand) -> (String, ExitStatus) {
        let mut child = Child::start(program).unwrap();
        drop(child.stdin.take());
        let mut output = String::new();
        child.stdout.take().unwrap().read_to_string(&mut output).await.unwrap();
        child.stderr.take().unwrap().read_to_string(&mut output).await.unwrap();
        (output, child.wait().await.unwrap())
    }

    #[track_caller]
    fn start_error_kind(program: &ChildCommand) -> io::ErrorKind {
        Child::start(program).map(drop).unwrap_err().kind()
    }

    async fn wait_until_gone(pid: u32) {
        for _ in 0..5000 {
            if !Path::new(&format!("/proc/{pid}")).exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        panic!("{pid} is still there");
    }

    #[tokio::test]
    async fn child_gets_exactly_the_given_arguments_and_environment() {
        let script = "echo $0 $# $2; pwd; env | grep -v ^_= | sort; echo problem >&2; exit 7";
        let mut with_options = program("sh", &["-c", script, "name", "a b", "grün"]);
        with_options.env.insert("OWN".into(), "x=y z".into());
        with_options.cwd = Some("/usr".into());
        let (output, status) = run(&with_options).await;
        assert_eq!(output, "name 2 grün\n/usr\nOWN=x=y z\nPATH=/usr/bin:/bin\nPWD=/usr\nproblem\n");
        assert_eq!(status.code(), Some(7));
    }

    #[tokio::test]
    async fn signals_are_reset_in_the_child() {
        // The runtime handles this signal, and a starting thread may block others.
        let _handled = signal(SignalKind::user_defined1()).unwrap();
        let mut before = nix::sys::signal::SigSet::empty();
        let blocked = nix::sys::signal::SigSet::from(Signal::SIGTERM);
        let how = nix::sys::signal::SigmaskHow::SIG_BLOCK;
        nix::sys::signal::pthread_sigmask(how, Some(&blocked), Some(&mut before)).unwrap();
        let (output, _) = run(&program("cat", &["/proc/self/status"])).await;
        let signals = |name: &str| {
            let line = output.lines().find_map(|it| it.strip_prefix(name)).unwrap();
            u64::from_str_radix(line.trim_start_matches(':').trim(), 16).unwrap()
        };
        assert_eq!((signals("SigBlk"), signals("SigCgt")), (0, 0));
        // A program may inherit ignored signals, but SIGPIPE must have its default action.
        assert_eq!(signals("SigIgn") & (1 << (Signal::SIGPIPE as i32 - 1)), 0);
        // Our own mask is unchanged.
        let ours = nix::sys::signal::SigSet::thread_get_mask().unwrap();
        assert!(ours.contains(Signal::SIGTERM) && !ours.contains(Signal::SIGINT));
        before.thread_set_mask().unwrap();
    }

    #[tokio::test]
    async fn command_is_searched_like_in_a_shell() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        for it in [&first, &second] {
            std::fs::create_dir(it).unwrap();
        }
        // Its own `PATH` is searched, not ours; files that are not executable are skipped.
        write(&first.join("it"), "#!/bin/sh\necho first", 0o644);
        write(&second.join("it"), "#!/bin/sh\necho second $1", 0o755);
        let mut it = program("it", &["one"]);
        let set_path = |it: &mut ChildCommand, text: String| it.env.insert("PATH".into(), text.into());
        set_path(&mut it, format!("/nowhere:{}:{}", first.display(), second.display()));
        assert_eq!(run(&it).await.0, "second one\n");
        // A script without an interpreter is run by the shell.
        write(&second.join("it"), "echo text $0 $1", 0o755);
        assert_eq!(run(&it).await.0, format!("text {}/it one\n", second.display()));
        // An empty folder in `PATH` is the working directory, and so is the base of a relative path.
        it.cwd = Some(second.clone());
        set_path(&mut it, ":/nowhere".to_owned());
        assert_eq!(run(&it).await.0, "text it one\n");
        it.command = "./it".to_owned();
        assert_eq!(run(&it).await.0, "text ./it one\n");
        it.env.clear();
        it.command = "true".to_owned();
        assert!(run(&it).await.1.success());
    }

    #[tokio::test]
    async fn failed_start_reports_the_reason_and_leaves_no_process() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("text");
        write(&text, "echo", 0o644);
        for missing in ["no-such-program-anywhere", "/no/such/program", ""] {
            assert_eq!(start_error_kind(&program(missing, &[])), io::ErrorKind::NotFound, "{missing}");
        }
        let child_path = text.join("program");
        assert_eq!(
            start_error_kind(&program(child_path.to_str().unwrap(), &[])),
            io::ErrorKind::NotADirectory
        );
        assert_eq!(start_error_kind(&program(text.to_str().unwrap(), &[])), io::ErrorKind::PermissionDenied);
        assert_eq!(start_error_kind(&program("/usr", &[])), io::ErrorKind::PermissionDenied);
        let large = "x".repeat(4 << 20);
        assert_eq!(start_error_kind(&program("true", &[&large])), io::ErrorKind::ArgumentListTooLong);
        assert_eq!(start_error_kind(&program("true", &["a\0b"])), io::ErrorKind::InvalidInput);
        let program_with_cwd = ChildCommand { cwd: Some("/no/such/folder".into()), ..program("true", &[]) };
        assert_eq!(start_error_kind(&program_with_cwd), io::ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn child_leads_a_group_and_is_killed_on_drop() {
        let mut children: Vec<Child> =
            (0..8).map(|_| Child::start(&program("sleep", &["1000"])).unwrap()).collect();
        for it in &children {
            let pid = Pid::from_raw(i32::try_from(it.pid).unwrap());
            assert_eq!(nix::unistd::getpgid(Some(pid)), Ok(pid));
        }
        let pids: Vec<u32> = children.iter().map(|it| it.pid).collect();
        let mut killed = children.pop().unwrap();
        killed.kill();
        let status = killed.wait().await.unwrap();
        assert_eq!(status.signal(), Some(9));
        // Waiting again returns the same status, and the id of an exited child is not signalled.
        assert_eq!(killed.wait().await, Some(status));
        drop((killed, children));
        for pid in pids {
            wait_until_gone(pid).await;
        }
    }

    #[tokio::test]
    async fn exit_is_noticed_without_a_pidfd() {
        let mut child = Child::start(&program("sleep", &["0.05"])).unwrap();
        child.exit_watch = ExitWatch::SigChld(signal(SignalKind::child()).unwrap());
        assert!(child.wait().await.unwrap().success());
    }

    #[tokio::test]
    async fn exit_waited_for_elsewhere_is_noticed() {
        let mut child = Child::start(&program("true", &[])).unwrap();
        nix::sys::wait::waitpid(Pid::from_raw(i32::try_from(child.pid).unwrap()), None).unwrap();
        assert_eq!(child.wait().await, None);
    }
}
