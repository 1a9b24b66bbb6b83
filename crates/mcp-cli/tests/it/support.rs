//! Test helpers: workspaces, program runs and the demo server.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// The program under test.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-host");

/// A Dominds file with only the demo server.
pub(crate) const DEMO: &str = "\
version: 1
servers:
  demo:
    transport: stdio
    command: mcp-host
    args: [demo-server]
";

/// A Dominds file with the demo server, shared: one process for the whole run.
pub(crate) const SHARED_DEMO: &str = "\
version: 1
servers:
  demo:
    truely-stateless: true
    transport: stdio
    command: mcp-host
    args: [demo-server]
";

/// A temporary folder with its own state folder.
pub(crate) struct Workspace {
    folder: TempDir,
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Workspace {
    pub(crate) fn empty() -> Workspace {
        Workspace { folder: tempfile::tempdir().unwrap() }
    }

    /// A folder with this `.minds/mcp.yaml`.
    pub(crate) fn dominds(text: &str) -> Workspace {
        let res = Workspace::empty();
        res.write(".minds/mcp.yaml", text);
        res
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A program `name` in the folder `bin`, which is the only one on the `PATH` besides the system's.
    pub(crate) fn script(&self, name: &str, text: &str) {
        self.executable(name, &format!("#!/bin/sh\n{text}\n"));
    }

    /// An executable file `name` in the folder `bin`.
    pub(crate) fn executable(&self, name: &str, text: &str) {
        self.write(&format!("bin/{name}"), text);
        let path = self.path().join("bin").join(name);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The program with these arguments, not started yet. It does not use the keyring of the user.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut res = Command::new(PROGRAM);
        res.args(arguments)
            .current_dir(self.path())
            .env_clear()
            .env("PATH", format!("{}/bin:/usr/bin:/bin", self.path().display()))
            .env("HOME", self.path())
            .env("COLUMNS", "100")
            .env("MCP_HOST_KEYRING", "off")
            .env("XDG_STATE_HOME", self.path().join("state"))
            .env("XDG_RUNTIME_DIR", self.path().join("runtime"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        res
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        Run::of(self.command(arguments).output().unwrap())
    }

    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &str) -> Run {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        let written = child.stdin.take().unwrap().write_all(input.as_bytes());
        // A program that rejects its arguments does not read standard input.
        if let Err(error) = written {
            assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        }
        Run::of(child.wait_with_output().unwrap())
    }
}

impl Run {
    pub(crate) fn of(output: Output) -> Run {
        Run {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Standard output as exactly one JSON document.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// The demo server over HTTP in a process that is killed on drop.
pub(crate) struct HttpDemo {
    child: Child,
    pub(crate) url: String,
}

impl HttpDemo {
    pub(crate) fn start(workspace: &Workspace) -> HttpDemo {
        let mut child = workspace.command(&["demo-server", "--http", "127.0.0.1:0"]).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().rsplit_once(' ').unwrap().1.to_owned();
        HttpDemo { child, url }
    }
}

impl Drop for HttpDemo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The folder of the project's examples.
pub(crate) fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}
