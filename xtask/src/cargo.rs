//! Cargo and other programs as child processes.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use crate::error::Error;
use crate::tree;

/// The command `cargo`, which runs at the root of the workspace.
///
/// The package variables of xtask are removed: some build scripts run again when these change.
pub(crate) fn cargo() -> Command {
    let mut res = Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    res.current_dir(tree::root());
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            res.env_remove(&name);
        }
    }
    res
}

/// Runs a command and waits for it. The command inherits standard output and error.
pub(crate) fn run(command: &mut Command) -> Result<(), Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status =
        command.status().map_err(|error| Error::message(format!("could not start {program}: {error}")))?;
    if status.success() { Ok(()) } else { Err(Error::Exit(exit_code(status.code()))) }
}

/// Our exit code for the exit code of a child: the same, or 1 if a signal ended the child.
pub(crate) fn exit_code(code: Option<i32>) -> u8 {
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// Runs a command and returns its standard output. An error contains its standard error.
pub(crate) fn run_for_output(command: &mut Command) -> Result<String, Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output =
        command.output().map_err(|error| Error::message(format!("could not start {program}: {error}")))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(Error::message(format!("{program} failed: {}", stderr.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The version line of the compiler.
pub(crate) fn compiler_version() -> Result<String, Error> {
    run_for_output(Command::new("rustc").arg("-V").current_dir(tree::root()))
}

/// Builds programs of the benchmarks with the profile `measured`, and returns their folder.
pub(crate) fn build_measured(arguments: &[&str]) -> Result<PathBuf, Error> {
    run(cargo().args(["build", "-p", "mcp-benches", "--profile", "measured"]).args(arguments))?;
    Ok(measured_folder())
}

/// The folder of the programs with the profile `measured`.
pub(crate) fn measured_folder() -> PathBuf {
    target_folder().join("measured")
}

/// Builds the programs that tests start, and returns their folder.
///
/// Only with the selection of a whole test run, which includes the examples, the features of all packages are the same
/// as in the run, and nothing is compiled twice.
pub(crate) fn build_test_programs() -> Result<PathBuf, Error> {
    let mut command = cargo();
    command.args(["build", "--workspace", "--all-features", "--examples"]);
    for program in ["mcp-host", "acp-agent", "acp-proxy", "faulty", "rmcp_tasks"] {
        command.args(["--bin", program]);
    }
    run(&mut command)?;
    Ok(target_folder().join("debug"))
}

/// The folder of Cargo's output.
pub(crate) fn target_folder() -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| OsString::from("target"));
    tree::root().join(target)
}

/// Whether the command runs in continuous integration, where a missing program is an error.
pub(crate) fn is_ci() -> bool {
    env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}
