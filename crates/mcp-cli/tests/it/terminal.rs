//! A terminal in tmux, with a tmux server per test. Tests wait until it shows a text.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use mcp_testkit::wait::TIMEOUT;

use crate::support::{PROGRAM, Workspace};

/// The number of the next tmux server.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// A tmux window that is closed on drop.
pub(crate) struct Terminal {
    socket: PathBuf,
}

impl Terminal {
    /// Starts the program with these arguments in a window of this size (columns, lines). When the program has
    /// ended, the window shows `ended CODE, the terminal is as before`, or `the terminal is another` if its
    /// settings were changed. Returns `None` if tmux is not installed; the test is then skipped, except in CI.
    pub(crate) fn start(workspace: &Workspace, arguments: &str, size: (u16, u16)) -> Option<Terminal> {
        if Command::new("tmux").arg("-V").output().is_err() {
            assert!(std::env::var_os("CI").is_none(), "tmux is not installed");
            let _ = writeln!(std::io::stderr(), "skipped: tmux is not installed");
            return None;
        }
        let path = workspace.path().display();
        let script = format!(
            "trap : INT\nbefore=$(stty -g)\n{PROGRAM} {arguments}\ncode=$?\n\
             if [ \"$(stty -g)\" = \"$before\" ]; then echo \"ended $code, the terminal is as before\"; \
             else echo \"ended $code, the terminal is another\"; fi\nexec sleep 600\n"
        );
        // Each terminal has its own tmux server: a previous one of the same workspace may still be ending.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let script_name = format!("in-terminal-{number}.sh");
        workspace.write(&script_name, &script);
        let res = Terminal { socket: workspace.path().join(format!("tmux-{number}")) };
        let (columns, lines) = (size.0.to_string(), size.1.to_string());
        let environment = [
            format!("HOME={path}"),
            format!("PATH={path}/bin:/usr/bin:/bin"),
            format!("XDG_STATE_HOME={path}/state"),
            "MCP_HOST_KEYRING=off".to_owned(),
            "LANG=C.UTF-8".to_owned(),
            "TERM=screen-256color".to_owned(),
        ];
        let mut arguments = vec!["new-session", "-d", "-x", &columns, "-y", &lines, "-c"];
        let folder = workspace.path().to_str().unwrap();
        arguments.extend([folder, "env", "-i"]);
        arguments.extend(environment.iter().map(String::as_str));
        arguments.extend(["sh", &script_name]);
        let started = res.tmux(&arguments);
        assert!(started.status.success(), "{started:?}");
        Some(res)
    }

    fn tmux(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        command.arg("-u").arg("-f").arg("/dev/null").arg("-S").arg(&self.socket).args(arguments);
        command.env_remove("TMUX").output().unwrap()
    }

    /// The current content of the window.
    pub(crate) fn shows(&self) -> String {
        let output = self.tmux(&["capture-pane", "-p"]);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Waits until the window contains this text, and returns the content of the window.
    #[track_caller]
    pub(crate) fn until(&self, text: &str) -> String {
        self.until_it(text, |screen| screen.contains(text))
    }

    /// Waits until the content of the window fulfils a condition, and returns it. `what` describes it for the
    /// failure.
    #[track_caller]
    pub(crate) fn until_it(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let shown = self.shows();
            if is_so(&shown) {
                return shown;
            }
            assert!(begun.elapsed() < TIMEOUT, "no `{what}` in:\n{shown}");
            // No sleep is needed: each query starts a process.
        }
    }

    /// Types text literally, without interpreting key names.
    pub(crate) fn types(&self, text: &str) {
        assert!(self.tmux(&["send-keys", "-l", "--", text]).status.success());
    }

    /// Presses keys by their names: `Enter`, `Tab`, `C-c`.
    pub(crate) fn press(&self, keys: &[&str]) {
        let mut arguments = vec!["send-keys"];
        arguments.extend(keys);
        assert!(self.tmux(&arguments).status.success());
    }

    /// Changes the size of the window.
    pub(crate) fn resize(&self, columns: u16, lines: u16) {
        let (columns, lines) = (columns.to_string(), lines.to_string());
        assert!(self.tmux(&["resize-window", "-x", &columns, "-y", &lines]).status.success());
    }

    /// The process id of the program.
    pub(crate) fn program(&self) -> u32 {
        let output = self.tmux(&["display-message", "-p", "#{pane_pid}"]);
        let shell: u32 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
        let own = mcp_testkit::process::children(shell);
        *own.first().unwrap_or_else(|| panic!("no program in:\n{}", self.shows()))
    }
}

impl Terminal {
    /// Closes the window, even if the program still runs in it.
    pub(crate) fn close(&self) {
        let _ = self.tmux(&["kill-server"]);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.close();
    }
}
