//! Windows: events of the console. A file has the access rights of its folder.

use std::env;
use std::fs::{self, Metadata, OpenOptions};
use std::io;
use std::path::Path;
use std::process::Command;

use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlLogoff, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close, ctrl_logoff,
    ctrl_shutdown,
};

use crate::runtime::signal::Signal;

/// The installed handlers of the events that end a program.
pub(crate) struct TerminationSignals {
    interrupt: CtrlC,
    interrupt_group: CtrlBreak,
    close: CtrlClose,
    logoff: CtrlLogoff,
    shutdown: CtrlShutdown,
}

impl TerminationSignals {
    /// Installs the handlers. Fails if the system refuses.
    pub(crate) fn install() -> io::Result<TerminationSignals> {
        Ok(TerminationSignals {
            interrupt: ctrl_c()?,
            interrupt_group: ctrl_break()?,
            close: ctrl_close()?,
            logoff: ctrl_logoff()?,
            shutdown: ctrl_shutdown()?,
        })
    }

    /// The next event. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.interrupt_group.recv() => Signal::Terminate,
            _ = self.close.recv() => Signal::Terminate,
            _ = self.logoff.recv() => Signal::Terminate,
            _ = self.shutdown.recv() => Signal::Terminate,
        }
    }
}

/// The handler of SIGHUP, which Windows does not have: it never receives a signal.
pub(crate) struct HangUp(());

impl HangUp {
    /// Installs nothing.
    pub(crate) fn install() -> io::Result<HangUp> {
        Ok(HangUp(()))
    }

    /// Never returns.
    pub(crate) async fn recv(&mut self) -> Option<()> {
        std::future::pending().await
    }
}

/// The settings of the console: the system restores them when the program ends.
pub(crate) struct TerminalSettings(());

impl TerminalSettings {
    /// Reads nothing.
    pub(crate) fn read() -> TerminalSettings {
        TerminalSettings(())
    }

    /// Restores nothing.
    pub(crate) fn restore(&self) {
        let TerminalSettings(()) = self;
    }
}

/// Reads a line of standard input, which is a terminal.
pub(crate) async fn read_terminal_line() -> io::Result<String> {
    let read = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        io::stdin().read_line(&mut line).map(|_| line)
    });
    read.await.map_err(io::Error::other)?
}

/// Options for a file, which has the access rights of its folder.
pub(crate) fn private_file_options() -> OpenOptions {
    OpenOptions::new()
}

/// Creates a folder, which has the access rights of the one above it. Blocks.
pub(crate) fn create_private_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// Fails: no shared host is started.
pub(crate) fn detach() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// No: there is no control socket that names a process.
pub(crate) fn is_running(_: u32) -> bool {
    false
}

/// Fails: there is no control socket that asks for it.
pub(crate) fn terminate_self() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// A command that starts this program again.
pub(crate) fn own_program() -> io::Result<Command> {
    env::current_exe().map(Command::new)
}

/// A text that differs between versions and builds of the program.
pub(crate) fn program_id() -> io::Result<String> {
    let file = fs::metadata(env::current_exe()?)?;
    Ok(format!("{}-{:?}", file.len(), file.modified()?))
}

/// Does nothing: a file has the access rights of its folder.
pub(crate) fn make_private(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Returns false: the standard library does not read access rights, so it is not known who can write to the file.
pub(crate) fn can_others_write(_: &Metadata) -> bool {
    false
}

/// Whether a file or folder is inside the home folder, which only its user and administrators can change by default.
pub(crate) fn is_trusted(path: &Path, _: &Metadata) -> bool {
    env::home_dir().is_some_and(|home| path.starts_with(home))
}

/// The command that opens a page in the user's browser, without the page.
pub(crate) fn browser_command() -> Command {
    let mut command = Command::new("rundll32.exe");
    command.arg("url.dll,FileProtocolHandler");
    command
}

/// Whether a browser can be opened.
pub(crate) fn has_display() -> bool {
    true
}
