//! A child process: its end is heard of, and whoever lets go of it leaves nothing behind.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::ExitStatus;
use std::sync::{OnceLock, mpsc};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::unix::AsyncFd;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::signal::unix::{SignalKind, signal};

use super::launch::{Process, launch};
use super::program::{Life, Program};

/// How soon it is looked whether what was killed is over. Then it takes twice as long each time, up to a second: one
/// that hangs in the system ends when that lets it.
const LOOK: Duration = Duration::from_millis(1);

/// A child with its streams. Dropping it kills it.
pub(crate) struct Child {
    // Dropped first: it is to be killed before it sees its input end.
    leash: Leash,
    pub(crate) pid: u32,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Option<ChildStdout>,
    pub(crate) stderr: Option<ChildStderr>,
    news: News,
}

/// How the end of a child is heard of.
enum News {
    /// This is readable then.
    Watched(AsyncFd<OwnedFd>),
    /// Some child of this process has ended: perhaps this one.
    Signal(tokio::signal::unix::Signal),
}

/// A process that ends when this is dropped. `None` once it was waited for.
struct Leash(Option<Process>, Option<ExitStatus>);

impl Child {
    /// Starts a program on the thread with which it is to die. Panics in a runtime without I/O; nothing is left then.
    pub(super) fn start(program: &Program) -> io::Result<Child> {
        let (theirs_in, ours_in) = io::pipe()?;
        let (ours_out, theirs_out) = io::pipe()?;
        let (ours_err, theirs_err) = io::pipe()?;
        let theirs = [aside(theirs_in.into())?, aside(theirs_out.into())?, aside(theirs_err.into())?];
        let process = launch(program, &theirs)?;
        let pid = process.id();
        let leash = Leash(Some(process), None);
        let watched = leash.0.as_ref().and_then(Process::news);
        Ok(Child {
            pid,
            stdin: Some(ChildStdin::from_std(OwnedFd::from(ours_in).into())?),
            stdout: Some(ChildStdout::from_std(OwnedFd::from(ours_out).into())?),
            stderr: Some(ChildStderr::from_std(OwnedFd::from(ours_err).into())?),
            news: match watched {
                Some(it) => News::Watched(it),
                None => News::Signal(signal(SignalKind::child())?),
            },
            leash,
        })
    }

    /// Waits for its end; can be given up, and asked for again. `None` where nobody knows how it ended.
    pub(crate) async fn wait(&mut self) -> Option<ExitStatus> {
        loop {
            if self.leash.look() {
                return self.leash.1;
            }
            match &mut self.news {
                News::Watched(watched) => match watched.readable().await {
                    Ok(mut told) if !self.leash.look() => told.clear_ready(),
                    Ok(_) => {}
                    Err(_) => return None,
                },
                News::Signal(signal) => drop(signal.recv().await),
            }
        }
    }

    /// Kills it; it has still to be waited for.
    pub(crate) fn kill(&self) {
        self.leash.kill();
    }
}

impl Leash {
    /// Whether it has ended.
    fn look(&mut self) -> bool {
        if let Some(process) = &mut self.0
            && let Life::Ended(status) = process.look()
        {
            (self.0, self.1) = (None, status);
        }
        self.0.is_none()
    }

