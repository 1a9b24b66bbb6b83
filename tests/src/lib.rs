//! What the tests of this package share: the real binary, run as a user runs it, and a look at what it leaves behind.
//!
//! Nothing here knows the crates: the binary is the one thing under test.

#![forbid(unsafe_code)]
#![expect(clippy::print_stderr, reason = "a test that is skipped says so")]

pub mod faults;
mod isolation;
#[cfg(doctest)]
mod library;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;

pub use isolation::{Isolation, ProcessResources, resident_memory, run_isolated, run_isolated_in};

/// The workspace's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the package lies in the workspace")
}

/// A command line's words, as a shell splits them: blanks between them, quotes of both kinds around them or inside.
pub fn words(line: &str) -> Vec<String> {
    let mut res = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for it in line.chars() {
        match quote {
            Some(open) if it == open => quote = None,
            Some(_) => word.get_or_insert_default().push(it),
            None if it == '\'' || it == '"' => {
                quote = Some(it);
                word.get_or_insert_default();
            }
            None if it.is_whitespace() => res.extend(word.take()),
            None => word.get_or_insert_default().push(it),
        }
    }
    res.extend(word);
    res
}

/// The program, built if it is not.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| built("mcp-cli", "mcp-host"))
}

/// A binary of a package, built if it is not: `cargo test -p mcp-tests` run_isolated builds no other package's. It is built in
/// the profile that `MCP_TEST_PROFILE` names.
pub fn built(package: &str, binary: &str) -> PathBuf {
    let profile = std::env::var("MCP_TEST_PROFILE").ok();
    let output = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", package, "--bin", binary, "--message-format=json"])
        .args(["--profile", profile.as_deref().unwrap_or("dev")])
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo runs, for it runs this test");
    assert!(output.status.success(), "{binary} does not build");
    let lines = String::from_utf8_lossy(&output.stdout);
    lines
        .lines()
        .filter_map(|it| serde_json::from_str::<Value>(it).ok())
        .find_map(|it| it["executable"].as_str().map(PathBuf::from))
        .expect("cargo names the executable that it built")
}

/// What a run of the program brought.
#[derive(Debug)]
pub struct ProgramOutput {
    /// Its exit status; `None` when a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl ProgramOutput {
    /// Standard output as the one JSON document that it has to be.
    #[track_caller]
    pub fn json(&self) -> Value {
        match serde_json::from_str(&self.stdout) {
            Ok(value) => value,
            Err(error) => panic!("no JSON ({error}): {self:#?}"),
        }
    }
}

/// A run of the program, in a state folder of its own.
pub struct Run {
    command: Command,
}

impl Run {
    /// The program with these arguments, in `directory`, its receipts in `state`.
    pub fn new(directory: &Path, state: &Path, arguments: &[&str]) -> Run {
        let mut command = Command::new(binary());
        command.args(arguments).current_dir(directory).env("XDG_STATE_HOME", state).stdin(Stdio::null());
        Run { command }
    }

    /// With one more variable in its environment.
    pub fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Run {
        self.command.env(name, value);
        self
    }

    /// With this file as its standard input.
    pub fn input(mut self, file: std::fs::File) -> Run {
        self.command.stdin(file);
        self
    }

    /// With a person who may type: its standard input is a pipe.
    pub fn typing(mut self) -> Run {
        self.command.stdin(Stdio::piped());
        self
    }

    /// Runs to the end.
    pub fn finish(mut self) -> ProgramOutput {
        let Output { status, stdout, stderr } = self.command.output().expect("the program starts");
        let text = |it: Vec<u8>| String::from_utf8_lossy(&it).into_owned();
        ProgramOutput { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }

    /// Starts, and goes on beside the test.
    pub fn start(mut self) -> Child {
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
    }
}

/// Is there a process with this id that is no zombie?
pub fn lives(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|it| it.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z')))
}

/// Waits until `holds`, at most 20 seconds.
#[track_caller]
pub fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(90), "still not: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The folder an environment variable names, for tests that need something installed.
///
/// `cargo xtask test` installs it and sets the variable. Without it the test says so and is skipped; in CI that is a
/// failure.
pub fn installed(variable: &str) -> Option<PathBuf> {
    let found = std::env::var_os(variable).map(PathBuf::from).filter(|it| it.is_dir());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "{variable} names no folder: run `cargo xtask test`");
        eprintln!("SKIPPED: {variable} names no folder; `cargo xtask test` installs what this test needs");
    }
    found
}

/// Is there a program of this name? Without it a test says so and is skipped; in CI that is a failure.
pub fn installed_program(name: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).any(|it| it.join(name).is_file());
    if !found {
        assert!(std::env::var_os("CI").is_none(), "there is no program {name}");
        eprintln!("SKIPPED: there is no program {name}");
    }
    found
}
