//! Unix: signals, termios, modes of files.

use std::env;
use std::fs::{self, DirBuilder, Metadata, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::sys::signal::{Signal as NixSignal, kill, raise};
use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use nix::unistd::{Pid, geteuid, setsid};
use tokio::signal::unix::{self, SignalKind};
use tokio::time::sleep;

use crate::runtime::signal::Signal;

/// The maximum size of a line of the terminal.
const MAX_TERMINAL_LINE: usize = 4096;

/// How often the terminal is read.
const TERMINAL_INTERVAL: Duration = Duration::from_millis(50);

/// The permission bits that let others than the owner write.
const GROUP_OR_OTHERS_WRITE: u32 = 0o022;

/// The permission bit that lets every user write.
const OTHERS_WRITE: u32 = 0o002;

/// The installed handlers of SIGINT and SIGTERM.
pub(crate) struct TerminationSignals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
}

impl TerminationSignals {
    /// Installs the handlers. Fails if the system refuses.
    pub(crate) fn install() -> io::Result<TerminationSignals> {
        Ok(TerminationSignals {
            interrupt: unix::signal(SignalKind::interrupt())?,
            terminate: unix::signal(SignalKind::terminate())?,
        })
    }

    /// The next signal. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }
}

/// The installed handler of SIGHUP.
pub(crate) struct HangUp(unix::Signal);

impl HangUp {
    /// Installs the handler. Fails if the system refuses.
    pub(crate) fn install() -> io::Result<HangUp> {
        unix::signal(SignalKind::hangup()).map(HangUp)
    }

    /// Waits for the next signal; `None` if there are no more. Cancel-safe.
    pub(crate) async fn recv(&mut self) -> Option<()> {
        self.0.recv().await
    }
}

/// The settings of the terminal at standard input.
pub(crate) struct TerminalSettings(Option<Termios>);

impl TerminalSettings {
    /// Reads the settings.
    pub(crate) fn read() -> TerminalSettings {
        TerminalSettings(tcgetattr(io::stdin().as_fd()).ok())
    }

    /// Restores the settings.
    pub(crate) fn restore(&self) {
        if let Some(settings) = &self.0 {
            // Fails if the terminal was closed.
            let _ = tcsetattr(io::stdin().as_fd(), SetArg::TCSADRAIN, settings);
        }
    }
}

/// Reads a line of the terminal. Cancel-safe: a line that was not returned is left to the next reader.
pub(crate) async fn read_terminal_line() -> io::Result<String> {
    // Another open file than that of standard input, which stays blocking.
    let mut terminal =
        OpenOptions::new().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open("/dev/tty")?;
    let mut line = [0; MAX_TERMINAL_LINE];
    loop {
        match terminal.read(&mut line) {
            Ok(length) => return Ok(String::from_utf8_lossy(&line[..length]).into_owned()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(TERMINAL_INTERVAL).await,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Options for a file that only its owner may read if it is new.
pub(crate) fn private_file_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Creates a folder that only the user may read, and those above it. Blocks.
pub(crate) fn create_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Leaves the session of the terminal, so that its signals do not reach this process.
pub(crate) fn detach() -> io::Result<()> {
    setsid().map(drop).map_err(io::Error::from)
}

/// Whether a process of this user exists.
pub(crate) fn is_running(process: u32) -> bool {
    i32::try_from(process).is_ok_and(|process| kill(Pid::from_raw(process), None).is_ok())
}

/// Sends SIGTERM to this process.
pub(crate) fn terminate_self() -> io::Result<()> {
    raise(NixSignal::SIGTERM).map_err(io::Error::from)
}

/// The file of this program. On Linux it is the running one, also if another version has replaced it.
fn program_path() -> io::Result<PathBuf> {
    let path = env::current_exe()?;
    if cfg!(target_os = "linux") && !path.exists() { Ok("/proc/self/exe".into()) } else { Ok(path) }
}

/// A command that starts this program again.
pub(crate) fn own_program() -> io::Result<Command> {
    let mut command = Command::new(program_path()?);
    command.arg0("mcp-host");
    Ok(command)
}

/// A text that differs between versions and builds of the program.
pub(crate) fn program_id() -> io::Result<String> {
    let file = fs::metadata(program_path()?)?;
    Ok(format!("{}-{}-{}-{}.{}", file.dev(), file.ino(), file.size(), file.mtime(), file.mtime_nsec()))
}

/// Removes the permissions of others. Blocks.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode();
    fs::set_permissions(path, Permissions::from_mode(mode & 0o700))
}

/// Whether every user can change the file.
pub(crate) fn can_others_write(file: &Metadata) -> bool {
    file.permissions().mode() & OTHERS_WRITE != 0
}

/// Whether a file or folder belongs to the current user or root, and only its owner can change it.
pub(crate) fn is_trusted(_: &Path, metadata: &Metadata) -> bool {
    let is_owned = metadata.uid() == geteuid().as_raw() || metadata.uid() == 0;
    is_owned && metadata.mode() & GROUP_OR_OTHERS_WRITE == 0
}

/// The command that opens a page in the user's browser, without the page.
pub(crate) fn browser_command() -> Command {
    Command::new(if cfg!(target_os = "macos") { "open" } else { "xdg-open" })
}

/// Whether a browser can be opened.
pub(crate) fn has_display() -> bool {
    cfg!(target_os = "macos") || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| env::var_os(name).is_some())
}
