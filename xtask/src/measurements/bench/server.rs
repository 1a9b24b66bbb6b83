//! The server over HTTP that clients are measured against, and the processor that both share where times are short.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::error::Error;

/// A server that ends with this.
pub(super) struct Server {
    child: Child,
    url: String,
}

impl Server {
    pub(super) fn start(folder: &Path, reply: &str, is_pinned: bool) -> Result<Server, Error> {
        let failed = |why: String| Error::message(format!("the server to measure against: {why}"));
        let mut command = pinned(&folder.join("server"), is_pinned);
        command.args(["--mode", "http", "--reply", reply]).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|it| failed(it.to_string()))?;
        let stdout = child.stdout.take().expect("it was asked for");
        let mut res = Server { child, url: String::new() };
        BufReader::new(stdout).read_line(&mut res.url).map_err(|it| failed(it.to_string()))?;
        res.url.truncate(res.url.trim_end().len());
        Ok(res)
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself, which a client has told by then.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program on one processor, where that is asked for and the system can do it: between two processors of an idle
/// machine most of a short time is the waking up.
pub(super) fn pinned(program: &Path, is_pinned: bool) -> Command {
    let can = is_pinned && Command::new("taskset").arg("-V").output().is_ok_and(|it| it.status.success());
    if !can {
        return Command::new(program);
    }
    let mut res = Command::new("taskset");
    res.args(["-c", "1"]).arg(program);
    res
}
