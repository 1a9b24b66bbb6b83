//! `cargo xtask macos`: checks the product for macOS. Nothing is linked or run: both need Apple's SDK.
//!
//! The C code of dependencies is compiled by Zig, which has the headers of macOS and comes from PyPI.

use std::fs;

use crate::cargo::{cargo, run as run_command};
use crate::cross::StandardLibrary;
use crate::error::Error;
use crate::suites::test_run::install::{install_zig, io_error, write_file};
use crate::suites::windows::PRODUCT;
use crate::tree;

const TARGET: &str = "aarch64-apple-darwin";

/// Checks for macOS.
pub(crate) fn run() -> Result<(), Error> {
    let library =
        StandardLibrary::find(TARGET).ok_or_else(|| Error::message(StandardLibrary::advice(TARGET)))?;
    let environment = install_zig()?;
    let python = environment.join("bin/python").display().to_string();
    let compiler = environment.join("cc-for-macos");
    write_file(&compiler, &compiler_script(&python))?;
    make_executable(&compiler)?;
    let mut check = cargo();
    check
        .args(["check", "--locked", "--target", TARGET, "--target-dir"])
        .arg(tree::root().join("target/macos"));
    for package in PRODUCT {
        check.args(["-p", package]);
    }
    check.env("CARGO_PROFILE_DEV_DEBUG", "none").env("CARGO_INCREMENTAL", "0");
    // With a folder as SDK, no build script searches for Apple's.
    check.env("CC_aarch64_apple_darwin", &compiler).env("SDKROOT", "/");
    library.add_to(&mut check);
    run_command(&mut check)
}

/// A compiler with the options of cc, without those that name the target in words that Zig does not know.
fn compiler_script(python: &str) -> String {
    format!(
        "#!/bin/sh\n\
         for argument do\n\
         \x20 shift\n\
         \x20 case \"$argument\" in\n\
         \x20   --target=* | -arch | arm64 | -mmacosx-version-min=*) ;;\n\
         \x20   *) set -- \"$@\" \"$argument\" ;;\n\
         \x20 esac\n\
         done\n\
         exec '{python}' -m ziglang cc -target aarch64-macos \"$@\"\n"
    )
}

#[cfg(unix)]
fn make_executable(path: &std::path::Path) -> Result<(), Error> {
    use std::os::unix::fs::PermissionsExt;

    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .map_err(|error| io_error("change", path, error))
}

#[cfg(not(unix))]
fn make_executable(_: &std::path::Path) -> Result<(), Error> {
    Err(Error::message("this check needs a Unix system"))
}
