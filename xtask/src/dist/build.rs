//! Builds the program for a target.
//!
//! Paths of the machine are not in the program, so a second machine builds the same bytes.

use std::env;
use std::path::PathBuf;

use crate::cargo::{cargo, run as run_command, target_folder};
use crate::cross::StandardLibrary;
use crate::dist::target::Target;
use crate::error::Error;
use crate::tree;

/// How the programs are built.
#[derive(Debug, Clone)]
pub(super) struct BuildSettings {
    /// The profile of Cargo: `dist`, or a faster one to try the packages.
    pub(super) profile: String,
    /// The commit that `mcp-host --version` shows.
    pub(super) commit: String,
    /// The time of the commit, in seconds since 1970.
    pub(super) commit_time: String,
    /// The Python environment with cargo-zigbuild.
    pub(super) python_environment: PathBuf,
}

/// Builds the program and returns its path.
///
/// Programs for Linux are linked by zig, which has the C libraries of all targets. Every other program is linked by
/// the linker of the system.
pub(super) fn build_program(target: Target, settings: &BuildSettings) -> Result<PathBuf, Error> {
    let standard_library = StandardLibrary::find(target.triple)
        .ok_or_else(|| Error::message(StandardLibrary::advice(target.triple)))?;
    let mut command = cargo();
    let mut flags = vec![
        format!("--remap-path-prefix={}=.", tree::root().display()),
        format!("--remap-path-prefix={}=cargo", cargo_home().display()),
    ];
    if target.is_linux() {
        let path = env::var_os("PATH").unwrap_or_default();
        let programs = [settings.python_environment.join("bin")].into_iter().chain(env::split_paths(&path));
        command.env("PATH", env::join_paths(programs).map_err(|error| Error::message(error.to_string()))?);
        command.args(["zigbuild", "--target", &target.zig_triple()]);
    } else {
        command.args(["build", "--target", target.triple]);
    }
    command.args(["--locked", "--package", "mcp-host-cli", "--profile", &settings.profile]);
    standard_library.add_to(&mut command);
    if standard_library == StandardLibrary::Built && target.triple.ends_with("-musl") {
        // A compiler without the target has no C start files either; those of zig are linked.
        flags.push("-Clink-self-contained=no".to_owned());
        flags.push("-Ctarget-feature=+crt-static".to_owned());
    }
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    command.env("MCP_HOST_COMMIT", &settings.commit).env("SOURCE_DATE_EPOCH", &settings.commit_time);
    command.env("CARGO_INCREMENTAL", "0");
    run_command(&mut command)?;
    let folder = if settings.profile == "dev" { "debug" } else { &settings.profile };
    Ok(target_folder().join(target.triple).join(folder).join(target.program_name()))
}

/// The folder of Cargo with the sources of dependencies.
fn cargo_home() -> PathBuf {
    env::var_os("CARGO_HOME")
        .map_or_else(|| PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cargo"), PathBuf::from)
}
