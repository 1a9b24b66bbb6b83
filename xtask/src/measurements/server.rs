//! The HTTP server of the benchmarks, and processes that are pinned to one processor.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::error::Error;

/// A running server, killed on drop.
pub(crate) struct Server {
    child: Child,
    url: String,
}

impl Server {
    /// Starts the server and waits for its URL. `reply` is `json` or `sse`.
    pub(crate) fn start(folder: &Path, reply: &str, is_pinned: bool) -> Result<Server, Error> {
        let failed = |reason: String| Error::message(format!("the benchmark server: {reason}"));
        let mut command = pinned_command(&folder.join("server"), is_pinned);
        command.args(["--mode", "http", "--reply", reply]).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let stdout = child.stdout.take().expect("standard output is piped");
        let mut res = Server { child, url: String::new() };
        BufReader::new(stdout).read_line(&mut res.url).map_err(|error| failed(error.to_string()))?;
        res.url.truncate(res.url.trim_end().len());
        Ok(res)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The process may have exited already; then a client has reported an error.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command that runs on one processor if `is_pinned` and the system supports it. Without pinning, wake-ups across
/// processors dominate short times.
pub(crate) fn pinned_command(program: &Path, is_pinned: bool) -> Command {
    let can_pin = is_pinned && Command::new("taskset").arg("-V").output().is_ok_and(|it| it.status.success());
    if !can_pin {
        return Command::new(program);
    }
    let mut res = Command::new("taskset");
    res.args(["-c", "1"]).arg(program);
    res
}
