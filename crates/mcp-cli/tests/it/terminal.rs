//! A terminal in tmux, with a tmux server per test. Tests wait until it shows a text.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::support::{PROGRAM, TIMEOUT, Workspace};

/// The number of the next tmux server.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// A tmux window that is closed on drop.
pub(crate) struct Terminal {
    socket: PathBuf,
}

impl Terminal {
    /// The program with these arguments, in a window of so many columns and lines. When it has ended the window says
    /// `ended CODE, the terminal is as before`, or that it is not. `None` where there is no tmux, and that is no failure.
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
        // A workspace may have several, one after the other, and the one before may not be gone yet.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let script_name = format!("in-terminal-{number}.sh");
        workspace.write(&script_name, &script);
        let res = Terminal { socket: workspace.path().join(format!("tmux-{number}")) };
        let (columns, lines) = (size.0.to_string(), size.1.to_string());
        let environment = [
            format!("HOME={path}"),
            format!("PATH={path}/bin:/usr/bin:/bin"),
            format!("XDG_STATE_HOME={path}/state"),
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

    /// What the window shows now.
    pub(crate) fn shows(&self) -> String {
        let output = self.tmux(&["capture-pane", "-p"]);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Waits until it shows this, and gives all that it shows then.
    #[track_caller]
    pub(crate) fn until(&self, text: &str) -> String {
        self.until_it(text, |it| it.contains(text))
    }

    /// Waits until it shows something like this.
    #[track_caller]
    pub(crate) fn until_it(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let shown = self.shows();
            if is_so(&shown) {
                return shown;
            }
            assert!(begun.elapsed() < TIMEOUT, "no `{what}` in:\n{shown}");
            // Asking again takes long enough to leave others the processor.
        }
    }

    /// Types text as it is.
    pub(crate) fn types(&self, text: &str) {
        assert!(self.tmux(&["send-keys", "-l", "--", text]).status.success());
    }

    /// Presses keys by their names: `Enter`, `Tab`, `C-c`.
    pub(crate) fn press(&self, keys: &[&str]) {
        let mut arguments = vec!["send-keys"];
        arguments.extend(keys);
        assert!(self.tmux(&arguments).status.success());
    }

    /// Gives the window another size.
    pub(crate) fn resize(&self, columns: u16, lines: u16) {
        let (columns, lines) = (columns.to_string(), lines.to_string());
        assert!(self.tmux(&["resize-window", "-x", &columns, "-y", &lines]).status.success());
    }

    /// The process of the program.
    pub(crate) fn program(&self) -> u32 {
        let output = self.tmux(&["display-message", "-p", "#{pane_pid}"]);
        let shell: u32 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
        let own = crate::support::children(shell);
        *own.first().unwrap_or_else(|| panic!("no program in:\n{}", self.shows()))
    }
}

impl Terminal {
    /// The window is closed, whatever runs in it.
    pub(crate) fn close(&self) {
        let _ = self.tmux(&["kill-server"]);
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.close();
    }
}
