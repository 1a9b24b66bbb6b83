//! Runs the program as a user does, and finds what tests need on the machine.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// The root of the workspace.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap()
}

/// Splits a command line like a shell: at whitespace, with quotes of both kinds.
pub fn split_command_line(line: &str) -> Vec<String> {
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

/// The path of `mcp-host`, built if necessary.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| build_binary("mcp-host-cli", "mcp-host"))
}

/// Builds a binary of another package and returns its path. `MCP_TEST_PROFILE` names the profile. The programs in the
/// folder `MCP_TEST_PROGRAMS` are up to date.
pub fn build_binary(package: &str, binary: &str) -> PathBuf {
    if let Some(programs) = std::env::var_os("MCP_TEST_PROGRAMS") {
        return Path::new(&programs).join(binary);
    }
    let profile = std::env::var("MCP_TEST_PROFILE").ok();
    let output = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", package, "--bin", binary, "--message-format=json"])
        .args(["--profile", profile.as_deref().unwrap_or("dev")])
        .current_dir(root())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "{binary} does not build");
    let lines = String::from_utf8_lossy(&output.stdout);
    lines
        .lines()
        .filter_map(|it| serde_json::from_str::<Value>(it).ok())
        .find_map(|it| it["executable"].as_str().map(PathBuf::from))
        .unwrap()
}

/// The output of a run of the program.
#[derive(Debug)]
pub struct ProgramOutput {
    /// The exit code; `None` if a signal ended the process.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl ProgramOutput {
    /// Standard output as one JSON document.
    #[track_caller]
    pub fn json(&self) -> Value {
        match serde_json::from_str(&self.stdout) {
            Ok(value) => value,
            Err(error) => panic!("no JSON ({error}): {self:#?}"),
        }
    }
}

/// A run of the program with its own state folder.
pub struct Run {
    command: Command,
}

impl Run {
    /// The program with these arguments in `directory`, with its receipts in `state`. It does not use the keyring of
    /// the user.
    pub fn new(directory: &Path, state: &Path, arguments: &[&str]) -> Run {
        let mut command = Command::new(binary());
        command.args(arguments).current_dir(directory).stdin(Stdio::null());
        command.env("XDG_STATE_HOME", state).env("MCP_HOST_KEYRING", "off");
        Run { command }
    }

    /// Another program, such as git, in `directory`. It finds `mcp-host` on its `PATH`. It has no other variable of the
    /// test, and `home` as its home, so that neither the user's configuration nor a surrounding git hook changes it.
    pub fn of_other_program(program: &str, directory: &Path, home: &Path, arguments: &[&str]) -> Run {
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let own = binary().parent().map(Path::to_owned);
        let paths = std::env::join_paths(own.into_iter().chain(std::env::split_paths(&inherited))).unwrap();
        let mut command = Command::new(program);
        command.args(arguments).current_dir(directory).env_clear().env("PATH", paths).env("HOME", home);
        command.env("MCP_HOST_KEYRING", "off");
        command.envs(["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"].map(|it| (it, "Ann")));
        command.envs(["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"].map(|it| (it, "ann@example.com")));
        command.stdin(Stdio::null());
        Run { command }
    }

    /// Adds an environment variable.
    pub fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Run {
        self.command.env(name, value);
        self
    }

    /// Sets the standard input.
    pub fn input_file(mut self, file: std::fs::File) -> Run {
        self.command.stdin(file);
        self
    }

    /// Uses a pipe as standard input.
    pub fn piped_input(mut self) -> Run {
        self.command.stdin(Stdio::piped());
        self
    }

    /// Runs to the end.
    pub fn finish(mut self) -> ProgramOutput {
        let Output { status, stdout, stderr } = self.command.output().unwrap();
        let text = |it: Vec<u8>| String::from_utf8_lossy(&it).into_owned();
        ProgramOutput { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }

    /// Starts in the background.
    pub fn start(mut self) -> Child {
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }
}

/// The folder in an environment variable, for tests that need installed packages.
///
/// `cargo xtask test` installs them and sets the variable. Without it the test is skipped with a message; in CI it
/// fails.
pub fn installed_folder(variable: &str) -> Option<PathBuf> {
    let found = std::env::var_os(variable).map(PathBuf::from).filter(|it| it.is_dir());
    if found.is_none() {
        assert!(std::env::var_os("CI").is_none(), "{variable} names no folder: run `cargo xtask test`");
        eprintln!("SKIPPED: {variable} names no folder; `cargo xtask test` installs what this test needs");
    }
    found
}

/// Whether a program with this name is installed. Without it the test is skipped with a message; in CI it fails.
pub fn installed_program(name: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).any(|it| it.join(name).is_file());
    if !found {
        assert!(std::env::var_os("CI").is_none(), "there is no program {name}");
        eprintln!("SKIPPED: there is no program {name}");
    }
    found
}
