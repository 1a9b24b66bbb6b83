//! The standard library for another target than this machine.

use std::path::Path;
use std::process::Command;

use crate::cargo::run_for_output;
use crate::tree;

/// The compiler of Debian's package `rustc-web`. Its source is in `rust-web-src`. Cargo is that of this process.
const DEBIAN_COMPILER: &str = "/usr/bin/rustc";

/// Where the standard library of a target comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StandardLibrary {
    /// It is installed with the compiler.
    Installed,
    /// Debian's compiler builds it from its source.
    Built,
}

impl StandardLibrary {
    /// Finds the standard library of a target; adds it with rustup if it is missing. `None`: neither it nor its source
    /// is on this machine.
    pub(crate) fn find(triple: &str) -> Option<StandardLibrary> {
        if is_installed(triple) {
            return Some(StandardLibrary::Installed);
        }
        let added = Command::new("rustup").args(["target", "add", triple]).output();
        if added.is_ok_and(|output| output.status.success()) && is_installed(triple) {
            return Some(StandardLibrary::Installed);
        }
        let sysroot = run_for_output(Command::new(DEBIAN_COMPILER).args(["--print", "sysroot"])).ok()?;
        let source = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/std");
        source.is_dir().then_some(StandardLibrary::Built)
    }

    /// Lets a Cargo command use it.
    pub(crate) fn add_to(self, command: &mut Command) {
        if self == StandardLibrary::Built {
            command
                .arg("-Zbuild-std=std,panic_abort")
                .env("RUSTC", DEBIAN_COMPILER)
                .env("RUSTC_BOOTSTRAP", "1");
        }
    }

    /// What to do if there is none.
    pub(crate) fn advice(triple: &str) -> String {
        format!(
            "the standard library for {triple} is missing: `rustup target add {triple}` installs it; on Debian its \
             source comes with `apt-get install rustc-web rust-web-src`"
        )
    }
}

fn is_installed(triple: &str) -> bool {
    let mut command = Command::new("rustc");
    command.args(["--print", "target-libdir", "--target", triple]).current_dir(tree::root());
    run_for_output(&mut command).is_ok_and(|folder| Path::new(folder.trim()).is_dir())
}
