//! Starting Cargo, and other programs, from inside Cargo.

use std::env;
use std::ffi::OsString;
use std::process::Command;

use crate::failure::Failure;
use crate::tree;

/// Cargo at the root of the workspace.
///
/// Some build scripts run again when the package variables of their surroundings change, so those of xtask itself
/// are not handed on: the same build stays the same build.
pub(crate) fn cargo() -> Command {
    let mut res = Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    res.current_dir(tree::root());
    for (name, _) in env::vars_os() {
        let ours = name.to_string_lossy();
        if ours.starts_with("CARGO_PKG_") || ours.starts_with("CARGO_MANIFEST_") {
            res.env_remove(&name);
        }
    }
    res
}

/// Runs a command to its end; its output goes where ours goes.
pub(crate) fn run(command: &mut Command) -> Result<(), Failure> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status =
        command.status().map_err(|error| Failure::words(format!("could not start {program}: {error}")))?;
    if status.success() { Ok(()) } else { Err(Failure::Exit(exit_code(status.code()))) }
}

/// The code to end with; a signal has none.
pub(crate) fn exit_code(code: Option<i32>) -> u8 {
    code.and_then(|it| u8::try_from(it).ok()).unwrap_or(1)
}
