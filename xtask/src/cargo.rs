//! Cargo and other programs as child processes.

use std::env;
use std::ffi::OsString;
use std::process::Command;

use crate::error::Error;
use crate::tree;

/// Cargo at the root of the workspace.
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

/// The exit code to use for a child's exit code; 1 if a signal ended it.
pub(crate) fn exit_code(code: Option<i32>) -> u8 {
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