    fn kill(&self) {
        // As long as it was not waited for, the number is its own.
        let pid = self.0.as_ref().and_then(|it| i32::try_from(it.id()).ok());
        if let Some(pid) = pid {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        if !self.look() {
            self.kill();
            // Without that thread it stays among the processes that have ended until we do.
            if let (Some(killed), Ok(reaper)) = (self.0.take(), reaper()) {
                let _ = reaper.send(killed);
            }
        }
    }
}

/// Waits for what was killed.
fn reaper() -> io::Result<mpsc::Sender<Process>> {
    static REAPER: OnceLock<mpsc::Sender<Process>> = OnceLock::new();
    if let Some(sender) = REAPER.get() {
        return Ok(sender.clone());
    }
    let (sender, ends) = mpsc::channel::<Process>();
    // Two first callers may both get here; the loser's thread ends as its sender is dropped.
    std::thread::Builder::new().name("mcp-reaper".to_owned()).spawn(move || {
        while let Ok(first) = ends.recv() {
            let (mut killed, mut look) = (vec![first], LOOK);
            while !killed.is_empty() {
                std::thread::sleep(look);
                let before = killed.len();
                killed.extend(ends.try_iter());
                look = if killed.len() > before { LOOK } else { (look * 2).min(Duration::from_secs(1)) };
                killed.retain_mut(|it| it.look() == Life::Runs);
            }
        }
    })?;
    Ok(REAPER.get_or_init(|| sender).clone())
}

/// Out of the way of the numbers that a child's streams get.
fn aside(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    match descriptor.as_raw_fd() {
        // The copy has a number of its own, above these.
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

    fn program(command: &str, args: &[&str]) -> Program {
        let path = ("PATH".into(), "/usr/bin:/bin".into());
        let args = args.iter().map(|it| (*it).to_owned()).collect();
        Program { command: command.to_owned(), args, env: [path].into(), cwd: None }
    }

    /// By another process: what this one has open to write, a child of another test's may have too, for a moment, and
    /// what is open to write cannot be run.
    fn write(path: &Path, text: &str, mode: u32) {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "printf %s \"$1\" >\"$0\""]).arg(path).arg(text);
        assert!(shell.status().unwrap().success());
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// What it writes, and how it ends.
    async fn run(program: &Program) -> (String, ExitStatus) {
        let mut child = Child::start(program).unwrap();
        drop(child.stdin.take());
        let mut said = String::new();
        child.stdout.take().unwrap().read_to_string(&mut said).await.unwrap();
        child.stderr.take().unwrap().read_to_string(&mut said).await.unwrap();
        (said, child.wait().await.unwrap())
    }

    #[track_caller]
    fn refused(program: &Program) -> io::ErrorKind {
        Child::start(program).map(drop).unwrap_err().kind()
    }

    async fn is_gone(pid: u32) {
        for _ in 0..5000 {
            if !Path::new(&format!("/proc/{pid}")).exists() {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        panic!("{pid} is still there");
    }

    #[tokio::test]
    async fn it_has_what_it_is_given_and_nothing_else() {
        let script = "echo $0 $# $2; pwd; env | grep -v ^_= | sort; echo problem >&2; exit 7";
        let mut given = program("sh", &["-c", script, "name", "a b", "grün"]);
        given.env.insert("OWN".into(), "x=y z".into());
        given.cwd = Some("/usr".into());
        let (said, status) = run(&given).await;
        assert_eq!(said, "name 2 grün\n/usr\nOWN=x=y z\nPATH=/usr/bin:/bin\nPWD=/usr\nproblem\n");
        assert_eq!(status.code(), Some(7));
    }

    #[tokio::test]
    async fn its_signals_are_as_those_of_a_program_from_a_shell() {
        // The runtime has a handler for this one, and whoever starts children may hold some back.
        let _handled = signal(SignalKind::user_defined1()).unwrap();
        let mut before = nix::sys::signal::SigSet::empty();
        let held = nix::sys::signal::SigSet::from(Signal::SIGTERM);
        let how = nix::sys::signal::SigmaskHow::SIG_BLOCK;
        nix::sys::signal::pthread_sigmask(how, Some(&held), Some(&mut before)).unwrap();
        let (said, _) = run(&program("cat", &["/proc/self/status"])).await;
        let signals = |name: &str| {
            let line = said.lines().find_map(|it| it.strip_prefix(name)).unwrap();
            u64::from_str_radix(line.trim_start_matches(':').trim(), 16).unwrap()
        };
        assert_eq!((signals("SigBlk"), signals("SigCgt")), (0, 0));
        // What a program is started with from outside may ignore some, but a closed pipe ends who writes to it.
        assert_eq!(signals("SigIgn") & (1 << (Signal::SIGPIPE as i32 - 1)), 0);
        // Ours are as they were.
        let ours = nix::sys::signal::SigSet::thread_get_mask().unwrap();
        assert!(ours.contains(Signal::SIGTERM) && !ours.contains(Signal::SIGINT));
        before.thread_set_mask().unwrap();
    }

    #[tokio::test]
    async fn it_is_found_as_a_shell_finds_it() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("first"), folder.path().join("second"));
        for it in [&first, &second] {
            std::fs::create_dir(it).unwrap();
        }
        // Its own `PATH` is looked through, not ours; what may not be run is passed by.
        write(&first.join("it"), "#!/bin/sh\necho first", 0o644);
        write(&second.join("it"), "#!/bin/sh\necho second $1", 0o755);
        let mut it = program("it", &["one"]);
        let path = |it: &mut Program, text: String| it.env.insert("PATH".into(), text.into());
        path(&mut it, format!("/nowhere:{}:{}", first.display(), second.display()));
        assert_eq!(run(&it).await.0, "second one\n");
        // A text without an interpreter is the shell's.
        write(&second.join("it"), "echo text $0 $1", 0o755);
        assert_eq!(run(&it).await.0, format!("text {}/it one\n", second.display()));
        // An empty folder is the one it runs in, and so is the beginning of a path that has none.
        it.cwd = Some(second.clone());
        path(&mut it, ":/nowhere".to_owned());
        assert_eq!(run(&it).await.0, "text it one\n");
        it.command = "./it".to_owned();
        assert_eq!(run(&it).await.0, "text ./it one\n");
        it.env.clear();
        it.command = "true".to_owned();
        assert!(run(&it).await.1.success());
    }

    #[tokio::test]
    async fn what_cannot_be_started_says_why_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("text");
        write(&text, "echo", 0o644);
        for nobody in ["no-such-program-anywhere", "/no/such/program", ""] {
            assert_eq!(refused(&program(nobody, &[])), io::ErrorKind::NotFound, "{nobody}");
        }
        let below = text.join("program");
        assert_eq!(refused(&program(below.to_str().unwrap(), &[])), io::ErrorKind::NotADirectory);
        assert_eq!(refused(&program(text.to_str().unwrap(), &[])), io::ErrorKind::PermissionDenied);
        assert_eq!(refused(&program("/usr", &[])), io::ErrorKind::PermissionDenied);
        let large = "x".repeat(4 << 20);
        assert_eq!(refused(&program("true", &[&large])), io::ErrorKind::ArgumentListTooLong);
        assert_eq!(refused(&program("true", &["a\0b"])), io::ErrorKind::InvalidInput);
        let lost = Program { cwd: Some("/no/such/folder".into()), ..program("true", &[]) };
        assert_eq!(refused(&lost), io::ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn it_leads_a_group_and_is_gone_when_nobody_holds_it() {
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
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
        // Asked again it says the same, and a dead child's number is nobody's to kill.
        assert_eq!(killed.wait().await, Some(status));
        drop((killed, children));
        for pid in pids {
            is_gone(pid).await;
        }
    }

    #[tokio::test]
    async fn its_end_is_heard_of_where_there_is_nothing_to_watch() {
        let mut child = Child::start(&program("sleep", &["0.05"])).unwrap();
        child.news = News::Signal(signal(SignalKind::child()).unwrap());
        assert!(child.wait().await.unwrap().success());
    }

    #[tokio::test]
    async fn an_end_that_somebody_else_has_waited_for_is_an_end() {
        let mut child = Child::start(&program("true", &[])).unwrap();
        nix::sys::wait::waitpid(Pid::from_raw(i32::try_from(child.pid).unwrap()), None).unwrap();
        assert_eq!(child.wait().await, None);
    }
}
