//! A compiler for Windows: the target of rustup, or Debian's packages of a compiler and of the source of the standard
//! library, which is then built, too.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cargo::{cargo, run as run_command};
use crate::cross::StandardLibrary;
use crate::error::Error;
use crate::tree;

/// The target. Debian has a linker for it.
const TARGET: &str = "x86_64-pc-windows-gnu";

/// The C compiler and linker for Windows. Some dependencies have C code.
const LINKER: &str = "x86_64-w64-mingw32-gcc";

/// The packages of Debian that have all this.
const DEBIAN_PACKAGES: [&str; 3] = ["rustc-web", "rust-web-src", "gcc-mingw-w64-x86-64"];

/// Compiles for Windows.
pub(super) struct Toolchain(StandardLibrary);

impl Toolchain {
    /// Finds what is needed to compile, and wine if `runs_wine`. Installs it with apt if this is root on Debian, and
    /// otherwise names what is missing.
    pub(super) fn find_or_install(runs_wine: bool) -> Result<Toolchain, Error> {
        match find(runs_wine) {
            Ok(toolchain) => return Ok(toolchain),
            Err(missing) if !has_program("apt-get") => return Err(missing_error(&missing)),
            Err(_) => {}
        }
        run_command(Command::new("apt-get").args(["update", "--quiet"]))?;
        let mut install = Command::new("apt-get");
        install.args(["install", "--quiet", "--yes", "--no-install-recommends"]).args(DEBIAN_PACKAGES);
        if runs_wine {
            install.args(["wine", "wine64"]);
        }
        run_command(install.env("DEBIAN_FRONTEND", "noninteractive"))?;
        find(runs_wine).map_err(|missing| missing_error(&missing))
    }

    /// Whether what is needed to compile is on this machine.
    pub(super) fn is_installed() -> bool {
        find(false).is_ok()
    }

    /// A Cargo command for Windows, with a build folder of its own.
    pub(super) fn cargo(&self, command: &str) -> Command {
        let mut res = cargo();
        res.args([command, "--locked", "--target", TARGET, "--target-dir"]).arg(target_folder());
        // Line tables are of no use under wine.
        res.env("CARGO_PROFILE_DEV_DEBUG", "none").env("CARGO_INCREMENTAL", "0");
        self.0.add_to(&mut res);
        res
    }

    /// The folder of the built programs.
    pub(super) fn programs(&self) -> PathBuf {
        target_folder().join(TARGET).join("debug")
    }

    /// Compiles a C file into a library.
    pub(super) fn build_library(&self, source: &Path, library: &Path) -> Result<(), Error> {
        run_command(Command::new(LINKER).arg("-shared").arg("-o").arg(library).arg(source).arg("-ladvapi32"))
    }
}

fn target_folder() -> PathBuf {
    tree::root().join("target/windows")
}

/// Finds a toolchain, or returns what is missing.
fn find(runs_wine: bool) -> Result<Toolchain, Vec<&'static str>> {
    let standard_library = StandardLibrary::find(TARGET);
    let mut missing = Vec::new();
    if standard_library.is_none() {
        missing.push("a compiler for Windows (`rustup target add x86_64-pc-windows-gnu`)");
    }
    if !has_program(LINKER) {
        missing.push("MinGW-w64 (`x86_64-w64-mingw32-gcc`)");
    }
    if runs_wine && !has_program("wine") {
        missing.push("wine");
    }
    match standard_library {
        Some(library) if missing.is_empty() => Ok(Toolchain(library)),
        _ => Err(missing),
    }
}

fn missing_error(missing: &[&str]) -> Error {
    Error::message(format!("missing: {}", missing.join(", ")))
}

/// Whether a folder of `PATH` has the program.
fn has_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}
